// Low-rank adapters (LoRA) of the requests of a server, beside a linear layer: products of tokens
// by the matrices of their own adapters (SGMV of Punica, Chen et al. 2023; in vLLM the Triton
// kernels lora_shrink and lora_expand). Tokens of one adapter follow each other; they are taken to
// be spread evenly over the adapters.

#include <fmt/format.h>

#include <algorithm>

#include "base/checked.h"
#include "graph/dtype.h"
#include "ops/op_def.h"

namespace tilecast {
namespace {

int64_t adapted_rows(const Shape& shape) { return element_count(shape) / shape.back(); }

int64_t stored_as(int64_t elements, DType dtype) {
  return ceil_divide(checked_multiply(elements, dtype_bits(dtype)), kBitsPerByte);
}

void expect_adapters(const OpContext& context, bool fits, const char* what) {
  if (!fits)
    context.fail(fmt::format("expected {}, found {} and {}", what,
                             format_shape(context.input(0).shape),
                             format_shape(context.input(context.input_count() - 1).shape)));
}

/// A product of all rows of x by the matrices of as many adapters as there are. The library's
/// batched products are the nearest kernels that were measured.
Kernel adapter_product(const OpContext& context, int64_t n, int64_t k) {
  const int64_t rows = adapted_rows(context.input(0).shape);
  const int64_t adapters = std::clamp<int64_t>(context.integer("adapters"), 1, rows);
  const DType dtype = context.input(context.input_count() - 1).dtype;
  Kernel kernel{.shape = Gemm{.batch = adapters,
                              .m = ceil_divide(rows, adapters),
                              .n = n,
                              .k = k,
                              .batched = true,
                              .trans_b = 1},
                .dtype = dtype};
  kernel.flops = checked_product({2, rows, n, k});
  kernel.read_bytes = stored_as(checked_product({adapters, n, k}), dtype);
  return kernel;
}

// lora_shrink: x [.., k], A [slots, r, k] → [.., r] in fp32.
std::vector<TensorSpec> infer_lora_shrink(const OpContext& context) {
  Shape shape = context.input(0).shape;
  const Shape& down = context.input(1).shape;
  expect_adapters(context,
                  !shape.empty() && shape.back() > 0 && down.size() == 3 && down[2] == shape.back(),
                  "x [.., k] and matrices [slots, r, k]");
  shape.back() = down[1];
  return {{.shape = std::move(shape), .dtype = DType::kFp32}};
}

void work_lora_shrink(const OpContext& context, std::vector<Kernel>& kernels) {
  const Shape& x = context.input(0).shape;
  const int64_t columns = std::min(integer_or(context.node, "columns", context.input(1).shape[1]),
                                   context.input(1).shape[1]);
  const int64_t rows_of_x = adapted_rows(x);
  const int64_t written = stored_as(checked_multiply(rows_of_x, columns), DType::kFp32);
  // No kernel that only writes was measured: a copy of as many bytes in all stands in for it.
  if (context.integer("clears") != 0)
    kernels.push_back({.shape = Stream{.elements = checked_multiply(rows_of_x, columns)},
                       .dtype = context.input(0).dtype,
                       .read_bytes = written / 2,
                       .write_bytes = written - written / 2});
  Kernel kernel = adapter_product(context, columns, x.back());
  kernel.read_bytes = checked_add(kernel.read_bytes, tensor_bytes(context.input(0)));
  kernel.write_bytes = written;
  kernels.push_back(kernel);
}

// lora_expand: y [.., n] += low [.., r] times B [slots, n, rank].
std::vector<TensorSpec> infer_lora_expand(const OpContext& context) {
  const Shape& shape = context.input(0).shape;
  const Shape& up = context.input(2).shape;
  expect_adapters(context,
                  !shape.empty() && shape.back() > 0 && up.size() == 3 && up[1] <= shape.back(),
                  "y [.., n], a low-rank input and matrices [slots, n, rank]");
  return {{.shape = shape, .dtype = context.input(0).dtype, .view = true}};
}

void work_lora_expand(const OpContext& context, std::vector<Kernel>& kernels) {
  const Shape& up = context.input(2).shape;
  const int64_t rows = adapted_rows(context.input(0).shape);
  const int64_t rank = std::min(integer_or(context.node, "columns", up[2]), up[2]);
  Kernel kernel = adapter_product(context, up[1], rank);
  const int64_t sums = stored_as(checked_multiply(rows, up[1]), context.input(0).dtype);
  const int64_t low = stored_as(checked_multiply(rows, rank), DType::kFp32);
  kernel.read_bytes = checked_add(kernel.read_bytes, checked_add(low, sums));
  kernel.write_bytes = sums;
  kernels.push_back(kernel);
}

std::vector<SizeDef> adapter_sizes() {
  return {{.name = "adapters", .doc = "different ones", .drawn_bits = 4, .grows = true},
          {.name = "m", .doc = "tokens", .drawn_bits = 13, .grows = true},
          {.name = "n", .doc = "columns of the result", .drawn_bits = 12, .grows = true},
          {.name = "k", .doc = "reduction length", .drawn_bits = 12, .grows = true}};
}

Operands lora_shrink_operands(GraphBuilder& b, const GivenSizes& s) {
  return {{b.input("x", {s["m"], s["k"]}, s.dtype()),
           b.input("a", {s["adapters"], s["n"], s["k"]}, s.dtype())},
          {{"adapters", s["adapters"]}}};
}

Operands lora_expand_operands(GraphBuilder& b, const GivenSizes& s) {
  return {
      {b.input("y", {s["m"], s["n"]}, s.dtype()), b.input("low", {s["m"], s["k"]}, DType::kFp32),
       b.input("b", {s["adapters"], s["n"], s["k"]}, s.dtype())},
      {{"adapters", s["adapters"]}}};
}

AttributeDef adapters_attribute() {
  return {.name = "adapters",
          .doc = "different adapters of the tokens",
          .default_value = int64_t{1},
          .min = 1};
}

AttributeDef columns_attribute() {
  return {
      .name = "columns", .doc = "of the low-rank input that are computed; default: all", .min = 1};
}

}  // namespace

std::vector<OpDef> adapter_ops() {
  return {
      {.name = "lora_shrink",
       .doc = "tokens times the first matrix of the low-rank adapter of each",
       .min_inputs = 2,
       .max_inputs = 2,
       .attributes = {adapters_attribute(), columns_attribute(),
                      flag_attribute("clears", "1: a kernel fills the result with zeros first")},
       .infer = infer_lora_shrink,
       .work = work_lora_shrink,
       .sizes = adapter_sizes(),
       .operands = lora_shrink_operands,
       .example = "x: bf16[64, 512] a: bf16[4, 16, 512] {adapters=4}"},
      {.name = "lora_expand",
       .doc = "adds the second product of the low-rank adapter of each token",
       .min_inputs = 3,
       .max_inputs = 3,
       .attributes = {adapters_attribute(), columns_attribute()},
       .infer = infer_lora_expand,
       .work = work_lora_expand,
       .sizes = adapter_sizes(),
       .operands = lora_expand_operands,
       .example = "y: bf16[64, 256] low: fp32[64, 16] b: bf16[4, 256, 16] {adapters=4}"},
  };
}

}  // namespace tilecast
