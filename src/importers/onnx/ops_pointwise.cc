// Operators on single elements. Those whose inputs map one to one to an operator of the table are
// found by their name there (OpDef::onnx); here are those with constants, casts and masks.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "importers/onnx/calls.h"
#include "importers/onnx/shapes.h"
#include "ops/op_def.h"

namespace tilecast {
namespace {

/// x by a constant that PyTorch's code has as a number in the program: `scalar` for x first,
/// `reversed` for the constant first, both operands of the same shape otherwise.
struct Binary {
  std::string_view tensor, scalar, reversed;
};

/// A constant is a scalar only if the result has the shape of the other input.
bool is_number(const OnnxCall& call, size_t constant, size_t other) {
  return call.is_scalar(constant) && call.shape(constant).size() <= call.shape(other).size();
}

void translate_binary(OnnxCall& call, const Binary& op) {
  if (!op.scalar.empty() && is_number(call, 1, 0))
    return call.set(0, call.op(op.scalar, {call.tensor(0)}));
  if (!op.reversed.empty() && is_number(call, 0, 1))
    return call.set(0, call.op(op.reversed, {call.tensor(1)}));
  call.set(0, call.op(op.tensor, {call.tensor(0), call.tensor(1)}));
}

void translate_add(OnnxCall& call) { translate_binary(call, {"add", "add_scalar", "add_scalar"}); }
void translate_sub(OnnxCall& call) { translate_binary(call, {"sub", "add_scalar", "rsub_scalar"}); }
void translate_mul(OnnxCall& call) { translate_binary(call, {"mul", "mul_scalar", "mul_scalar"}); }
void translate_div(OnnxCall& call) {
  if (is_number(call, 0, 1) && call.constant(0)->number(0) == 1)
    return call.set(0, call.op("reciprocal", {call.tensor(1)}));
  translate_binary(call, {"div", "div_scalar", ""});
}

/// Squares and cubes are computed by multiplication.
void translate_pow(OnnxCall& call) {
  if (!is_number(call, 1, 0)) return translate_binary(call, {"pow", "", ""});
  const double exponent = call.constant(1)->number(0);
  const bool whole = exponent == 2 || exponent == 3;
  const std::string_view op = whole              ? "integer_pow"
                              : exponent == 0.5  ? "sqrt"
                              : exponent == -0.5 ? "rsqrt"
                              : exponent == -1   ? "reciprocal"
                                                 : "pow_scalar";
  call.set(0, exponent == 1 ? call.tensor(0) : call.op(op, {call.tensor(0)}));
}

/// Sum, Max, Min and Mean of any number of tensors.
template <const char* kOp>
void translate_fold(OnnxCall& call) {
  TensorId result = call.tensor(0);
  for (size_t i = 1; i < call.input_count(); ++i) result = call.op(kOp, {result, call.tensor(i)});
  if (call.node().op == "Mean") result = call.op("div_scalar", {result});
  call.set(0, result);
}
constexpr char kAdd[] = "add";
constexpr char kMaximum[] = "maximum";
constexpr char kMinimum[] = "minimum";

void translate_extreme(OnnxCall& call) {
  const bool max = call.node().op == "Max";
  if (call.input_count() == 2) {
    const std::string_view scalar = max ? "maximum_scalar" : "clip";
    return translate_binary(call, {max ? kMaximum : kMinimum, scalar, scalar});
  }
  max ? translate_fold<kMaximum>(call) : translate_fold<kMinimum>(call);
}

/// Tensor.contiguous, or a function that returns its input, like dropout.
void translate_identity(OnnxCall& call) {
  const OnnxValue& x = call.value(0);
  const bool copied = call.node().makes_contiguous && x.tensor >= 0;
  call.set(0, copied ? OnnxValue{.tensor = call.op("copy", {x.tensor})} : x);
}

void translate_dropout(OnnxCall& call) {
  call.set(0, call.value(0));
  if (call.wants(1)) call.set(1, call.op("compare", {call.tensor(0)}));
}

TensorId cast_to(OnnxCall& call, TensorId x, DType dtype) {
  return call.tensor_info(x).dtype == dtype ? x : call.op("cast", {x}, {{"dtype", dtype}});
}

void translate_cast(OnnxCall& call) {
  const DType to =
      call.node().op == "CastLike" ? call.dtype(1) : call.dtype_of(call.integer("to", 0));
  if (call.dtype(0) == to) return call.set(0, call.value(0));
  call.set(0, cast_to(call, call.tensor(0), to));
}

/// A scalar operand is part of the kernel.
void translate_compare(OnnxCall& call) {
  translate_binary(call, {"compare", "compare", "compare"});
}

void translate_one_input_mask(OnnxCall& call) { call.set(0, call.op("compare", {call.tensor(0)})); }

void translate_logical(OnnxCall& call) {
  std::vector<TensorId> inputs;
  for (size_t i = 0; i < call.input_count(); ++i) inputs.push_back(call.tensor(i));
  call.set(0, call.op("logical", inputs));
}

void translate_where(OnnxCall& call) {
  const TensorId mask = cast_to(call, call.tensor(0), DType::kBool);
  const Shape shape =
      broadcast_shapes(call, call.shape(0), broadcast_shapes(call, call.shape(1), call.shape(2)));
  std::vector<TensorId> inputs = {mask};
  for (const size_t i : {size_t{1}, size_t{2}}) {
    if (!call.is_scalar(i)) inputs.push_back(call.tensor(i));
  }
  // Both are numbers: the kernel reads the mask alone and makes their dtype.
  if (inputs.size() == 1) return call.set(0, cast_to(call, mask, call.dtype(1)));
  const TensorId result = call.op("where", inputs);
  if (call.shape_of(result) == shape) return call.set(0, result);
  inputs = {mask, call.tensor(1), call.tensor(2)};
  call.set(0, call.op("where", inputs));
}

/// Limits are numbers in the kernel.
void translate_clip(OnnxCall& call) {
  const auto infinite = [&](size_t i) {
    return !call.has(i) || (call.is_scalar(i) && std::abs(call.constant(i)->number(0)) > 1e37);
  };
  const auto is = [&](size_t i, double limit) {
    return call.has(i) && call.is_scalar(i) && call.constant(i)->number(0) == limit;
  };
  if (is(1, 0) && infinite(2)) return call.set(0, call.op("relu", {call.tensor(0)}));
  call.set(0, call.op("clip", {call.tensor(0)}));
}

/// torch.nn.GELU is one kernel, with erf or tanh.
void translate_gelu(OnnxCall& call) { call.set(0, call.op("gelu", {call.tensor(0)})); }

/// The remainder by a number is one kernel of a few operations, like a limit.
void translate_mod(OnnxCall& call) { translate_binary(call, {"modulo", "clip", ""}); }

void translate_prelu(OnnxCall& call) {
  // A slope for each channel has the shape [c, 1, 1].
  call.set(0, call.op("prelu", {call.tensor(0), call.tensor(1)}));
}

void translate_bitwise(OnnxCall& call) {
  std::vector<TensorId> inputs = {call.tensor(0)};
  if (call.has(1) && !call.is_scalar(1)) inputs.push_back(call.tensor(1));
  call.set(0, call.op("bitwise", inputs));
}

template <const char* kOp>
void translate_unary(OnnxCall& call) {
  call.set(0, call.op(kOp, {call.tensor(0)}));
}
constexpr char kSoftplus[] = "softplus";
constexpr char kSilu[] = "silu";
constexpr char kRound[] = "round";
constexpr char kClip[] = "clip";

void translate_addcmul(OnnxCall& call) {
  if (call.input_count() != 3) call.fail("expected three inputs");
  call.set(0, call.op("addcmul", {call.tensor(0), call.tensor(1), call.tensor(2)}));
}

}  // namespace

std::vector<OnnxOp> onnx_pointwise_ops() {
  return {{"Add", translate_add},
          {"Sub", translate_sub},
          {"Mul", translate_mul},
          {"Div", translate_div},
          {"Pow", translate_pow},
          {"Sum", translate_fold<kAdd>},
          {"Mean", translate_fold<kAdd>},
          {"Max", translate_extreme},
          {"Min", translate_extreme},
          {"Identity", translate_identity},
          {"Dropout", translate_dropout},
          {"Cast", translate_cast},
          {"CastLike", translate_cast},
          {"Equal", translate_compare},
          {"Less", translate_compare},
          {"LessOrEqual", translate_compare},
          {"Greater", translate_compare},
          {"GreaterOrEqual", translate_compare},
          {"IsNaN", translate_one_input_mask},
          {"IsInf", translate_one_input_mask},
          {"And", translate_logical},
          {"Or", translate_logical},
          {"Xor", translate_logical},
          {"Not", translate_logical},
          {"Where", translate_where},
          {"Clip", translate_clip},
          {"Gelu", translate_gelu},
          {"Mod", translate_mod},
          {"PRelu", translate_prelu},
          {"BitwiseAnd", translate_bitwise},
          {"BitwiseOr", translate_bitwise},
          {"BitwiseXor", translate_bitwise},
          {"BitwiseNot", translate_bitwise},
          {"BitShift", translate_bitwise},
          {"Softplus", translate_unary<kSoftplus>},
          {"Swish", translate_unary<kSilu>},
          {"Floor", translate_unary<kRound>},
          {"Ceil", translate_unary<kRound>},
          {"Shrink", translate_unary<kClip>},
          {kTorchAddcmul, translate_addcmul}};
}

}  // namespace tilecast
