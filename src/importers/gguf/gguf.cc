// Imports a GGUF file by its header: metadata and tensors are translated to the config.json of the
// same model, which the Hugging Face importer reads. Bytes of weights are taken from the file's
// tensors. Times are forecast as weight-only quantization: the kernels of llama.cpp were not
// measured.
// Sources: ggml's docs/gguf.md (standard keys), gguf-py 0.19 (constants.py: names of keys and
// tensors by architecture), llama.cpp's convert_hf_to_gguf.py (which field becomes which key).

#include <fmt/format.h>

#include <algorithm>

#include "base/checked.h"
#include "base/text.h"
#include "graph/dtype.h"
#include "importers/gguf/architecture.h"
#include "importers/gguf/header.h"
#include "importers/gguf/splits.h"
#include "importers/model.h"
#include "tilecast/error.h"

namespace tilecast {

ImporterDef huggingface_importer();

namespace {

bool sniff_gguf(std::string_view, std::string_view content) { return is_gguf(content); }

bool is_complete(std::string_view content) {
  try {
    return read_gguf_header(content, "").has_value();
  } catch (const Error&) {
    return true;  // the import says what is wrong
  }
}

/// Types whose weights are multiplied as they are.
bool is_plain(const GgufType& type) { return type.block == 1; }

/// The weight-only scheme of the nearest size. Source: bits of a weight with its scales, int4_wo
/// 4.2, int8_wo 8; MXFP4 and NVFP4 have schemes of their own.
QuantScheme nearest_scheme(const GgufType& type) {
  if (is_plain(type)) return QuantScheme::kNone;
  if (type.name == "MXFP4") return QuantScheme::kFp4WeightOnly;
  if (type.name == "NVFP4") return QuantScheme::kNvfp4WeightOnly;
  constexpr double kMiddle = (4.2 + 8) / 2;
  const double bits =
      static_cast<double>(kBitsPerByte * type.bytes) / static_cast<double>(type.block);
  return bits < kMiddle ? QuantScheme::kInt4WeightOnly : QuantScheme::kInt8WeightOnly;
}

/// The quantization_config of the file's tensors: the modules of each scheme. null: none.
Json quantization_of(const GgufHeader& header) {
  Json groups = Json::object();
  for (const GgufTensor& tensor : header.tensors) {
    const QuantScheme scheme = nearest_scheme(*tensor.type);
    if (scheme == QuantScheme::kNone) continue;
    const std::vector<std::string> modules = gguf_modules(tensor.name);
    if (modules.empty()) continue;
    Json& group = groups[std::string(scheme_info(scheme).name)];
    if (group.is_null()) {
      const bool whole =
          scheme == QuantScheme::kInt4WeightOnly || scheme == QuantScheme::kInt8WeightOnly;
      group = {{"weights",
                {{"num_bits", dtype_bits(scheme_info(scheme).weight_dtype)},
                 {"type", whole ? "int" : "float"},
                 {"group_size", std::max<int64_t>(1, scheme_info(scheme).group_size)}}},
               {"targets", Json::array()}};
    }
    for (const std::string& module : modules) group["targets"].push_back(module);
  }
  if (groups.empty()) return nullptr;
  return {{"quant_method", "compressed-tensors"}, {"config_groups", groups}};
}

/// The dtype of what is not quantized: the 16-bit type of the file, else llama.cpp's fp16.
std::string plain_dtype(const GgufHeader& header) {
  const auto has = [&](std::string_view name, size_t dims) {
    return std::any_of(header.tensors.begin(), header.tensors.end(), [&](const GgufTensor& t) {
      return t.type->name == name && t.dims.size() >= dims;
    });
  };
  if (has("BF16", 1)) return "bfloat16";
  const bool all_single = std::all_of(header.tensors.begin(), header.tensors.end(),
                                      [](const GgufTensor& t) { return t.type->name == "F32"; });
  return all_single ? "float32" : "float16";
}

/// "Q4_K 71 %, Q6_K 29 %": the types by their share of the bytes.
std::string shares_of(const GgufHeader& header, int64_t all) {
  std::map<std::string_view, int64_t> bytes;
  for (const GgufTensor& tensor : header.tensors) bytes[tensor.type->name] += tensor.bytes;
  std::vector<std::pair<int64_t, std::string_view>> order;
  for (const auto& [name, count] : bytes) order.emplace_back(-count, name);
  std::sort(order.begin(), order.end());
  std::vector<std::string> parts;
  for (const auto& [count, name] : order)
    parts.push_back(fmt::format("{} {:.0f} %", name,
                                -100 * static_cast<double>(count) / static_cast<double>(all)));
  return join(parts, ", ");
}

struct Totals {
  int64_t bytes = 0, parameters = 0;
};

Totals totals_of(const GgufHeader& header) {
  Totals totals;
  for (const GgufTensor& tensor : header.tensors) {
    totals.bytes = checked_add(totals.bytes, tensor.bytes);
    // Tables of rotary frequencies are no parameters.
    if (!tensor.name.starts_with("rope_"))
      totals.parameters = checked_add(totals.parameters, tensor.elements);
  }
  return totals;
}

void describe_weights(const GgufHeader& header, Model& model) {
  const Totals totals = totals_of(header);
  Checkpoint& c = model.checkpoint;
  c.weights_bytes = totals.bytes;
  if (c.dtype) c.dtype_field = "gguf";
  if (!c.schemes.empty()) {
    c.quantization = "gguf";
    std::vector<std::string> names;
    for (const QuantScheme scheme : c.schemes) names.emplace_back(scheme_info(scheme).name);
    const double bits = static_cast<double>(kBitsPerByte * totals.bytes) /
                        static_cast<double>(std::max<int64_t>(1, totals.parameters));
    c.warnings.push_back(
        fmt::format("the GGUF file stores its weights in {:.2f} bits on average ({}): bytes are "
                    "exact, times are "
                    "forecast as the nearest weight-only schemes ({}), and the output layer is "
                    "forecast in 16 bits",
                    bits, shares_of(header, totals.bytes), join(names, ", ")));
  }
  const int64_t built = model.build({.batch = 1, .seq = 1}).parameter_count();
  if (built != totals.parameters)
    model.warnings.push_back(
        fmt::format("the file's tensors have {} parameters, the model that is forecast has {}",
                    totals.parameters, built));
}

Model import_gguf(const ModelText& text) { return import_gguf_splits(text, {}); }

}  // namespace

Model import_gguf_splits(const ModelText& text, const std::vector<GgufSplit>& parts) {
  const GgufHeader header = read_gguf_splits(text, parts);
  Json config = gguf_config(header, text.where);
  config["torch_dtype"] = plain_dtype(header);
  if (Json quantization = quantization_of(header); !quantization.is_null())
    config["quantization_config"] = std::move(quantization);
  const std::string json = config.dump();
  Model model = huggingface_importer().import(ModelText{json, text.where});
  describe_weights(header, model);
  if (!parts.empty()) model.name = gguf_name(text.where);
  return model;
}

ImporterDef gguf_importer() {
  return {.name = "gguf",
          .doc = "header of a GGUF file (llama.cpp)",
          .sniff = sniff_gguf,
          .import = import_gguf,
          .is_complete = is_complete};
}

}  // namespace tilecast
