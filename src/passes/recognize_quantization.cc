// Products of operands that a graph quantizes and dequantizes (QDQ): one kernel in low precision.

#include "ops/op_def.h"
#include "passes/recognize.h"

namespace tilecast {
namespace {

/// The stored weight behind a dequantization, its scale, and whether the activations are quantized.
struct QdqOperands {
  TensorId x = -1;  ///< activations before their quantization
  TensorId quantized_x = -1;
  TensorId weight = -1, scale = -1;
};

std::optional<QdqOperands> operands_of(const Pattern& p, const Node& node) {
  const Node* dequantized = p.made(node.inputs[1], "dequantize");
  if (dequantized == nullptr) return std::nullopt;
  QdqOperands o{
      .x = node.inputs[0], .weight = dequantized->inputs[0], .scale = dequantized->inputs[1]};
  if (p.made(o.weight) != nullptr) return std::nullopt;  // computed, so no stored weight
  if (const Node* again = p.made(o.x, "dequantize")) {
    const Node* quantized = p.made(again->inputs[0], "quantize");
    o.quantized_x = again->inputs[0];
    if (quantized != nullptr) o.x = quantized->inputs[0];
  }
  return o;
}

std::optional<QuantScheme> scheme_of(DType stored, bool activations) {
  switch (stored) {
    case DType::kInt8:
      return activations ? QuantScheme::kInt8 : QuantScheme::kInt8WeightOnly;
    case DType::kFp8:
      return activations ? QuantScheme::kFp8 : QuantScheme::kFp8WeightOnly;
    case DType::kInt4:
      return QuantScheme::kInt4WeightOnly;
    case DType::kFp4:
      return activations ? QuantScheme::kFp4 : QuantScheme::kFp4WeightOnly;
    default:
      return std::nullopt;
  }
}

/// Quantized layers store their weights as [n, k]. The weight was checked to have one reader.
std::vector<TensorId> build_linear(GraphBuilder& b, const Replacement& r,
                                   std::vector<TensorId> inputs) {
  const QuantScheme scheme = std::get<QuantScheme>(r.attributes[0].value);
  Tensor& weight = b.graph().tensor(inputs[1]);
  const int64_t k = b.graph().tensor(inputs[0]).shape.back();
  if (weight.shape[1] != k) std::swap(weight.shape[0], weight.shape[1]);
  weight.dtype = scheme_info(scheme).weight_dtype;
  return b.add("quantized_linear", std::move(inputs), r.name, {r.attributes[0]});
}

}  // namespace

std::optional<Replacement> recognize_quantized_linear(const Pattern& p, const Node& node) {
  const bool gemm = p.is(node, "gemm");
  if (!gemm && !p.is(node, "linear")) return std::nullopt;
  const std::optional<QdqOperands> o = operands_of(p, node);
  if (!o || p.tensor(o->weight).shape.size() != 2 || p.reader_count(o->weight) != 1)
    return std::nullopt;
  // gemm flattens its operands; a layer does not.
  if (gemm && p.tensor(o->x).shape.size() != 2 && p.only_reader(node.outputs[0], "view") == nullptr)
    return std::nullopt;
  if (gemm && (attribute<int64_t>(node, "transpose_a") != 0 || p.tensor(o->x).shape.empty()))
    return std::nullopt;
  const std::optional<QuantScheme> scheme =
      scheme_of(p.tensor(o->weight).dtype, o->quantized_x >= 0);
  if (!scheme) return std::nullopt;
  const Node* last = &node;
  if (gemm && p.tensor(o->x).shape.size() != 2) {
    last = p.only_reader(node.outputs[0], "view");
    Shape rows = p.tensor(o->x).shape;
    rows.back() = p.tensor(node.outputs[0]).shape.back();
    if (p.tensor(last->outputs[0]).shape != rows) return std::nullopt;
  }
  Replacement r{.last = last,
                .op = "quantized_linear",
                .inputs = {o->x, o->weight, o->scale},
                .attributes = {{"scheme", *scheme}},
                .name = node.name,
                .build = build_linear};
  if (!gemm && node.inputs.size() == 3)
    r.inputs.push_back(p.made(node.inputs[2], "dequantize") != nullptr
                           ? p.made(node.inputs[2], "dequantize")->inputs[0]
                           : node.inputs[2]);
  return r;
}

/// A convolution of quantized operands, and the dequantization of its result.
static std::vector<TensorId> build_convolution(GraphBuilder& b, const Replacement& r,
                                               std::vector<TensorId> inputs) {
  const TensorId scale = inputs[0];
  inputs.erase(inputs.begin());
  const TensorId y =
      b.op(r.op, std::move(inputs), r.name, {r.attributes.begin(), r.attributes.end() - 1});
  return {b.op("dequantize", {y, scale}, r.name, {r.attributes.back()})};
}

std::optional<Replacement> recognize_quantized_convolution(const Pattern& p, const Node& node) {
  if (!p.is(node, "conv2d") && !p.is(node, "conv")) return std::nullopt;
  const std::optional<QdqOperands> o = operands_of(p, node);
  if (!o || o->quantized_x < 0) return std::nullopt;
  if (p.tensor(o->weight).dtype != p.tensor(o->quantized_x).dtype) return std::nullopt;
  Replacement r{.last = &node,
                .op = std::string(op_def(node.op).name),
                .inputs = {o->scale, o->quantized_x, o->weight},
                .attributes = node.attributes,
                .name = node.name,
                .build = build_convolution};
  if (node.inputs.size() == 3) r.inputs.push_back(node.inputs[2]);
  r.attributes.push_back({"dtype", p.tensor(node.outputs[0]).dtype});
  return r;
}

}  // namespace tilecast
