// Matrix products, which a BLAS library runs.

#include <fmt/format.h>

#include <algorithm>

#include "base/checked.h"
#include "ops/gradient.h"
#include "ops/matmul_sizes.h"
#include "ops/op_def.h"

namespace tilecast {
namespace {

/// Rows of a tensor flattened to two dimensions: the product of all dimensions but the last.
int64_t flat_rows(const Shape& shape) {
  int64_t rows = 1;
  for (size_t i = 0; i + 1 < shape.size(); ++i) rows = checked_multiply(rows, shape[i]);
  return rows;
}

/// Alignment of a tensor's rows in memory, see Gemm::row_alignment. The columns of a transposed
/// view are rows in memory.
int64_t row_alignment(const Tensor& tensor) {
  const Shape& shape = tensor.shape;
  const auto of_length = [](int64_t length) { return std::min<int64_t>(8, length & -length); };
  if (shape.empty()) return 1;
  const int64_t last = of_length(shape.back());
  if (tensor.contiguous || shape.size() < 2) return last;
  return std::max(last, of_length(shape[shape.size() - 2]));
}

Kernel gemm_kernel(const OpContext& context, Gemm sizes) {
  sizes.row_alignment = std::min({row_alignment(context.input(0)), row_alignment(context.input(1)),
                                  row_alignment(context.output(0))});
  Kernel kernel{.shape = sizes, .dtype = context.output(0).dtype};
  kernel.flops = checked_product({2, sizes.batch, sizes.m, sizes.n, sizes.k});
  add_traffic(kernel, context);
  return kernel;
}

// linear: x [..., k] · w [n, k]ᵀ + b [n]; with weight_layout 1, w is [k, n].
Gemm linear_sizes(const Tensor& x, const Tensor& w, const OpContext& context) {
  if (x.shape.empty() || w.shape.size() != 2)
    context.fail(fmt::format("expected x [..., k] and a weight of two dimensions, found {} and {}",
                             format_shape(x.shape), format_shape(w.shape)));
  // quantized_linear has no such attribute: its weights are always [n, k].
  const bool transposed = integer_or(context.node, "weight_layout", 0) == 1;
  const int64_t n = transposed ? w.shape[1] : w.shape[0];
  const int64_t k = transposed ? w.shape[0] : w.shape[1];
  if (x.shape.back() != k)
    context.fail(fmt::format("inner dimensions differ: x {} x weight {} ({} != {})",
                             format_shape(x.shape), format_shape(w.shape), x.shape.back(), k));
  return {.m = flat_rows(x.shape), .n = n, .k = k, .trans_b = transposed ? 0 : 1};
}

Gemm linear_sizes(const OpContext& context) {
  const Gemm sizes = linear_sizes(context.input(0), context.input(1), context);
  if (context.input_count() == 3 && element_count(context.input(2).shape) != sizes.n)
    context.fail(fmt::format("bias {} does not fit {} output features",
                             format_shape(context.input(2).shape), sizes.n));
  return sizes;
}

std::vector<TensorSpec> infer_linear(const OpContext& context) {
  TensorSpec spec{.shape = context.input(0).shape, .dtype = context.input(0).dtype};
  const Gemm sizes = linear_sizes(context);
  spec.shape.back() = sizes.n;
  return {spec};
}

void work_linear(const OpContext& context, std::vector<Kernel>& kernels) {
  Gemm sizes = linear_sizes(context);
  sizes.adds_bias = context.input_count() == 3;
  kernels.push_back(gemm_kernel(context, sizes));
}

void backward_linear(GradientBuilder& g, const Node& node) {
  const TensorId x = node.inputs[0];
  const TensorId w = node.inputs[1];
  const bool transposed = attribute<int64_t>(node, "weight_layout") == 1;
  const TensorId dy = g.dense(g.gradient(node.outputs[0]));
  if (g.requires_grad(x)) {
    const TensorId dx = g.op("gemm", {dy, g.kept(w)}, {{"transpose_b", transposed ? 1 : 0}});
    // gemm returns two dimensions; the view back to the shape of x launches no kernel.
    g.add_gradient(x, g.op("view", {dx}, {{"shape", g.tensor(x).shape}}));
  }
  if (g.requires_grad(w)) {
    const TensorId left = transposed ? x : dy;
    const TensorId right = transposed ? dy : x;
    g.add_gradient(w, g.op("gemm", {left, right}, {{"transpose_a", 1}}));
  }
  if (node.inputs.size() == 3 && g.requires_grad(node.inputs[2]))
    g.add_gradient(node.inputs[2], g.reduce_to(dy, node.inputs[2]));
}

/// GPT-2 stores weights as [k, n]; quantized weights are [n, k] as usual.
std::vector<TensorId> quantize_linear(GraphBuilder& b, const Node& node,
                                      std::vector<TensorId> inputs, QuantScheme scheme) {
  Tensor& weight = b.graph().tensor(inputs[1]);
  weight.dtype = scheme_info(scheme).weight_dtype;
  if (attribute<int64_t>(node, "weight_layout") == 1) std::swap(weight.shape[0], weight.shape[1]);
  const TensorId scales =
      b.scales(weight.name, scheme, element_count(weight.shape), weight.segment);
  inputs.insert(inputs.begin() + 2, scales);
  return b.add("quantized_linear", std::move(inputs), node.name, {{"scheme", scheme}});
}

/// The second operand must be stored as the scheme has it.
void check_stored(const OpContext& context, QuantScheme scheme) {
  const DType stored = scheme_info(scheme).weight_dtype;
  if (context.input(1).dtype != stored)
    context.fail(fmt::format("expected a weight of {}, found {}", dtype_name(stored),
                             dtype_name(context.input(1).dtype)));
}

// quantized_linear: x [..., k], weight [n, k] as stored, its scales, bias.
std::vector<TensorSpec> infer_quantized_linear(const OpContext& context) {
  const QuantScheme scheme = context.attribute<QuantScheme>("scheme");
  if (scheme == QuantScheme::kNone) context.fail("expected a quantization scheme");
  check_stored(context, scheme);
  const Gemm sizes = linear_sizes(context.input(0), context.input(1), context);
  TensorSpec spec{.shape = context.input(0).shape, .dtype = context.input(0).dtype};
  spec.shape.back() = sizes.n;
  return {spec};
}

/// The whole layer as libraries run it: it quantizes the activations if the scheme requires it and
/// the kernel before has not.
void work_quantized_linear(const OpContext& context, std::vector<Kernel>& kernels) {
  Kernel kernel = gemm_kernel(context, linear_sizes(context.input(0), context.input(1), context));
  kernel.scheme = context.attribute<QuantScheme>("scheme");
  kernel.quantized_input = context.integer("quantized_input") != 0;
  kernels.push_back(kernel);
}

// gemm: both operands flattened to two dimensions, each optionally transposed.
struct Flat {
  int64_t rows, columns;
};

Flat flat(const Tensor& tensor, bool transposed) {
  const int64_t rows = flat_rows(tensor.shape);
  const int64_t columns = tensor.shape.empty() ? 1 : tensor.shape.back();
  return transposed ? Flat{columns, rows} : Flat{rows, columns};
}

/// Of the inputs number `first` and the next one.
Gemm gemm_sizes(const OpContext& context, size_t first = 0) {
  const Flat a = flat(context.input(first), context.integer("transpose_a") != 0);
  const Flat b = flat(context.input(first + 1), context.integer("transpose_b") != 0);
  if (a.columns != b.rows)
    context.fail(fmt::format("inner dimensions differ: [{}, {}] x [{}, {}] ({} != {})", a.rows,
                             a.columns, b.rows, b.columns, a.columns, b.rows));
  return {.m = a.rows,
          .n = b.columns,
          .k = a.columns,
          .trans_a = context.integer("transpose_a"),
          .trans_b = context.integer("transpose_b")};
}

std::vector<TensorSpec> infer_gemm(const OpContext& context) {
  const Gemm sizes = gemm_sizes(context);
  return {{.shape = {sizes.m, sizes.n}, .dtype = context.input(0).dtype}};
}

void work_gemm(const OpContext& context, std::vector<Kernel>& kernels) {
  kernels.push_back(gemm_kernel(context, gemm_sizes(context)));
}

// matmul: a [..., m, k] · b [..., k, n], equal leading dimensions.
Gemm matmul_sizes(const OpContext& context, size_t first = 0) {
  const Shape& a = context.input(first).shape;
  const Shape& b = context.input(first + 1).shape;
  if (a.size() < 2 || a.size() != b.size() ||
      !std::equal(a.begin(), a.end() - 2, b.begin(), b.end() - 2))
    context.fail(fmt::format("expected equal leading dimensions, found {} x {}", format_shape(a),
                             format_shape(b)));
  int64_t batch = 1;
  for (size_t i = 0; i + 2 < a.size(); ++i) batch = checked_multiply(batch, a[i]);
  const bool ta = context.integer("transpose_a") != 0;
  const bool tb = context.integer("transpose_b") != 0;
  const int64_t m = a[a.size() - (ta ? 1 : 2)];
  const int64_t ka = a[a.size() - (ta ? 2 : 1)];
  const int64_t kb = b[b.size() - (tb ? 1 : 2)];
  const int64_t n = b[b.size() - (tb ? 2 : 1)];
  if (ka != kb)
    context.fail(fmt::format("inner dimensions differ: a {} x b {} ({} != {})", format_shape(a),
                             format_shape(b), ka, kb));
  return {.batch = batch,
          .m = m,
          .n = n,
          .k = ka,
          .batched = true,
          .trans_a = ta ? 1 : 0,
          .trans_b = tb ? 1 : 0};
}

std::vector<TensorSpec> infer_matmul(const OpContext& context) {
  const Gemm sizes = matmul_sizes(context);
  if (const auto scheme = context.attribute<QuantScheme>("scheme"); scheme != QuantScheme::kNone)
    check_stored(context, scheme);
  TensorSpec spec{.shape = context.input(0).shape, .dtype = context.input(0).dtype};
  spec.shape[spec.shape.size() - 2] = sizes.m;
  spec.shape.back() = sizes.n;
  return {spec};
}

void work_matmul(const OpContext& context, std::vector<Kernel>& kernels) {
  kernels.push_back(gemm_kernel(context, matmul_sizes(context)));
  kernels.back().scheme = context.attribute<QuantScheme>("scheme");
}

// addmm: c + a · b, of matrices or of a batch of them.
Gemm addmm_sizes(const OpContext& context) {
  constexpr size_t kMatrix = 2;
  const Gemm sizes =
      context.input(1).shape.size() > kMatrix ? matmul_sizes(context, 1) : gemm_sizes(context, 1);
  if (element_count(context.input(0).shape) != checked_product({sizes.batch, sizes.m, sizes.n}))
    context.fail(fmt::format("{} cannot be added to a product of [{}, {}]",
                             format_shape(context.input(0).shape), sizes.m, sizes.n));
  return sizes;
}

std::vector<TensorSpec> infer_addmm(const OpContext& context) {
  const Gemm sizes = addmm_sizes(context);
  TensorSpec spec{.shape = {sizes.m, sizes.n}, .dtype = context.input(1).dtype};
  if (sizes.batched) spec.shape.insert(spec.shape.begin(), sizes.batch);
  return {spec};
}

/// c is copied, and the product added to the copy (addmm_out_cuda_impl of
/// ATen/native/cuda/Blas.cpp); only a vector is added by the library.
void work_addmm(const OpContext& context, std::vector<Kernel>& kernels) {
  const Tensor& out = context.output(0);
  const int64_t bytes = tensor_bytes(out);
  kernels.push_back({.shape = Stream{.elements = element_count(out.shape)},
                     .dtype = out.dtype,
                     .read_bytes = bytes,
                     .write_bytes = bytes});
  kernels.push_back(gemm_kernel(context, addmm_sizes(context)));
}

Operands addmm_operands(GraphBuilder& b, const GivenSizes& s) {
  Operands operands = gemm_operands(b, s);
  operands.inputs.insert(operands.inputs.begin(), b.input("c", {s["m"], s["n"]}, s.dtype()));
  return operands;
}

void backward_matmul(GradientBuilder& g, const Node& node) {
  if (attribute<QuantScheme>(node, "scheme") != QuantScheme::kNone) return;  // inference only
  const TensorId a = node.inputs[0];
  const TensorId b = node.inputs[1];
  const int64_t ta = attribute<int64_t>(node, "transpose_a");
  const int64_t tb = attribute<int64_t>(node, "transpose_b");
  const TensorId dy = g.dense(g.gradient(node.outputs[0]));
  const auto product = [&](TensorId left, TensorId right, int64_t tl, int64_t tr) {
    return g.op("matmul", {left, right}, {{"transpose_a", tl}, {"transpose_b", tr}});
  };
  if (g.requires_grad(a)) g.add_gradient(a, ta ? product(b, dy, tb, 1) : product(dy, b, 0, 1 - tb));
  if (g.requires_grad(b)) g.add_gradient(b, tb ? product(dy, a, 1, ta) : product(a, dy, 1 - ta, 0));
}

}  // namespace

std::vector<OpDef> matmul_ops() {  // NOLINT(readability-function-size): a table
  const AttributeDef transpose_a =
      flag_attribute("transpose_a", "1: the last two dimensions of a are swapped");
  const AttributeDef transpose_b =
      flag_attribute("transpose_b", "1: the last two dimensions of b are swapped");
  return {
      {.name = "linear",
       .doc = "x [..., k] times weight [n, k] transposed, plus bias [n]",
       .aten = "aten::linear",
       .onnx = "Gemm",
       .min_inputs = 2,
       .max_inputs = 3,
       .attributes = {flag_attribute("weight_layout", "0: weight is [n, k]; 1: weight is [k, n]")},
       .infer = infer_linear,
       .work = work_linear,
       .backward = backward_linear,
       .autocast = AutocastClass::kLowPrecision,
       .quantization = WeightQuantization{{1}, quantize_linear},
       .sizes = linear_sizes_by_name(),
       .operands = linear_operands,
       .random_sizes = RandomSizes{.in_training = true},
       .shard = shard_linear,
       .example = "x: fp32[4, 128, 256] w: fp32[512, 256] b: fp32[512]"},
      {.name = "quantized_linear",
       .doc = "x [..., k] times a quantized weight [n, k], scales [groups], bias [n]",
       .aten = "",
       .onnx = "MatMulNBits",
       .min_inputs = 3,
       .max_inputs = 4,
       .attributes = {{.name = "scheme",
                       .doc = "quantization scheme of the weight",
                       .type = AttributeType::kScheme,
                       .required = true},
                      flag_attribute("quantized_input",
                                     "1: the kernel before has quantized the activations")},
       .infer = infer_quantized_linear,
       .work = work_quantized_linear,
       .autocast = AutocastClass::kLowPrecision,
       .sizes = quantized_linear_sizes_by_name(),
       .operands = quantized_linear_operands,
       .random_sizes = random_quantized_linear(),
       .example = "x: bf16[4, 128, 256] w: fp8[512, 256] s: fp32[1] {scheme=fp8}"},
      {.name = "matmul",
       .doc = "a [..., m, k] times b [..., k, n], one product per leading index",
       .aten = "aten::bmm",
       .onnx = "MatMul",
       .min_inputs = 2,
       .max_inputs = 2,
       .attributes = {transpose_a,
                      transpose_b,
                      {.name = "scheme",
                       .doc = "quantization scheme of b",
                       .type = AttributeType::kScheme,
                       .default_value = QuantScheme::kNone}},
       .infer = infer_matmul,
       .work = work_matmul,
       .backward = backward_matmul,
       .autocast = AutocastClass::kLowPrecision,
       .sizes = matmul_sizes_by_name(),
       .operands = matmul_operands,
       .random_sizes = RandomSizes{.in_training = true},
       .example = "a: fp32[8, 128, 64] b: fp32[8, 64, 128]"},
      {.name = "gemm",
       .doc = "product of two tensors flattened to matrices (backward of linear)",
       .aten = "aten::mm",
       .onnx = "",
       .min_inputs = 2,
       .max_inputs = 2,
       .attributes = {transpose_a, transpose_b},
       .infer = infer_gemm,
       .work = work_gemm,
       .autocast = AutocastClass::kLowPrecision,
       .sizes = gemm_sizes_by_name(),
       .operands = gemm_operands,
       .example = "a: fp32[128, 256] b: fp32[256, 64]"},
      {.name = "addmm",
       .doc = "a matrix plus the product of two others, or of each of a batch (optimizer)",
       .aten = "aten::addmm",
       .onnx = "",
       .min_inputs = 3,
       .max_inputs = 3,
       .attributes = {transpose_a, transpose_b},
       .infer = infer_addmm,
       .work = work_addmm,
       .sizes = gemm_sizes_by_name(),
       .operands = addmm_operands,
       .example = "c: fp32[128, 64] a: fp32[128, 256] b: fp32[256, 64]"},
  };
}

}  // namespace tilecast
