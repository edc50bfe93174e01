// Values of names: initializers and constants as tensors of the graph, and the dtypes of both.

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/ascii.h"
#include "base/text.h"
#include "importers/onnx/translator.h"
#include "tilecast/error.h"

namespace tilecast {
namespace {

/// Persistent tensors of common models that are not trained. Source: register_buffer in the model
/// files of transformers and timm.
constexpr std::array<std::string_view, 14> kBuffers = {"inv_freq",       "original_inv_freq",
                                                       "running_mean",   "running_var",
                                                       "cos_cached",     "sin_cached",
                                                       "masked_bias",    "attn.bias",
                                                       "embed_scale",    "relative_position_index",
                                                       "attn_mask",      "position_ids",
                                                       "token_type_ids", "num_batches_tracked"};

/// Names that exporters make up for values that have no name in the model.
bool is_made_up(std::string_view name) {
  for (const std::string_view start :
       {"onnx::", "val_", "_val", "/", "const", "Constant", "node_", "lifted_", "_", "clone"}) {
    if (name.starts_with(start)) return true;
  }
  return std::all_of(name.begin(), name.end(), is_digit);
}

/// Operators whose float operands are weights, as "operator#input".
bool takes_weight(const std::string& use, size_t rank) {
  constexpr size_t kMatrix = 2;
  if (use == "MatMul" || use == "MatMul#0" || use == "Gather#0" || use == "Transpose#0")
    return rank == kMatrix;
  for (const std::string_view start :
       {"Gemm#", "Conv#", "ConvTranspose#", "LayerNormalization#", "SimplifiedLayerNormalization#",
        "RMSNormalization#", "GroupNormalization#", "InstanceNormalization#", "LSTM#", "GRU#",
        "RNN#", "PRelu#", "BatchNormalization#1", "BatchNormalization#2", "SkipLayerNormalization#",
        "QuantizeLinear#0"}) {
    if (use.starts_with(start)) return true;
  }
  return false;
}

}  // namespace

std::optional<OnnxType> main_type(const OnnxFile& file) {
  std::map<OnnxType, double> elements;
  for (const OnnxTensor& tensor : file.graph.initializers) {
    double count = 1;
    for (const int64_t d : tensor.shape) count *= static_cast<double>(d);
    const bool main = tensor.type == OnnxType::kFloat || tensor.type == OnnxType::kFloat16 ||
                      tensor.type == OnnxType::kBfloat16 || tensor.type == OnnxType::kDouble;
    if (main) elements[tensor.type] += count;
  }
  const auto most = std::max_element(elements.begin(), elements.end(),
                                     [](auto& a, auto& b) { return a.second < b.second; });
  if (most != elements.end()) return most->first;
  for (const OnnxValueInfo& input : file.graph.inputs) {
    if (input.type == OnnxType::kFloat || input.type == OnnxType::kFloat16 ||
        input.type == OnnxType::kBfloat16)
      return input.type;
  }
  return std::nullopt;
}

DType OnnxTranslator::dtype_of(OnnxType type, const std::string& what) const {
  const std::optional<OnnxType> main = main_type_;
  if (main == type) return request_.dtype;
  switch (type) {
    case OnnxType::kFloat:
    case OnnxType::kDouble:
      return DType::kFp32;
    case OnnxType::kFloat16:
      return DType::kFp16;
    case OnnxType::kBfloat16:
      return DType::kBf16;
    case OnnxType::kInt64:
    case OnnxType::kUint64:
      return DType::kInt64;
    case OnnxType::kInt32:
    case OnnxType::kUint32:
    case OnnxType::kInt16:
    case OnnxType::kUint16:
      return DType::kInt32;
    case OnnxType::kInt8:
    case OnnxType::kUint8:
      return DType::kInt8;
    case OnnxType::kBool:
      return DType::kBool;
    case OnnxType::kInt4:
    case OnnxType::kUint4:
      return DType::kInt4;
    case OnnxType::kFloat4:
      return DType::kFp4;
    default:
      break;
  }
  if (type >= OnnxType::kFloat8First && type <= OnnxType::kFloat8Last) return DType::kFp8;
  throw Error(ErrorKind::kUnsupported,
              fmt::format("{}: '{}' has data type {}{}; expected numbers of 4 to 64 bits", where_,
                          shown_name(what), static_cast<int>(type),
                          type == OnnxType::kString      ? " (text)"
                          : type == OnnxType::kUndefined ? " (undefined)"
                                                         : " (complex)"));
}

bool OnnxTranslator::is_parameter(const OnnxTensor& initializer) const {
  if (!is_float(initializer.type) && initializer.type != OnnxType::kInt8 &&
      initializer.type != OnnxType::kUint8)
    return false;
  if (initializer.shape.empty()) return false;
  const std::string_view name = initializer.name;
  for (const std::string_view buffer : kBuffers) {
    // Whole names: "h.0.attn.bias", not "h.0.attn.c_attn.bias".
    const bool is_it = name.ends_with(buffer);
    if (is_it && (name.size() == buffer.size() || name[name.size() - buffer.size() - 1] == '.'))
      return false;
  }
  const auto uses = uses_.find(initializer.name);
  if (uses != uses_.end()) {
    for (const std::string& use : uses->second) {
      if (takes_weight(use, initializer.shape.size())) return true;
    }
    // A quantized weight that is used after DequantizeLinear.
    if (uses->second.contains("DequantizeLinear#0") && initializer.shape.size() > 1) return true;
    if (uses->second.contains("BatchNormalization#3") ||
        uses->second.contains("BatchNormalization#4"))
      return false;
  }
  return is_float(initializer.type) && !is_made_up(name);
}

TensorId OnnxTranslator::tensor_of(OnnxValue& value) {
  if (value.tensor >= 0) return value.tensor;
  if (value.is_sequence) fail("a sequence is used where a tensor is expected");
  if (!value.is_known()) fail("a tensor that was left out is used");
  if (value.initializer != nullptr)
    return value.tensor = initializer_tensor(*value.initializer, false);
  return value.tensor = constant_tensor(*value.constant, "constant");
}

/// The tensor of an initializer, or of its transpose.
TensorId OnnxTranslator::initializer_tensor(const OnnxTensor& initializer, bool swapped) {
  std::unordered_map<const OnnxTensor*, TensorId>& made = swapped ? swapped_ : tensors_;
  if (const auto found = made.find(&initializer); found != made.end()) return found->second;
  Shape shape = initializer.shape;
  if (swapped) std::swap(shape[0], shape[1]);
  const DType dtype = dtype_of(initializer.type, initializer.name);
  const bool parameter = is_parameter(initializer);
  // The same weight under another name, or transposed (tied embeddings).
  const std::string identity =
      initializer.identity.empty() || !parameter
          ? ""
          : fmt::format("{} {} {}", initializer.identity, format_shape(shape), dtype_name(dtype));
  if (const auto same = same_.find(identity); !identity.empty() && same != same_.end())
    return made[&initializer] = same->second;
  const TensorId id = b_.tensor({.name = initializer.name,
                                 .shape = shape,
                                 .dtype = dtype,
                                 .kind = parameter ? TensorKind::kWeight : TensorKind::kBuffer,
                                 .role = parameter ? router_role(initializer.name) : Role::kNone});
  element_count(graph_.tensor(id).shape);
  if (!identity.empty()) same_[identity] = id;
  return made[&initializer] = id;
}

TensorId OnnxTranslator::constant_tensor(const OnnxConstant& constant, const std::string& name) {
  return b_.tensor({.name = name,
                    .shape = constant.shape,
                    .dtype = dtype_of(constant.type, name),
                    .kind = TensorKind::kBuffer});
}

}  // namespace tilecast
