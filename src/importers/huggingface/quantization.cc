#include "importers/huggingface/quantization.h"

#include <fmt/format.h>

#include <set>

#include "base/text.h"
#include "importers/model.h"
#include "tilecast/error.h"

namespace tilecast {
namespace {

[[noreturn]] void unknown(const JsonObject& q, const std::string& key, const std::string& what) {
  throw Error(ErrorKind::kUnsupported, fmt::format("{}: '{}': {}", q.where(), key, what));
}

struct Algorithm {
  std::string_view name;
  QuantScheme scheme;
};

/// ModelOpt's `quant_algo` (nvidia-modelopt 0.45, modelopt/torch/export/model_config.py).
constexpr Algorithm kAlgorithms[] = {{"FP8", QuantScheme::kFp8},
                                     {"FP8_PER_CHANNEL_PER_TOKEN", QuantScheme::kFp8},
                                     {"FP8_PB_WO", QuantScheme::kFp8WeightOnly},
                                     {"FP8_BLOCK_SCALES", QuantScheme::kFp8Block},
                                     // Multiplied at the rate of fp8 (PTX ISA,
                                     // tcgen05.mma.kind::mxf8f6f4); stored with its scales.
                                     {"MXFP8", QuantScheme::kFp8},
                                     {"NVFP4", QuantScheme::kFp4},
                                     {"NVFP4_AWQ", QuantScheme::kFp4},
                                     {"W4A16_NVFP4", QuantScheme::kNvfp4WeightOnly},
                                     {"W4A16_AWQ", QuantScheme::kInt4WeightOnly},
                                     {"W4A16", QuantScheme::kInt4WeightOnly},
                                     {"W8A16", QuantScheme::kInt8WeightOnly},
                                     {"INT4_AWQ", QuantScheme::kInt4WeightOnly},
                                     {"W8A8_SQ_PER_CHANNEL", QuantScheme::kInt8},
                                     {"INT8_SQ", QuantScheme::kInt8}};

QuantScheme scheme_of_algorithm(const JsonObject& q, const std::string& algorithm) {
  std::vector<std::string> names;
  for (const Algorithm& known : kAlgorithms) {
    if (normalized_name(known.name) == normalized_name(algorithm)) return known.scheme;
    names.emplace_back(known.name);
  }
  names.emplace_back("MIXED_PRECISION");
  unknown(
      q, "quant_algo",
      fmt::format("unknown algorithm '{}'; known: {}", shown_name(algorithm), join(names, ", ")));
}

void add_name(const std::string& name, ModuleNames& names, Quantization& result) {
  if (names.add(name)) return;
  constexpr size_t kMostNamed = 8;
  const size_t count = ++result.unreadable_names;
  if (count <= kMostNamed) {
    result.warnings.push_back(
        fmt::format("'{}' ({}) is not a supported pattern; it matches no module", shown_name(name),
                    result.source));
    return;
  }
  if (count == kMostNamed + 1) {
    result.further_names = result.warnings.size();
    result.warnings.emplace_back();
  }
  result.warnings[result.further_names] =
      fmt::format("further names ({}) that are no supported patterns, and match no module: {}",
                  result.source, count - kMostNamed);
}

QuantScheme weight_only_bits(const JsonObject& q, const std::string& key, int64_t bits) {
  if (bits == 4) return QuantScheme::kInt4WeightOnly;
  if (bits == 8) return QuantScheme::kInt8WeightOnly;
  unknown(q, key, fmt::format("weights of {} bits are not supported; known: 4, 8", bits));
}

/// The scheme of one group of compressed-tensors, from its dtypes of weights and activations.
QuantScheme scheme_of_group(const JsonObject& group) {
  const JsonObject weights = group.object("weights");
  const int64_t bits = weights.integer({"num_bits"}, 1, 64);
  const bool floats = weights.optional_string({"type"}).value_or("int") == "float";
  const bool alone = !group.has("input_activations");
  if (floats && bits == 8) {
    if (alone) return QuantScheme::kFp8WeightOnly;
    return weights.optional_string({"strategy"}).value_or("") == "block" ? QuantScheme::kFp8Block
                                                                         : QuantScheme::kFp8;
  }
  if (floats && bits == 4) {
    constexpr int64_t kMxGroup = 32, kNvfp4Group = 16;
    const bool mx =
        weights.optional_integer({"group_size"}, 1, 1 << 20).value_or(kNvfp4Group) == kMxGroup;
    if (alone) return mx ? QuantScheme::kFp4WeightOnly : QuantScheme::kNvfp4WeightOnly;
    const int64_t input_bits = group.object("input_activations").integer({"num_bits"}, 1, 64);
    return mx && input_bits == 8 ? QuantScheme::kFp4Fp8 : QuantScheme::kFp4;
  }
  if (!floats && bits == 8 && !alone) return QuantScheme::kInt8;
  if (!floats && alone) return weight_only_bits(weights, "num_bits", bits);
  unknown(weights, "num_bits",
          fmt::format("{} weights of {} bits with quantized activations are not supported",
                      floats ? "floating-point" : "integer", bits));
}

/// A scheme has one group size. Bytes follow from the checkpoint, times from the scheme.
void note_group(const JsonObject& q, QuantScheme scheme, Quantization& result) {
  const int64_t taken = scheme_info(scheme).group_size;
  const std::optional<int64_t> said =
      q.optional_integer({"group_size", "q_group_size"}, -1, 1 << 20);
  if (!said || *said <= 0 || taken == 0 || *said == taken) return;
  result.warnings.push_back(
      fmt::format("the checkpoint has groups of {} weights ({}), but times of {} are forecast with "
                  "groups of {}",
                  *said, result.source, scheme_info(scheme).name, taken));
}

void read_groups(const JsonObject& q, Quantization& result) {
  const JsonObject groups = q.object("config_groups");
  for (const auto& item : groups.json().items()) {
    const JsonObject group = groups.object(item.key());
    const QuantScheme scheme = scheme_of_group(group);
    note_group(group.object("weights"), scheme, result);
    add_storage(result, scheme, group_storage(group, scheme));
    std::vector<std::string> targets = {"Linear"};
    if (group.has("targets")) targets = group.strings("targets");
    for (const std::string& target : targets) {
      if (target == "Linear") {
        result.scheme = scheme;
      } else {
        add_name(target, result.named[scheme], result);
      }
    }
  }
}

void read_quantized_layers(const JsonObject& q, Quantization& result) {
  const JsonObject layers = q.object("quantized_layers");
  for (const auto& item : layers.json().items()) {
    const JsonObject layer = layers.object(item.key());
    const std::string algorithm = layer.string("quant_algo");
    const QuantScheme scheme = scheme_of_algorithm(layer, algorithm);
    add_name(item.key(), result.named[scheme], result);
    add_storage(result, scheme, algorithm_storage(layer, algorithm, scheme));
  }
}

/// Formats of ModelOpt and compressed-tensors: one algorithm, groups, or a list of layers.
void read_modelopt(const JsonObject& q, Quantization& result) {
  const std::string algorithm = q.optional_string({"quant_algo"}).value_or("");
  const bool mixed = normalized_name(algorithm) == "mixedprecision";
  if (mixed && q.has("quantized_layers")) return read_quantized_layers(q, result);
  if (q.has("config_groups")) return read_groups(q, result);
  if (mixed) return read_quantized_layers(q, result);  // throws if the field is missing
  if (!algorithm.empty()) {
    result.scheme = scheme_of_algorithm(q, algorithm);
    add_storage(result, result.scheme, algorithm_storage(q, algorithm, result.scheme));
    return;
  }
  const std::string format = q.optional_string({"format"}).value_or("");
  static const std::map<std::string, QuantScheme> known = {
      {"fp8", QuantScheme::kFp8},
      {"floatquantized", QuantScheme::kFp8},
      {"naivequantized", QuantScheme::kFp8},
      {"intquantized", QuantScheme::kInt8},
      {"packquantized", QuantScheme::kInt4WeightOnly},
      {"nvfp4", QuantScheme::kFp4},
      {"nvfp4packquantized", QuantScheme::kFp4}};
  const auto found = known.find(normalized_name(format));
  if (found == known.end())
    unknown(q, "format",
            fmt::format("unknown format '{}'; known: fp8, float-quantized, int-quantized, "
                        "pack-quantized, nvfp4-pack-quantized",
                        shown_name(format)));
  result.scheme = found->second;
}

void read_fp8(const JsonObject& q, Quantization& result) {
  result.scheme = q.has("weight_block_size") ? QuantScheme::kFp8Block : QuantScheme::kFp8;
  add_storage(result, result.scheme, fp8_storage(q));
}

void read_method(const JsonObject& q, Quantization& result) {
  const std::string method = q.optional_string({"quant_method"}).value_or("");
  const std::string lower = normalized_name(method);
  if (lower == "fp8" && q.has("quantized_layers")) {
    // NVFP4 experts in a checkpoint whose other layers keep DeepSeek's FP8.
    read_fp8(q, result);
    return read_quantized_layers(q, result);
  }
  if (q.has("quant_algo") || lower == "modelopt" || lower == "modeloptfp4" ||
      lower == "compressedtensors")
    return read_modelopt(q, result);
  if (lower == "fp8") {
    read_fp8(q, result);
  } else if (lower == "fbgemmfp8") {
    result.scheme = QuantScheme::kFp8;
    add_storage(result, result.scheme, channel_storage(result.scheme));
  } else if (lower == "gptq" || lower == "awq" || lower == "autoround") {
    result.scheme =
        weight_only_bits(q, "bits", q.optional_integer({"bits", "w_bit"}, 1, 16).value_or(4));
    note_group(q, result.scheme, result);
    add_storage(result, result.scheme,
                gptq_storage(q, result.scheme, lower == "gptq" ? PackedBy::kGptq : PackedBy::kAwq));
  } else if (lower == "mxfp4") {
    result.scheme = QuantScheme::kFp4Fp8;  // weight-only where the device has no fp4
    result.experts_only = true;
  } else if (lower == "nvfp4") {
    result.scheme = QuantScheme::kFp4;
    add_storage(result, result.scheme, algorithm_storage(q, "NVFP4", result.scheme));
  } else if (lower == "bitsandbytes") {
    const bool four = q.boolean("load_in_4bit", false) || q.boolean("_load_in_4bit", false);
    result.scheme = four ? QuantScheme::kInt4WeightOnly : QuantScheme::kInt8;
    add_storage(result, result.scheme, bitsandbytes_storage(q, result.scheme));
  } else {
    unknown(q, "quant_method",
            fmt::format("unknown quantization scheme '{}'; known: fp8, fbgemm_fp8, gptq, awq, "
                        "auto-round, mxfp4, nvfp4, bitsandbytes, modelopt, compressed-tensors",
                        shown_name(method)));
  }
}

/// The dtype of the KV cache: a name ("FP8") or { num_bits, type }.
void read_cache(const JsonObject& q, Quantization& result) {
  for (const char* key : {"kv_cache_quant_algo", "kv_cache_scheme"}) {
    if (!q.has(key)) continue;
    std::string name;
    if (q.json()[key].is_object()) {
      const JsonObject scheme = q.object(key);
      name = scheme.optional_string({"type"}).value_or("int") == "float" ? "fp" : "int";
      name += std::to_string(scheme.integer({"num_bits"}, 1, 64));
    } else {
      name = normalized_name(q.string(key));
    }
    static const std::set<std::string> not_quantized = {"",         "none", "auto",   "bf16",
                                                        "bfloat16", "fp16", "float16"};
    if (name == "fp8") {
      result.kv_dtype = DType::kFp8;
    } else if (name == "int8") {
      result.kv_dtype = DType::kInt8;
    } else if (!not_quantized.contains(name)) {
      result.warnings.push_back(
          fmt::format("the checkpoint's KV cache is in '{}' ({}: {}), which is not supported: "
                      "forecast in the activations' dtype; known: FP8, INT8",
                      shown_name(name), result.source, key));
    }
  }
}

void read_excluded(const JsonObject& q, Quantization& result) {
  for (const char* key : {"modules_to_not_convert", "ignored_layers", "ignore", "exclude_modules",
                          "llm_int8_skip_modules"}) {
    if (!q.has(key)) continue;
    for (const std::string& name : q.strings(key)) add_name(name, result.excluded, result);
  }
}

}  // namespace

std::optional<Quantization> read_quantization(const JsonObject& config) {
  Quantization result;
  const auto read = [&](const JsonObject& q, const char* source) {
    result.source = source;
    // ModelOpt also writes its file if only the KV cache is quantized.
    if (source != std::string_view(kQuantConfigFile) || q.has("quant_algo")) read_method(q, result);
    // Lists that ModelOpt adds to an FP8 checkpoint name what it left in FP8.
    const bool keeps_fp8 =
        normalized_name(q.optional_string({"quant_method"}).value_or("")) == "fp8" &&
        q.has("quantized_layers");
    if (!keeps_fp8) read_excluded(q, result);
    read_cache(q, result);
  };
  std::optional<JsonObject> beside;
  if (config.has(kQuantConfigFile)) {
    beside = config.object(kQuantConfigFile);
    // Some writers leave out the outer object.
    if (beside->has("quantization")) {
      beside = beside->object("quantization");
    } else if (!beside->has("quant_algo") && !beside->has("kv_cache_quant_algo")) {
      beside.reset();
    }
  }
  if (config.has("quantization_config")) {
    read(config.object("quantization_config"), "quantization_config");
    // ModelOpt states the cache's dtype in its own file only.
    if (beside && !result.kv_dtype) read_cache(*beside, result);
    return result;
  }
  if (!beside) return std::nullopt;
  read(*beside, kQuantConfigFile);
  return result;
}

}  // namespace tilecast
