#include <gtest/gtest.h>

#include "devices/registry.h"
#include "predict/kernel_kinds.h"
#include "predict/law.h"

namespace tilecast {
namespace {

double cdna_law_s(const Kernel& kernel, const Device& device) {
  return kernel_kind_def(kernel_kind(kernel)).law(kernel, Chip(device, bundled_laws()), {}).seconds;
}

Kernel quantized(QuantScheme scheme, int64_t m, int64_t n, int64_t k) {
  return kernels_of_sizes("quantized_linear", DType::kBf16,
                          {{"m", m}, {"n", n}, {"k", k}, {"scheme", scheme}})
      .front();
}

double share_of_peak(const Kernel& kernel, const Device& device) {
  return static_cast<double>(kernel.flops) / cdna_law_s(kernel, device) /
         device.matmul_peak(kernel.compute_dtype());
}

TEST(CdnaLaw, ThePowerOfTheBoardLimitsLargeProducts) {
  const Kernel kernel =
      kernels_of_sizes("gemm", DType::kBf16, {{"m", 16384}, {"n", 8192}, {"k", 8192}}).front();
  Device card = find_device("MI355X");
  EXPECT_NEAR(share_of_peak(kernel, card), 0.58, 0.06);
  std::get<Gpu>(card.chip).board_power_w *= 100;
  EXPECT_GT(share_of_peak(kernel, card), 0.8);
}

TEST(CdnaLaw, AnOlderProcessTakesMoreEnergy) {
  const Kernel kernel = quantized(QuantScheme::kInt8, 16384, 8192, 8192);
  Device card = find_device("MI355X");
  const double share = share_of_peak(kernel, card);
  std::get<Gpu>(card.chip).process_nm = 5;
  EXPECT_LT(share_of_peak(kernel, card), 0.85 * share);
}

TEST(CdnaLaw, BlocksWithScalesTakeSmallerTilesAndLongerSteps) {
  const Device card = find_device("MI355X");
  // Large products wait for the operands of small tiles, those of one block for each step of k.
  for (const int64_t m : {16, 8192}) {
    const double by_row = cdna_law_s(quantized(QuantScheme::kFp8, m, 4096, 8192), card);
    const double by_block = cdna_law_s(quantized(QuantScheme::kFp8Block, m, 4096, 8192), card);
    EXPECT_GT(by_block, 1.15 * by_row) << m;
  }
}

TEST(CdnaLaw, WeightsInTheOrderOfRegistersBypassTheFeed) {
  const Device card = find_device("MI355X");
  EXPECT_LT(cdna_law_s(quantized(QuantScheme::kFp8, 8192, 8192, 8192), card),
            0.95 * cdna_law_s(quantized(QuantScheme::kInt8, 8192, 8192, 8192), card));
}

TEST(CdnaLaw, FewTokensOfExpertsReadTheirWeights) {
  const Device card = find_device("MI300X");
  const auto layer = [](int64_t tokens) {
    return kernels_of_sizes("experts", DType::kBf16,
                            {{"tokens", tokens},
                             {"ffn_dim", 2048},
                             {"hidden_dim", 7168},
                             {"num_experts", 32},
                             {"top_k", 8},
                             {"scheme", QuantScheme::kFp8Block}})
        .front();
  };
  // 1.4 GB of weights, which all of 256 tokens share.
  const Kernel few = layer(256);
  const double weights_s = static_cast<double>(few.read_bytes) / card.memory_bytes_per_s;
  EXPECT_GT(cdna_law_s(few, card), weights_s);
  EXPECT_LT(cdna_law_s(few, card), 1.6 * weights_s);
  EXPECT_GT(share_of_peak(layer(32768), card), 0.15);
  EXPECT_LT(share_of_peak(layer(32768), card), 0.5);
}

}  // namespace
}  // namespace tilecast
