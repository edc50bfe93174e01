// Products of training in FP8, as Transformer Engine runs them: casts with their scales, and
// products whose operands both have 8 bits.

#include <fmt/format.h>

#include <algorithm>

#include "base/checked.h"
#include "ops/gradient.h"
#include "ops/op_def.h"

namespace tilecast {
namespace {

int64_t last_of(const Tensor& tensor) {
  return tensor.shape.empty() ? 1 : std::max<int64_t>(1, tensor.shape.back());
}

// fp8_cast: x [..., columns] in 8 bits, and with `transposed` that as [columns, rows].
std::vector<TensorSpec> infer_fp8_cast(const OpContext& context) {
  const Tensor& x = context.input(0);
  std::vector<TensorSpec> specs = {{.shape = x.shape, .dtype = DType::kFp8}};
  if (context.integer("transposed") != 0)
    specs.push_back(
        {.shape = {last_of(x), element_count(x.shape) / last_of(x)}, .dtype = DType::kFp8});
  return specs;
}

/// One kernel writes both layouts. Where the scale is of the tensor itself, another finds its
/// largest value before.
void work_fp8_cast(const OpContext& context, std::vector<Kernel>& kernels) {
  const Tensor& x = context.input(0);
  Kernel kernel{.shape = Stream{.elements = element_count(x.shape)}, .dtype = x.dtype};
  kernel.flops = element_count(x.shape);
  kernel.read_bytes = tensor_bytes(x);
  if (context.integer("scaled_first") != 0) kernels.push_back(kernel);
  for (size_t i = 0; i < context.node.outputs.size(); ++i)
    kernel.write_bytes = checked_add(kernel.write_bytes, tensor_bytes(context.output(i)));
  kernels.push_back(kernel);
}

/// A product of rows of `a` and rows of `b`, both of the reduction's length: [m, n].
Kernel fp8_product(const OpContext& context, size_t a, size_t b) {
  const int64_t k = last_of(context.input(a));
  const Gemm sizes{.m = element_count(context.input(a).shape) / k,
                   .n = element_count(context.input(b).shape) / k,
                   .k = k,
                   .trans_b = 1};
  Kernel kernel{.shape = sizes, .dtype = context.output(0).dtype};
  kernel.scheme = context.attribute<QuantScheme>("scheme");
  kernel.quantized_input = true;
  kernel.flops = checked_product({2, sizes.m, sizes.n, sizes.k});
  kernel.read_bytes = checked_add(tensor_bytes(context.input(a)), tensor_bytes(context.input(b)));
  kernel.write_bytes = tensor_bytes(context.output(0));
  return kernel;
}

void check_operand(const OpContext& context, size_t a, size_t b) {
  const int64_t k = last_of(context.input(a));
  if (context.input(a).dtype != DType::kFp8 || context.input(b).dtype != DType::kFp8)
    context.fail(fmt::format("expected two operands of fp8, found {} and {}",
                             dtype_name(context.input(a).dtype),
                             dtype_name(context.input(b).dtype)));
  if (element_count(context.input(b).shape) % k != 0)
    context.fail(fmt::format("expected rows of {} elements, found {}", k,
                             format_shape(context.input(b).shape)));
}

// fp8_linear: x, weight, and both in 8 bits, and these transposed for the gradients, and a bias.
enum Fp8Operand : size_t { kX, kWeight, kX8, kWeight8, kXTransposed, kWeightTransposed, kBias };

std::vector<TensorSpec> infer_fp8_linear(const OpContext& context) {
  check_operand(context, kX8, kWeight8);
  const Shape &x = context.input(kX).shape, &x8 = context.input(kX8).shape;
  if (x.empty() || x8.empty() || x.back() != x8.back())
    context.fail(
        fmt::format("expected x and x in 8 bits with rows of the same length, found {} and {}",
                    format_shape(x), format_shape(x8)));
  TensorSpec spec{.shape = context.input(kX).shape, .dtype = context.input(kX).dtype};
  spec.shape.back() = element_count(context.input(kWeight8).shape) / last_of(context.input(kX8));
  return {spec};
}

void work_fp8_linear(const OpContext& context, std::vector<Kernel>& kernels) {
  kernels.push_back(fp8_product(context, kX8, kWeight8));
}

/// The gradient of the output is cast once for both products.
void backward_fp8_linear(GradientBuilder& g, const Node& node) {
  const auto scheme = attribute<QuantScheme>(node, "scheme");
  const auto transposed = attribute<int64_t>(node, "transposed");
  const TensorId x = node.inputs[kX], w = node.inputs[kWeight];
  const TensorId dy = g.dense(g.gradient(node.outputs[0]));
  const std::vector<TensorId> casts = g.add(
      "fp8_cast", {dy},
      {{"transposed", transposed}, {"scaled_first", attribute<int64_t>(node, "scaled_first")}});
  const auto product = [&](TensorId left, TensorId right, DType dtype) {
    return g.op("fp8_gemm", {left, right}, {{"scheme", scheme}, {"dtype", dtype}});
  };
  if (g.requires_grad(x)) {
    const TensorId dx = product(casts[0], node.inputs[kWeightTransposed], g.tensor(x).dtype);
    g.add_gradient(x, g.op("view", {dx}, {{"shape", g.tensor(x).shape}}));
  }
  if (g.requires_grad(w)) {
    const Shape rows = {last_of(g.tensor(dy)),
                        element_count(g.tensor(dy).shape) / last_of(g.tensor(dy))};
    TensorId dyt = casts.back();
    if (transposed == 0) {
      const TensorId flat = g.op("view", {casts[0]}, {{"shape", Shape{rows[1], rows[0]}}});
      dyt = g.op("transpose", {flat}, {{"order", Shape{1, 0}}});
    }
    const TensorId xt = node.inputs[kXTransposed];
    const bool swapped = attribute<int64_t>(node, "weight_layout") == 1;
    const DType dtype = g.tensor(w).dtype;
    g.add_gradient(w, swapped ? product(xt, dyt, dtype) : product(dyt, xt, dtype));
  }
  if (node.inputs.size() > kBias && g.requires_grad(node.inputs[kBias]))
    g.add_gradient(node.inputs[kBias], g.reduce_to(dy, node.inputs[kBias]));
}

// fp8_gemm: a [..., k] · b [n, k]ᵀ
std::vector<TensorSpec> infer_fp8_gemm(const OpContext& context) {
  check_operand(context, 0, 1);
  const int64_t k = last_of(context.input(0));
  return {{.shape = {element_count(context.input(0).shape) / k,
                     element_count(context.input(1).shape) / k},
           .dtype = context.attribute<DType>("dtype")}};
}

void work_fp8_gemm(const OpContext& context, std::vector<Kernel>& kernels) {
  kernels.push_back(fp8_product(context, 0, 1));
}

Operands fp8_gemm_operands(GraphBuilder& b, const GivenSizes& s) {
  return {{b.input("a", {s["rows"], s["columns"]}, DType::kFp8),
           b.input("b", {s["columns"], s["columns"]}, DType::kFp8)},
          {{"scheme", QuantScheme::kFp8}, {"dtype", DType::kBf16}}};
}

Operands fp8_linear_operands(GraphBuilder& b, const GivenSizes& s) {
  const Shape x = {s["rows"], s["columns"]}, w = {s["columns"], s["columns"]};
  Operands operands;
  for (const DType dtype : {DType::kBf16, DType::kFp8, DType::kFp8}) {
    operands.inputs.push_back(b.input("x", x, dtype));
    operands.inputs.push_back(b.input("w", w, dtype));
  }
  operands.attributes = {{"scheme", QuantScheme::kFp8}};
  return operands;
}

AttributeDef scheme_attribute() {
  return {
      .name = "scheme", .doc = "of the scales", .type = AttributeType::kScheme, .required = true};
}

}  // namespace

std::vector<OpDef> fp8_ops() {
  const AttributeDef transposed =
      flag_attribute("transposed", "1: a transposed copy is written too");
  const AttributeDef scaled_first =
      flag_attribute("scaled_first", "1: another kernel finds the largest value first");
  return {
      {.name = "fp8_cast",
       .doc = "x [..., columns] in 8 bits for a product of training",
       .aten = "",
       .onnx = "",
       .attributes = {transposed, scaled_first},
       .infer = infer_fp8_cast,
       .work = work_fp8_cast,
       .example = "x: bf16[64, 256] {transposed=1}"},
      {.name = "fp8_linear",
       .doc = "x [..., k] times weight [n, k] transposed in 8 bits, plus bias [n]: x, weight, both "
              "in 8 bits, both transposed, bias",
       .aten = "",
       .onnx = "",
       .min_inputs = 6,
       .max_inputs = 7,
       .attributes = {scheme_attribute(), transposed, scaled_first,
                      flag_attribute("weight_layout", "0: weight is [n, k]; 1: weight is [k, n]")},
       .infer = infer_fp8_linear,
       .work = work_fp8_linear,
       .backward = backward_fp8_linear,
       .operands = fp8_linear_operands,
       .example = "x: bf16[64, 256] w: bf16[128, 256] a: fp8[64, 256] b: fp8[128, 256] c: fp8[256, "
                  "64] d: fp8[256, 128] {scheme=fp8}"},
      {.name = "fp8_gemm",
       .doc = "a [m, k] times b [n, k] transposed, both in 8 bits (backward of fp8_linear)",
       .aten = "aten::_scaled_mm",
       .onnx = "",
       .min_inputs = 2,
       .max_inputs = 2,
       .attributes = {scheme_attribute(),
                      {.name = "dtype",
                       .doc = "of the result",
                       .type = AttributeType::kDType,
                       .required = true}},
       .infer = infer_fp8_gemm,
       .work = work_fp8_gemm,
       .operands = fp8_gemm_operands,
       .example = "a: fp8[64, 256] b: fp8[128, 256] {scheme=fp8, dtype=bf16}"},
  };
}

}  // namespace tilecast
