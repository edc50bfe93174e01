// Further pointwise operators: functions of one number, activations, logic, quantization.

#include <fmt/format.h>

#include "ops/gradient.h"
#include "ops/pointwise.h"

namespace tilecast {
namespace {

/// Each of two inputs gets the gradient where its element was chosen.
void backward_choice(GradientBuilder& g, const Node& node) {
  const TensorId dy = g.gradient(node.outputs[0]);
  for (const TensorId input : node.inputs) {
    if (!g.requires_grad(input)) continue;
    const TensorId chosen = g.op("compare", node.inputs);
    g.add_gradient(input, g.reduce_to(g.op("where", {chosen, dy}), input));
  }
}

/// One kernel for the input; the gradient of the slopes is summed in another.
void backward_prelu(GradientBuilder& g, const Node& node) {
  const TensorId dy = g.gradient(node.outputs[0]);
  if (g.requires_grad(node.inputs[0]))
    g.add_gradient(node.inputs[0], g.op("activation_backward", {dy, node.inputs[0]}));
  if (g.requires_grad(node.inputs[1])) {
    const TensorId slopes = g.op("activation_backward", {dy, node.inputs[0]});
    g.add_gradient(node.inputs[1], g.reduce_to(slopes, node.inputs[1]));
  }
}

// quantize and dequantize: x, scale, zero point; the scale is of the tensor, of a channel or of a
// block.
std::vector<TensorSpec> infer_quantize(const OpContext& context) {
  const Tensor& x = context.input(0);
  return {
      {.shape = x.shape, .dtype = context.attribute<DType>("dtype"), .contiguous = x.contiguous}};
}

OpDef quantizing(OpDef op) {
  op.max_inputs = 3;
  op.attributes = {
      {.name = "dtype", .doc = "of the output", .type = AttributeType::kDType, .required = true}};
  op.infer = infer_quantize;
  op.operands = [](GraphBuilder& b, const GivenSizes& s) {
    Operands operands = row_operands(b, s);
    operands.attributes = {{"dtype", s.dtype() == DType::kInt8 ? DType::kFp32 : DType::kInt8}};
    return operands;
  };
  op.example = "x: fp32[64, 256] s: fp32[1] {dtype=int8}";
  return op;
}

OpDef with_mask(OpDef op) {
  op.infer = infer_compare;
  op.max_inputs = 2;
  return op;
}

/// Functions of one number that a single instruction or a short polynomial computes; all count as
/// one FLOP, as in pointwise.cc.
std::vector<OpDef> elementary() {
  struct Function {
    std::string_view name, doc, aten, onnx;
  };
  constexpr Function kFunctions[] = {
      {"abs", "absolute value", "aten::abs", "Abs"},
      {"erf", "error function", "aten::erf", "Erf"},
      {"reciprocal", "1 / x", "aten::reciprocal", "Reciprocal"},
      {"log1p", "log(1 + x)", "aten::log1p", ""},
      {"expm1", "e^x - 1", "aten::expm1", ""},
      {"tan", "tangent", "aten::tan", "Tan"},
      {"asin", "arc sine", "aten::asin", "Asin"},
      {"acos", "arc cosine", "aten::acos", "Acos"},
      {"atan", "arc tangent", "aten::atan", "Atan"},
      {"sinh", "hyperbolic sine", "aten::sinh", "Sinh"},
      {"cosh", "hyperbolic cosine", "aten::cosh", "Cosh"},
      {"asinh", "inverse hyperbolic sine", "aten::asinh", "Asinh"},
      {"acosh", "inverse hyperbolic cosine", "aten::acosh", "Acosh"},
      {"atanh", "inverse hyperbolic tangent", "aten::atanh", "Atanh"}};
  std::vector<OpDef> ops;
  for (const Function& f : kFunctions)
    ops.push_back(pointwise(f.name, f.doc, f.aten, f.onnx, 1, 1, backward_from_input));
  return ops;
}

/// FLOPs: comparisons, multiplications, additions and exponentials count as one each.
std::vector<OpDef> activations() {
  struct Activation {
    std::string_view name, doc, aten, onnx;
    int64_t flops;
  };
  constexpr Activation kActivations[] = {
      {"clip", "x within two limits", "aten::clamp", "Clip", 2},
      {"leaky_relu", "x, or c x where it is negative", "aten::leaky_relu", "LeakyRelu", 2},
      {"elu", "x, or c (e^x - 1) where it is negative", "aten::elu", "Elu", 4},
      {"selu", "elu, scaled", "aten::selu", "Selu", 5},
      {"celu", "x, or c (e^(x / c) - 1) where it is negative", "aten::celu", "Celu", 5},
      {"hard_sigmoid", "c x + d within 0 and 1", "aten::hardsigmoid", "HardSigmoid", 4},
      {"hard_swish", "x hard_sigmoid(x)", "aten::hardswish", "HardSwish", 5},
      {"mish", "x tanh(softplus(x))", "aten::mish", "Mish", 6},
      {"softsign", "x / (1 + |x|)", "", "Softsign", 3},
      {"thresholded_relu", "x, or 0 up to a threshold", "aten::threshold", "ThresholdedRelu", 1}};
  std::vector<OpDef> ops;
  for (const Activation& a : kActivations)
    ops.push_back(pointwise(a.name, a.doc, a.aten, a.onnx, 1, a.flops, backward_from_input));
  return ops;
}

}  // namespace

std::vector<OpDef> function_ops() {
  std::vector<OpDef> ops = elementary();
  for (OpDef& op : activations()) ops.push_back(std::move(op));
  ops.push_back(pointwise("sign", "-1, 0 or 1", "aten::sign", "Sign", 1, 1, nullptr));
  ops.push_back(pointwise("round", "to a whole number: floor, ceil, round, trunc", "aten::round",
                          "Round", 1, 1, nullptr));
  ops.push_back(
      pointwise("maximum", "the larger of x and y", "aten::maximum", "Max", 2, 1, backward_choice));
  ops.push_back(pointwise("minimum", "the smaller of x and y", "aten::minimum", "Min", 2, 1,
                          backward_choice));
  ops.push_back(pointwise("modulo", "the remainder of x / y", "aten::remainder.Tensor", "Mod", 2, 3,
                          nullptr));
  ops.push_back(pointwise("atan2", "the angle of (y, x)", "aten::atan2", "", 2, 2, nullptr));
  ops.push_back(pointwise("bitwise", "x & y and other functions of bits",
                          "aten::bitwise_and.Tensor", "BitwiseAnd", 1, 1, nullptr));
  ops.back().max_inputs = 2;
  ops.push_back(with_mask(pointwise("logical", "x and y, or, not and other logic",
                                    "aten::logical_and", "And", 1, 1, nullptr)));
  ops.push_back(pointwise("prelu", "x, or y x where it is negative, with trained y",
                          "aten::_prelu_kernel", "PRelu", 2, 2, backward_prelu));
  ops.push_back(
      quantizing(pointwise("quantize", "x / scale + zero point, rounded, in fewer bits",
                           "aten::quantize_per_tensor", "QuantizeLinear", 2, 5, nullptr)));
  ops.push_back(quantizing(pointwise("dequantize", "(x - zero point) scale",
                                     "aten::dequantize.self", "DequantizeLinear", 2, 2, nullptr)));
  return ops;
}

}  // namespace tilecast
