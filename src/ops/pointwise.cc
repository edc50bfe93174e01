// Pointwise operators: every output element depends on the same element of each input, which may be
// broadcast. FLOPs per element count each arithmetic operation and each transcendental once.

#include "ops/pointwise.h"

#include <fmt/format.h>

#include "ops/gradient.h"
#include "ops/promotion.h"

namespace tilecast {
namespace {

std::vector<TensorSpec> infer_where(const OpContext& context) {
  if (context.input(0).dtype != DType::kBool)
    context.fail(
        fmt::format("expected a bool mask first, found {}", dtype_name(context.input(0).dtype)));
  return {pointwise_spec(context, promoted_dtype(context, 1))};
}

std::vector<TensorSpec> infer_cast(const OpContext& context) {
  return {pointwise_spec(context, context.attribute<DType>("dtype"))};
}

/// Dropout also writes its mask.
std::vector<TensorSpec> infer_dropout(const OpContext& context) {
  const TensorSpec spec = pointwise_spec(context, context.input(0).dtype);
  TensorSpec mask = spec;
  mask.dtype = DType::kBool;
  return {spec, mask};
}

// Backward rules, after PyTorch's derivatives.yaml.

void backward_sub(GradientBuilder& g, const Node& node) {
  const TensorId dy = g.gradient(node.outputs[0]);
  if (g.requires_grad(node.inputs[0]))
    g.add_gradient(node.inputs[0], g.reduce_to(dy, node.inputs[0]));
  if (g.requires_grad(node.inputs[1]))
    g.add_gradient(node.inputs[1], g.reduce_to(g.op("neg", {dy}), node.inputs[1]));
}

void backward_mul(GradientBuilder& g, const Node& node) {
  const TensorId dy = g.gradient(node.outputs[0]);
  for (size_t i : {size_t{0}, size_t{1}}) {
    const TensorId input = node.inputs[i];
    if (g.requires_grad(input))
      g.add_gradient(input, g.reduce_to(g.op("mul", {dy, node.inputs[1 - i]}), input));
  }
}

void backward_div(GradientBuilder& g, const Node& node) {
  const TensorId dy = g.gradient(node.outputs[0]);
  const TensorId a = node.inputs[0];
  const TensorId b = node.inputs[1];
  if (g.requires_grad(a)) g.add_gradient(a, g.reduce_to(g.op("div", {dy, b}), a));
  if (g.requires_grad(b)) {
    const TensorId ratio = g.op("div", {g.op("div", {a, b}), b});
    g.add_gradient(b, g.reduce_to(g.op("mul", {g.op("neg", {dy}), ratio}), b));
  }
}

/// dy times a constant: the backward of mul_scalar and div_scalar.
template <const char* kOp>
void backward_scale(GradientBuilder& g, const Node& node) {
  g.add_gradient(node.inputs[0], g.op(kOp, {g.gradient(node.outputs[0])}));
}
constexpr char kMulScalar[] = "mul_scalar";
constexpr char kDivScalar[] = "div_scalar";
constexpr char kNeg[] = "neg";

/// grad · (exponent · x^(exponent-1)): three kernels.
void backward_pow(GradientBuilder& g, const Node& node) {
  const TensorId power = g.op("integer_pow", {node.inputs[0]});
  const TensorId scaled = g.op("mul_scalar", {power});
  g.add_gradient(node.inputs[0], g.op("mul", {g.gradient(node.outputs[0]), scaled}));
}

/// -0.5 · grad · y³
void backward_rsqrt(GradientBuilder& g, const Node& node) {
  const TensorId cube = g.op("integer_pow", {node.outputs[0]});
  const TensorId scaled = g.op("mul_scalar", {g.gradient(node.outputs[0])});
  g.add_gradient(node.inputs[0], g.op("mul", {scaled, cube}));
}

void backward_where(GradientBuilder& g, const Node& node) {
  if (g.requires_grad(node.inputs[1]))
    g.add_gradient(node.inputs[1], g.op("where", {node.inputs[0], g.gradient(node.outputs[0])}));
}

/// The gradient is halved for equal values and dropped where the other input is larger.
void backward_maximum(GradientBuilder& g, const Node& node) {
  const TensorId dy = g.gradient(node.outputs[0]);
  const TensorId equal = g.op("compare", {node.inputs[0]});
  const TensorId half = g.op("div_scalar", {dy});
  const TensorId kept = g.op("where", {equal, half, dy});
  const TensorId less = g.op("compare", {node.inputs[0]});
  g.add_gradient(node.inputs[0], g.op("where", {less, kept}));
}

/// Each factor has dy times the other one and the constant.
void backward_addcmul(GradientBuilder& g, const Node& node) {
  const TensorId dy = g.gradient(node.outputs[0]), x = node.inputs[0];
  if (g.requires_grad(x)) g.add_gradient(x, g.reduce_to(dy, x));
  for (size_t i = 1; i < node.inputs.size(); ++i) {
    const TensorId input = node.inputs[i], other = node.inputs[node.inputs.size() - i];
    if (!g.requires_grad(input)) continue;
    const TensorId scaled = g.op("mul_scalar", {other});
    g.add_gradient(input, g.reduce_to(g.op("mul", {dy, scaled}), input));
  }
}

void backward_dropout(GradientBuilder& g, const Node& node) {
  g.add_gradient(node.inputs[0],
                 g.op("dropout_backward", {g.gradient(node.outputs[0]), node.outputs[1]}));
}

void backward_cast(GradientBuilder& g, const Node& node) {
  const DType to = g.tensor(node.inputs[0]).dtype;
  g.add_gradient(node.inputs[0], g.op("cast", {g.gradient(node.outputs[0])}, {{"dtype", to}}));
}

/// A mask in addition to the values.
Operands where_operands(GraphBuilder& b, const GivenSizes& s) {
  const Shape shape = {s["rows"], s["columns"]};
  return {{b.input("m", shape, DType::kBool), b.input("x", shape, s.dtype())}, {}};
}

/// fp32 is cast to bf16, all others to fp32.
Operands cast_operands(GraphBuilder& b, const GivenSizes& s) {
  Operands operands = row_operands(b, s);
  operands.attributes = {{"dtype", s.dtype() == DType::kFp32 ? DType::kBf16 : DType::kFp32}};
  return operands;
}

Operands fused_operands(GraphBuilder& b, const GivenSizes& s) {
  Operands operands = row_operands(b, s);
  operands.attributes = {{"flops_per_element", 1}};
  return operands;
}

OpDef with_inputs(int least, int most, OpDef op) {
  op.min_inputs = least;
  op.max_inputs = most;
  return op;
}

/// torch.autocast runs it in fp32.
OpDef in_fp32(OpDef op) {
  op.autocast = AutocastClass::kFp32;
  return op;
}

/// One of the operators that represent all pointwise operators in training.
OpDef in_training(OpDef op) {
  op.random_sizes = RandomSizes{.in_training = true};
  return op;
}

OpDef as_module(OpDef op, Decompose rule) {
  op.decompose = rule;
  return op;
}

OpDef with_infer(OpDef op, std::vector<TensorSpec> (*infer)(const OpContext&)) {
  op.infer = infer;
  return op;
}

/// ReLU6, in the same kernel, keeps its input (hardtanh_backward).
void backward_relu(GradientBuilder& g, const Node& node) {
  if (attribute<int64_t>(node, "bounded") != 0) return backward_from_input(g, node);
  backward_from_output(g, node);
}

OpDef bounded(OpDef op) {
  op.attributes.push_back(flag_attribute("bounded", "1: at most 6"));
  return op;
}

}  // namespace

std::vector<OpDef> pointwise_ops() {  // NOLINT(readability-function-size): a table
  std::vector<OpDef> ops = {
      in_training(pointwise("add", "x + y", "aten::add.Tensor", "Add", 2, 1, pass_on)),
      pointwise("add_", "x += y, in place", "aten::add_.Tensor", "", 2, 1, nullptr),
      pointwise("sub", "x - y", "aten::sub.Tensor", "Sub", 2, 1, backward_sub),
      pointwise("mul", "x * y", "aten::mul.Tensor", "Mul", 2, 1, backward_mul),
      pointwise("div", "x / y", "aten::div.Tensor", "Div", 2, 1, backward_div),
      in_fp32(pointwise("pow", "x to the power of y: exp(y log x)", "aten::pow.Tensor_Tensor",
                        "Pow", 2, 3, nullptr)),
      pointwise("add_scalar", "x + c", "aten::add.Scalar", "", 1, 1, pass_on),
      pointwise("mul_scalar", "x * c", "aten::mul.Scalar", "", 1, 1, backward_scale<kMulScalar>),
      pointwise("div_scalar", "x / c", "aten::div.Scalar", "", 1, 1, backward_scale<kDivScalar>),
      pointwise("rsub_scalar", "c - x", "aten::rsub.Scalar", "", 1, 1, backward_scale<kNeg>),
      in_fp32(pointwise("pow_scalar", "x to any constant power: exp(c log x)",
                        "aten::pow.Tensor_Scalar", "", 1, 3, nullptr)),
      in_fp32(pointwise("integer_pow", "x squared or cubed, by multiplication",
                        "aten::pow.Tensor_Scalar", "", 1, 2, backward_pow)),
      pointwise("maximum_scalar", "max(x, c)", "aten::maximum", "Max", 1, 1, backward_maximum),
      pointwise("neg", "-x", "aten::neg", "Neg", 1, 1, backward_scale<kNeg>),
      pointwise("sqrt", "square root", "aten::sqrt", "Sqrt", 1, 1, backward_from_output),
      in_fp32(
          pointwise("exp", "e to the power of x", "aten::exp", "Exp", 1, 1, backward_from_output)),
      in_fp32(pointwise("rsqrt", "1 / square root", "aten::rsqrt", "", 1, 2, backward_rsqrt)),
      pointwise("cos", "cosine", "aten::cos", "Cos", 1, 1, nullptr),
      pointwise("sin", "sine", "aten::sin", "Sin", 1, 1, nullptr),
      in_fp32(pointwise("log", "natural logarithm", "aten::log", "Log", 1, 1, nullptr)),
      bounded(pointwise("relu", "max(x, 0)", "aten::relu", "Relu", 1, 1, backward_relu)),
      in_training(pointwise("gelu", "x/2 (1 + erf(x / sqrt 2))", "aten::gelu", "Gelu", 1, 5,
                            backward_from_input)),
      as_module(pointwise("gelu_new", "gelu by tanh", "", "", 1, 9, backward_from_input),
                decompose_gelu_new),
      as_module(pointwise("quick_gelu", "x sigmoid(1.702 x)", "", "", 1, 6, backward_from_input),
                decompose_quick_gelu),
      as_module(pointwise("relu2", "relu^2", "", "", 1, 2, backward_from_input), decompose_relu2),
      pointwise("softplus", "log(1 + e^x)", "", "", 1, 4, backward_from_input),
      pointwise("silu", "x / (1 + exp(-x))", "aten::silu", "", 1, 4, backward_from_input),
      pointwise("tanh", "hyperbolic tangent", "aten::tanh", "Tanh", 1, 1, backward_from_output),
      pointwise("sigmoid", "1 / (1 + exp(-x))", "aten::sigmoid", "Sigmoid", 1, 4,
                backward_from_output),
      pointwise("activation_backward",
                "gradient of an activation from dy and the saved tensor, in one kernel",
                "aten::tanh_backward", "", 2, 3, nullptr),
      pointwise("dropout_backward", "dy * mask * scale", "aten::native_dropout_backward", "", 2, 2,
                nullptr),
      pointwise("lerp", "x + w (y - x), in place (optimizer)", "aten::_foreach_lerp_", "", 2, 3,
                nullptr),
      with_inputs(1, 2,
                  pointwise("xlogy", "x log y; of one input x log x", "aten::xlogy.Tensor", "", 2,
                            2, nullptr)),
      with_inputs(2, 3,
                  pointwise("addcmul", "x + c y z; of two inputs x + c y², in place (optimizer)",
                            "aten::addcmul", "", 3, 3, backward_addcmul)),
      pointwise("addcdiv", "x + c y / z, in place (optimizer)", "aten::_foreach_addcdiv_", "", 3, 3,
                nullptr),
      with_infer(
          pointwise("compare", "x < y and other comparisons", "aten::lt", "Less", 1, 1, nullptr),
          infer_compare),
      in_training(with_infer(pointwise("copy", "dense copy of a strided tensor", "aten::clone",
                                       "Identity", 1, 0, pass_on),
                             infer_same)),
  };
  ops[ops.size() - 2].max_inputs = 2;

  OpDef dropout = with_infer(
      pointwise("dropout", "zeroes a share of the elements, scales the rest, keeps the mask",
                "aten::native_dropout", "Dropout", 1, 2, backward_dropout),
      infer_dropout);
  ops.push_back(in_training(as_module(dropout, decompose_dropout)));

  OpDef where = with_infer(pointwise("where", "x where the mask is true, else y or a constant",
                                     "aten::where.self", "Where", 2, 0, backward_where),
                           infer_where);
  where.max_inputs = 3;
  where.operands = where_operands;
  where.example = "m: bool[1, 256] x: fp32[64, 256]";
  ops.push_back(where);

  OpDef cast = with_infer(
      pointwise("cast", "to another dtype", "aten::_to_copy", "Cast", 1, 0, backward_cast),
      infer_cast);
  cast.attributes = {{.name = "dtype",
                      .doc = "the dtype to write",
                      .type = AttributeType::kDType,
                      .required = true}};
  cast.operands = cast_operands;
  cast.example = "x: fp32[64, 256] {dtype=bf16}";
  ops.push_back(cast);

  OpDef fused = pointwise("fused_pointwise", "a chain of pointwise operators in one kernel", "", "",
                          1, 1, nullptr);
  fused.max_inputs = 64;
  fused.is_fused = true;
  fused.operands = fused_operands;
  fused.attributes = {{.name = "flops_per_element", .doc = "sum over the chain", .required = true}};
  fused.example = "x: fp32[64, 256] y: fp32[64, 256] {flops_per_element=3}";
  ops.push_back(fused);
  return ops;
}

}  // namespace tilecast
