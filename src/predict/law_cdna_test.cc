#include <gtest/gtest.h>

#include "devices/registry.h"
#include "ops/sizes.h"
#include "predict/kernel_kinds.h"
#include "predict/law.h"

namespace tilecast {
namespace {

double cdna_law_s(const Kernel& kernel, const Device& device) {
  const Conditions conditions = {.software = software_of("aiter")};
  return kernel_kind_def(kernel_kind(kernel))
      .law(kernel, Chip(device, bundled_laws()), conditions)
      .seconds;
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
  const double share = share_of_peak(kernel, card);
  EXPECT_GT(share, 0.4);
  EXPECT_LT(share, 0.65) << "the most that was measured";
  std::get<Gpu>(card.chip).board_power_w *= 100;
  EXPECT_GT(share_of_peak(kernel, card), 1.3 * share);
}

TEST(CdnaLaw, AnOlderProcessTakesMoreEnergy) {
  const Kernel kernel = quantized(QuantScheme::kInt8, 16384, 8192, 8192);
  Device card = find_device("MI355X");
  const double share = share_of_peak(kernel, card);
  std::get<Gpu>(card.chip).process_nm = 5;
  EXPECT_LT(share_of_peak(kernel, card), 0.85 * share);
}

TEST(CdnaLaw, BlocksWithScalesTakeSmallerTiles) {
  // Large products wait for the operands of small tiles.
  const Device card = find_device("MI355X");
  EXPECT_GT(cdna_law_s(quantized(QuantScheme::kFp8Block, 8192, 4096, 8192), card),
            1.15 * cdna_law_s(quantized(QuantScheme::kFp8, 8192, 4096, 8192), card));
}

TEST(CdnaLaw, ALongKIsSplitInBlocksWithScalesAlone) {
  // One tile of rows: eight times k takes eight times the steps where it is not split.
  const Device card = find_device("MI355X");
  const auto growth = [&](QuantScheme scheme) {
    return cdna_law_s(quantized(scheme, 16, 512, 65536), card) /
           cdna_law_s(quantized(scheme, 16, 512, 8192), card);
  };
  EXPECT_GT(growth(QuantScheme::kInt8), 1.5 * growth(QuantScheme::kFp8Block));
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
