// Matrix products.

#include "predict/features.h"

namespace tilecast {
namespace {

/// Sides of the blocks that libraries have kernels for.
constexpr int64_t kSmallBlock = 32, kBlock = 64, kLargeBlock = 128, kWideBlock = 256;

struct ProductInputs {
  const Kernel& kernel;
  Gemm gemm;
  bool half_sums = false;

  double outputs() const {
    return static_cast<double>(gemm.batch) * static_cast<double>(gemm.m) *
           static_cast<double>(gemm.n);
  }
  double tiles(int64_t m, int64_t n) const {
    return static_cast<double>(gemm.batch) * static_cast<double>(ceil_divide(gemm.m, m)) *
           static_cast<double>(ceil_divide(gemm.n, n));
  }
};

bool is_single_precision(const Kernel& kernel) {
  return kernel.compute_dtype() == DType::kFp32 && kernel.scheme == QuantScheme::kNone;
}

using ProductFeature = Feature<ProductInputs>;

constexpr auto kProduct = std::to_array<ProductFeature>({
    {"log2_m", [](const ProductInputs& x) { return log2_of(x.gemm.m); }},
    {"log2_n", [](const ProductInputs& x) { return log2_of(x.gemm.n); }},
    {"log2_k", [](const ProductInputs& x) { return log2_of(x.gemm.k); }},
    {"log2_outputs", [](const ProductInputs& x) { return log2_of(x.outputs()); }},
    {"stride_n", [](const ProductInputs& x) { return alignment(x.gemm.n, kStrideBits); }},
    {"stride_k", [](const ProductInputs& x) { return alignment(x.gemm.k, kStrideBits); }},
    {"align_m", [](const ProductInputs& x) { return alignment(x.gemm.m, 8); }},
    {"fill_m_64", [](const ProductInputs& x) { return fill_of(x.gemm.m, kBlock); }},
    {"fill_n_64", [](const ProductInputs& x) { return fill_of(x.gemm.n, kBlock); }},
    {"fill_m_128", [](const ProductInputs& x) { return fill_of(x.gemm.m, kLargeBlock); }},
    {"fill_n_128", [](const ProductInputs& x) { return fill_of(x.gemm.n, kLargeBlock); }},
    {"fill_n_256", [](const ProductInputs& x) { return fill_of(x.gemm.n, kWideBlock); }},
    {"log2_tiles_128",
     [](const ProductInputs& x) { return log2_of(x.tiles(kLargeBlock, kLargeBlock)); }},
});

constexpr auto kSinglePrecision = std::to_array<ProductFeature>({
    {"log2_batch", [](const ProductInputs& x) { return log2_of(x.gemm.batch); }},
    {"log2_flops", [](const ProductInputs& x) { return log2_of(x.kernel.flops); }},
    {"fill_m_32", [](const ProductInputs& x) { return fill_of(x.gemm.m, kSmallBlock); }},
    {"fill_n_32", [](const ProductInputs& x) { return fill_of(x.gemm.n, kSmallBlock); }},
    {"log2_tiles_32",
     [](const ProductInputs& x) { return log2_of(x.tiles(kSmallBlock, kSmallBlock)); }},
    {"log2_tiles_64", [](const ProductInputs& x) { return log2_of(x.tiles(kBlock, kBlock)); }},
    {"is_linear", [](const ProductInputs& x) { return flag(!x.gemm.batched); }},
    // The library has kernels of its own for each layout: a linear layer has the second operand
    // transposed, the gradient of its weight the first, that of its input none.
    {"trans_a", [](const ProductInputs& x) { return flag(x.gemm.trans_a != 0); }},
    {"trans_b", [](const ProductInputs& x) { return flag(x.gemm.trans_b != 0); }},
});

constexpr auto kLowPrecision = std::to_array<ProductFeature>({
    {"log2_element_bytes",
     [](const ProductInputs& x) { return log2_of(element_bytes(x.kernel.compute_dtype())); }},
    {"log2_weight_bits", [](const ProductInputs& x) { return log2_of(weight_bits(x.kernel)); }},
    {"is_block_scaled",
     [](const ProductInputs& x) { return flag(x.kernel.scheme == QuantScheme::kFp8Block); }},
    {"log2_batch", [](const ProductInputs& x) { return log2_of(x.gemm.batch); }},
    {"row_alignment", [](const ProductInputs& x) { return log2_of(x.gemm.row_alignment); }},
    // rocBLAS has kernels of its own for each type of the sums.
    {"half_sums", [](const ProductInputs& x) { return flag(x.half_sums); }},
});

using Single = FeatureTable<kProduct, kSinglePrecision>;
using LowPrecision = FeatureTable<kProduct, kLowPrecision>;

}  // namespace

KernelKindDef matmul_kind() {
  return {.name = "matmul",
          .covers =
              [](const Kernel& kernel) { return kernel.is<Gemm>() && is_single_precision(kernel); },
          .law = single_precision_law,
          .features = Single::names(),
          .learning = {.limited_by_power = true},
          .make =
              [](const Kernel& kernel, const Conditions&) {
                return Single::values(ProductInputs{kernel, gemm_of(kernel)});
              }};
}

KernelKindDef tensor_matmul_kind() {
  return {
      .name = "tensor_matmul",
      .covers =
          [](const Kernel& kernel) { return kernel.is<Gemm>() && !is_single_precision(kernel); },
      .law = low_precision_law,
      .cold = true,
      .features = LowPrecision::names(),
      .learning = kLearnedFromLayers,
      .make =
          [](const Kernel& kernel, const Conditions& conditions) {
            return LowPrecision::values(
                ProductInputs{kernel, gemm_of(kernel), conditions.half_sums});
          }};
}

}  // namespace tilecast
