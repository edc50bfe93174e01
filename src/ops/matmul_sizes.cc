#include "ops/matmul_sizes.h"

#include <array>
#include <utility>

#include "base/checked.h"
#include "base/rng.h"
#include "ops/builder.h"

namespace tilecast {
namespace {

// Sizes m, n, k of random kernels, in bits.
constexpr int kDrawnBatch = 7, kDrawnRows = 14, kDrawnReduction = 13;

std::vector<SizeDef> product_sizes() {
  return {{.name = "m", .doc = "rows of the result", .drawn_bits = kDrawnRows, .grows = true},
          {.name = "n", .doc = "columns of the result", .drawn_bits = kDrawnRows, .grows = true},
          {.name = "k", .doc = "reduction length", .drawn_bits = kDrawnReduction, .grows = true}};
}

std::vector<SizeDef> with_batch(SizeDef batch) {
  std::vector<SizeDef> sizes = product_sizes();
  sizes.insert(sizes.begin(), std::move(batch));
  return sizes;
}

std::vector<SizeDef> with_scheme(std::vector<SizeDef> sizes, std::string_view doc,
                                 std::optional<AttributeValue> default_value) {
  sizes.push_back({.name = "scheme",
                   .doc = doc,
                   .type = AttributeType::kScheme,
                   .default_value = std::move(default_value)});
  return sizes;
}

void draw_scheme(Rng& rng, SizeList& sizes) {
  constexpr std::array kDrawn = {QuantScheme::kFp8, QuantScheme::kFp8Block,
                                 QuantScheme::kInt4WeightOnly};
  sizes.push_back({"scheme", kDrawn[rng.below(kDrawn.size())]});
}

}  // namespace

std::vector<SizeDef> linear_sizes_by_name() {
  return with_batch({.name = "batch", .doc = "number of inputs, of m rows each"});
}

Operands linear_operands(GraphBuilder& b, const GivenSizes& s) {
  const int64_t m = checked_multiply(s["batch"], s["m"]);
  return {{b.input("x", {m, s["k"]}, s.dtype()), b.input("w", {s["n"], s["k"]}, s.dtype()),
           b.input("b", {s["n"]}, s.dtype())},
          {}};
}

std::vector<SizeDef> quantized_linear_sizes_by_name() {
  return with_scheme(linear_sizes_by_name(), "quantization scheme of the weight", std::nullopt);
}

Operands quantized_linear_operands(GraphBuilder& b, const GivenSizes& s) {
  const QuantScheme scheme = s.scheme("scheme");
  const int64_t m = checked_multiply(s["batch"], s["m"]);
  return {{b.input("x", {m, s["k"]}, s.dtype()),
           b.input("w", {s["n"], s["k"]}, scheme_info(scheme).weight_dtype),
           b.input("s", {1}, DType::kFp32)},
          {{"scheme", scheme}}};
}

RandomSizes random_quantized_linear() { return {.draw = draw_scheme}; }

std::vector<SizeDef> matmul_sizes_by_name() {
  return with_scheme(
      with_batch({.name = "batch", .doc = "products", .drawn_bits = kDrawnBatch, .grows = true}),
      "quantization scheme of the second operand", QuantScheme::kNone);
}

Operands matmul_operands(GraphBuilder& b, const GivenSizes& s) {
  const QuantScheme scheme = s.scheme("scheme");
  const DType stored = scheme == QuantScheme::kNone ? s.dtype() : scheme_info(scheme).weight_dtype;
  return {{b.input("a", {s["batch"], s["m"], s["k"]}, s.dtype()),
           b.input("b", {s["batch"], s["k"], s["n"]}, stored)},
          {{"scheme", scheme}}};
}

std::vector<SizeDef> gemm_sizes_by_name() {
  std::vector<SizeDef> sizes = product_sizes();
  sizes.push_back(switch_size("trans_a", "the first operand is stored as [k, m]"));
  sizes.push_back(switch_size("trans_b", "the second operand is stored as [n, k]"));
  return sizes;
}

Operands gemm_operands(GraphBuilder& b, const GivenSizes& s) {
  const auto stored = [&](const char* name, int64_t rows, int64_t columns, int64_t transposed) {
    return b.input(name, transposed ? Shape{columns, rows} : Shape{rows, columns}, s.dtype());
  };
  return {{stored("a", s["m"], s["k"], s["trans_a"]), stored("b", s["k"], s["n"], s["trans_b"])},
          {{"transpose_a", s["trans_a"]}, {"transpose_b", s["trans_b"]}}};
}

}  // namespace tilecast
