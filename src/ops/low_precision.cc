// Products of training in FP8 and NVFP4, as Transformer Engine runs them: casts with their scales,
// and products whose operands both have few bits.

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "base/checked.h"
#include "ops/gradient.h"
#include "ops/op_def.h"
#include "ops/products.h"

namespace tilecast {
namespace {

int64_t last_of(const Tensor& tensor) {
  return tensor.shape.empty() ? 1 : std::max<int64_t>(1, tensor.shape.back());
}

/// The operators of one dtype.
struct Words {
  std::string_view cast, gemm;
};
constexpr Words words_of(DType dtype) {
  return dtype == DType::kFp4 ? Words{"fp4_cast", "fp4_gemm"} : Words{"fp8_cast", "fp8_gemm"};
}

/// A copy in few bits. NVFP4 has a scale of 8 bits for 16 elements of a row; scales of FP8 are not
/// counted.
TensorSpec narrow_copy(Shape shape, DType dtype) {
  TensorSpec spec{.shape = std::move(shape), .dtype = dtype};
  if (dtype == DType::kFp4)
    spec.stored_bytes = scheme_bytes(QuantScheme::kFp4, element_count(spec.shape), DType::kBf16);
  return spec;
}

// fp8_cast, fp4_cast: x [..., columns] in few bits, and with `transposed` that as [columns, rows].
template <DType kNarrow>
std::vector<TensorSpec> infer_cast(const OpContext& context) {
  const Tensor& x = context.input(0);
  std::vector<TensorSpec> specs = {narrow_copy(x.shape, kNarrow)};
  if (context.integer("transposed") != 0)
    specs.push_back(narrow_copy({last_of(x), element_count(x.shape) / last_of(x)}, kNarrow));
  return specs;
}

/// One kernel writes both layouts. Where the scale is of the tensor itself, another finds its
/// largest value before. Where columns are transformed first, a kernel of its own writes them
/// (Transformer Engine 2.8, NVFP4Quantizer::quantize_impl); matrix units transform 16 elements at a
/// time, which is not counted.
void work_cast(const OpContext& context, std::vector<Kernel>& kernels) {
  const Tensor& x = context.input(0);
  const bool apart = integer_or(context.node, "hadamard", 0) != 0;
  Kernel pass{.shape = Stream{.elements = element_count(x.shape)}, .dtype = x.dtype};
  pass.flops = element_count(x.shape);
  pass.read_bytes = tensor_bytes(x);
  if (context.integer("scaled_first") != 0) kernels.push_back(pass);
  kernels.push_back(pass);
  for (size_t i = 0; i < context.node.outputs.size(); ++i) {
    if (i > 0 && apart) kernels.push_back(pass);
    int64_t& written = kernels.back().write_bytes;
    written = checked_add(written, memory_bytes(context.output(i)));
  }
}

/// A product of rows of `a` and rows of `b`, both of the reduction's length: [m, n].
Kernel narrow_product(const OpContext& context, size_t a, size_t b) {
  const int64_t k = last_of(context.input(a));
  const Gemm sizes{.m = element_count(context.input(a).shape) / k,
                   .n = element_count(context.input(b).shape) / k,
                   .k = k,
                   .trans_b = 1};
  Kernel kernel{.shape = sizes, .dtype = context.output(0).dtype};
  kernel.scheme = context.attribute<QuantScheme>("scheme");
  kernel.quantized_input = true;
  kernel.flops = checked_product({2, sizes.m, sizes.n, sizes.k});
  kernel.read_bytes = checked_add(memory_bytes(context.input(a)), memory_bytes(context.input(b)));
  kernel.write_bytes = tensor_bytes(context.output(0));
  return kernel;
}

void check_operand(const OpContext& context, size_t a, size_t b, DType dtype) {
  const int64_t k = last_of(context.input(a));
  if (context.input(a).dtype != dtype || context.input(b).dtype != dtype)
    context.fail(fmt::format("expected two operands of {}, found {} and {}", dtype_name(dtype),
                             dtype_name(context.input(a).dtype),
                             dtype_name(context.input(b).dtype)));
  if (element_count(context.input(b).shape) % k != 0)
    context.fail(fmt::format("expected rows of {} elements, found {}", k,
                             format_shape(context.input(b).shape)));
}

// fp8_linear, fp4_linear: x, weight, and both in few bits, and these transposed for the gradients,
// and a bias.
enum NarrowOperand : size_t {
  kX,
  kWeight,
  kXRows,
  kWeightRows,
  kXTransposed,
  kWeightTransposed,
  kBias
};

template <DType kNarrow>
std::vector<TensorSpec> infer_narrow_linear(const OpContext& context) {
  check_operand(context, kXRows, kWeightRows, kNarrow);
  const Shape &x = context.input(kX).shape, &copy = context.input(kXRows).shape;
  if (x.empty() || copy.empty() || x.back() != copy.back())
    context.fail(
        fmt::format("expected x and x in {} bits with rows of the same length, found {} and {}",
                    dtype_bits(kNarrow), format_shape(x), format_shape(copy)));
  TensorSpec spec{.shape = context.input(kX).shape, .dtype = context.input(kX).dtype};
  spec.shape.back() =
      element_count(context.input(kWeightRows).shape) / last_of(context.input(kXRows));
  return {spec};
}

void work_narrow_linear(const OpContext& context, std::vector<Kernel>& kernels) {
  kernels.push_back(narrow_product(context, kXRows, kWeightRows));
}

/// The gradient of the output is cast once for both products.
template <DType kNarrow>
void backward_narrow_linear(GradientBuilder& g, const Node& node) {
  constexpr Words kWords = words_of(kNarrow);
  const auto scheme = attribute<QuantScheme>(node, "scheme");
  const auto transposed = attribute<int64_t>(node, "transposed");
  const TensorId x = node.inputs[kX], w = node.inputs[kWeight];
  const TensorId dy = g.dense(g.gradient(node.outputs[0]));
  std::vector<Attribute> cast = {{"transposed", transposed},
                                 {"scaled_first", attribute<int64_t>(node, "scaled_first")}};
  if (kNarrow == DType::kFp4) cast.push_back({"hadamard", transposed});
  const std::vector<TensorId> casts = g.add(kWords.cast, {dy}, std::move(cast));
  const auto product = [&](TensorId left, TensorId right, DType dtype) {
    return g.op(kWords.gemm, {left, right}, {{"scheme", scheme}, {"dtype", dtype}});
  };
  if (g.requires_grad(x)) {
    TensorId columns = node.inputs[kWeightTransposed];
    if (attribute<int64_t>(node, "weight_again") != 0) {
      const TensorId rows = node.inputs[kWeightRows];
      columns = g.op("copy", {g.op("transpose", {rows}, {{"order", Shape{1, 0}}})});
    }
    const TensorId dx = product(casts[0], columns, g.tensor(x).dtype);
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

// fp8_gemm, fp4_gemm: a [..., k] · b [n, k]ᵀ
template <DType kNarrow>
std::vector<TensorSpec> infer_narrow_gemm(const OpContext& context) {
  check_operand(context, 0, 1, kNarrow);
  const int64_t k = last_of(context.input(0));
  return {{.shape = {element_count(context.input(0).shape) / k,
                     element_count(context.input(1).shape) / k},
           .dtype = context.attribute<DType>("dtype")}};
}

void work_narrow_gemm(const OpContext& context, std::vector<Kernel>& kernels) {
  kernels.push_back(narrow_product(context, 0, 1));
}

constexpr QuantScheme scheme_of_operands(DType dtype) {
  return dtype == DType::kFp4 ? QuantScheme::kFp4 : QuantScheme::kFp8;
}

template <DType kNarrow>
Operands narrow_gemm_operands(GraphBuilder& b, const GivenSizes& s) {
  return {{b.input("a", {s["rows"], s["columns"]}, kNarrow),
           b.input("b", {s["columns"], s["columns"]}, kNarrow)},
          {{"scheme", scheme_of_operands(kNarrow)}, {"dtype", DType::kBf16}}};
}

template <DType kNarrow>
Operands narrow_linear_operands(GraphBuilder& b, const GivenSizes& s) {
  const Shape x = {s["rows"], s["columns"]}, w = {s["columns"], s["columns"]};
  Operands operands;
  for (const DType dtype : {DType::kBf16, kNarrow, kNarrow}) {
    operands.inputs.push_back(b.input("x", x, dtype));
    operands.inputs.push_back(b.input("w", w, dtype));
  }
  operands.attributes = {{"scheme", scheme_of_operands(kNarrow)}};
  return operands;
}

AttributeDef scheme_attribute() {
  return {
      .name = "scheme", .doc = "of the scales", .type = AttributeType::kScheme, .required = true};
}

AttributeDef transposed_attribute() {
  return flag_attribute("transposed", "1: a transposed copy is written too");
}
AttributeDef scaled_first_attribute() {
  return flag_attribute("scaled_first", "1: another kernel finds the largest value first");
}

/// The parts of an operator's entry that are text.
struct Text {
  std::string_view name, doc, aten, example;
};

template <DType kNarrow>
OpDef cast_op(const Text& text) {
  OpDef op{.name = text.name,
           .doc = text.doc,
           .aten = "",
           .onnx = "",
           .attributes = {transposed_attribute(), scaled_first_attribute()},
           .infer = infer_cast<kNarrow>,
           .work = work_cast,
           .example = text.example};
  if (kNarrow == DType::kFp4)
    op.attributes.push_back(flag_attribute(
        "hadamard", "1: a kernel of its own transforms the columns and writes their copy"));
  return op;
}

template <DType kNarrow>
OpDef linear_op(const Text& text) {
  return {
      .name = text.name,
      .doc = text.doc,
      .aten = "",
      .onnx = "",
      .min_inputs = 6,
      .max_inputs = 7,
      .attributes = {scheme_attribute(), transposed_attribute(), scaled_first_attribute(),
                     flag_attribute("weight_again",
                                    "1: the backward pass transposes the weight's copy"),
                     flag_attribute("weight_layout", "0: weight is [n, k]; 1: weight is [k, n]")},
      .infer = infer_narrow_linear<kNarrow>,
      .work = work_narrow_linear,
      .backward = backward_narrow_linear<kNarrow>,
      .operands = narrow_linear_operands<kNarrow>,
      .example = text.example};
}

template <DType kNarrow>
OpDef gemm_op(const Text& text) {
  return {.name = text.name,
          .doc = text.doc,
          .aten = text.aten,
          .onnx = "",
          .min_inputs = 2,
          .max_inputs = 2,
          .attributes = {scheme_attribute(),
                         {.name = "dtype",
                          .doc = "of the result",
                          .type = AttributeType::kDType,
                          .required = true}},
          .infer = infer_narrow_gemm<kNarrow>,
          .work = work_narrow_gemm,
          .operands = narrow_gemm_operands<kNarrow>,
          .example = text.example};
}

}  // namespace

bool is_gemm(OpId op) {
  static const OpId plain = require_op("gemm"), fp8 = require_op(words_of(DType::kFp8).gemm),
                    fp4 = require_op(words_of(DType::kFp4).gemm);
  return op == plain || op == fp8 || op == fp4;
}

std::vector<OpDef> low_precision_ops() {
  return {
      cast_op<DType::kFp8>({.name = "fp8_cast",
                            .doc = "x [..., columns] in 8 bits for a product of training",
                            .example = "x: bf16[64, 256] {transposed=1}"}),
      linear_op<DType::kFp8>(
          {.name = "fp8_linear",
           .doc = "x [..., k] times weight [n, k] transposed in 8 bits, plus bias [n]: x, weight, "
                  "both in 8 bits, both transposed, bias",
           .example = "x: bf16[64, 256] w: bf16[128, 256] a: fp8[64, 256] b: fp8[128, 256] c: "
                      "fp8[256, 64] d: fp8[256, 128] {scheme=fp8}"}),
      gemm_op<DType::kFp8>(
          {.name = "fp8_gemm",
           .doc = "a [m, k] times b [n, k] transposed, both in 8 bits (backward of fp8_linear)",
           .aten = "aten::_scaled_mm",
           .example = "a: fp8[64, 256] b: fp8[128, 256] {scheme=fp8, dtype=bf16}"}),
      unmeasured(cast_op<DType::kFp4>(
          {.name = "fp4_cast",
           .doc = "x [..., columns] in 4 bits (NVFP4) for a product of training",
           .example = "x: bf16[64, 256] {transposed=1, hadamard=1}"})),
      unmeasured(linear_op<DType::kFp4>(
          {.name = "fp4_linear",
           .doc = "x [..., k] times weight [n, k] transposed in 4 bits, plus bias [n]: x, weight, "
                  "both in 4 bits, both transposed, bias",
           .example = "x: bf16[64, 256] w: bf16[128, 256] a: fp4[64, 256] b: fp4[128, 256] c: "
                      "fp4[256, 64] d: fp4[256, 128] {scheme=fp4}"})),
      unmeasured(gemm_op<DType::kFp4>(
          {.name = "fp4_gemm",
           .doc = "a [m, k] times b [n, k] transposed, both in 4 bits (backward of fp4_linear)",
           .example = "a: fp4[64, 256] b: fp4[128, 256] {scheme=fp4, dtype=bf16}"})),
  };
}

}  // namespace tilecast
