// Laws of products against times computed by hand.

#include <gtest/gtest.h>

#include <cmath>

#include "law_seconds.h"

namespace tilecast {
namespace {

/// Share of the peak rate at which the law runs a product.
double reached(DType dtype, int64_t m, int64_t n, int64_t k, const char* gpu) {
  const Device device = find_device(gpu);
  const Kernel kernel = kernel_of("linear", dtype, {{"m", m}, {"n", n}, {"k", k}});
  return static_cast<double>(kernel.flops) / device.matmul_peak(dtype) /
         law_seconds(kernel, device);
}

TEST(SinglePrecisionLaw, OneWarpOfLanesPerSchedulerIssuesNothingBesideFmas) {
  // V100 has 16 lanes per scheduler: other instructions fit between the FMAs, and the lanes reach
  // 0.97 of their rate. 80 SMs, eight tiles of 128 x 128 each.
  const double v100 = reached(DType::kFp32, 128 * 80, 128 * 8, 16384, "V100-PCIe");
  EXPECT_LT(v100, 0.97);
  EXPECT_GT(v100, 0.90);
  // H100 has 32: with 0.26 other instructions per FMA no more than 1 / 1.26 of the rate.
  const double h100 = reached(DType::kFp32, 128 * 132, 128 * 8, 65536, "H100");
  EXPECT_LT(h100, 1 / 1.26);
  EXPECT_GT(h100, 0.70);
}

TEST(SinglePrecisionLaw, TheBoardsPowerLimitsLongProducts) {
  // T4: 70 W at 11.1 + 225 / 32 pJ a FLOP of a tile of 128 x 128 are 3.86 TFLOP/s, of a peak
  // of 8.14.
  const Device t4 = find_device("T4");
  const Kernel kernel = kernel_of("linear", DType::kFp32, {{"m", 8192}, {"n", 8192}, {"k", 8192}});
  const double limit_s = 2.0 * 8192 * 8192 * 8192 * (11.1e-12 + 225e-12 / 32) / 70;
  EXPECT_NEAR(law_seconds(kernel, t4) / limit_s, 1, 0.02);
  Device stronger = t4;
  std::get<Gpu>(stronger.chip).board_power_w = 700;
  EXPECT_LT(law_seconds(kernel, stronger), 0.65 * limit_s) << "then the lanes limit it";
}

TEST(SinglePrecisionLaw, ShortProductsAreHeldBackLessByTheBoardsPower) {
  // 8192 x 8192 results. Up to 0.3 ms 0.7 of the limit counts, from 10 ms on all of it.
  const Device t4 = find_device("T4");
  const auto share_of_limit = [&](int64_t k) {
    const Kernel kernel = kernel_of("linear", DType::kFp32, {{"m", 8192}, {"n", 8192}, {"k", k}});
    return law_seconds(kernel, t4) * 70 /
           (2.0 * 8192 * 8192 * static_cast<double>(k) * (11.1e-12 + 225e-12 / 32));
  };
  EXPECT_NEAR(share_of_limit(1024), 1, 0.02) << "35 ms";
  EXPECT_NEAR(share_of_limit(128), 0.7 + 0.3 * std::log(4.4 / 0.3) / std::log(10 / 0.3), 0.03)
      << "4.4 ms";
}

TEST(SinglePrecisionLaw, PascalsLinearLayersWaitForSharedMemory) {
  // P100: 64 lanes and 79 FMAs a clock and SM from shared memory; its batched products have both
  // operands in registers for longer.
  const double linear = reached(DType::kFp32, 4096, 4096, 2048, "P100-PCIe");
  EXPECT_NEAR(linear, 1 / std::hypot(1 / 0.95, 64 / 79.0), 0.06) << "less start and end";
  const Device p100 = find_device("P100-PCIe");
  const Kernel batched =
      kernel_of("matmul", DType::kFp32, {{"batch", 16}, {"m", 1024}, {"n", 1024}, {"k", 2048}});
  EXPECT_GT(static_cast<double>(batched.flops) / p100.matmul_peak(DType::kFp32) /
                law_seconds(batched, p100),
            linear + 0.1);
}

TEST(SinglePrecisionLaw, ProductsWithoutABiasRunFasterTilesOnPascal) {
  const Device p100 = find_device("P100-PCIe");
  const SizeList sizes = {{"m", 5124}, {"n", 9124}, {"k", 2560}};
  const auto share = [&](const char* op) {
    const Kernel kernel = kernel_of(op, DType::kFp32, sizes);
    return static_cast<double>(kernel.flops) / p100.matmul_peak(DType::kFp32) /
           law_seconds(kernel, p100);
  };
  EXPECT_NEAR(share("linear"), 0.70, 0.04);
  EXPECT_NEAR(share("gemm"), 0.90, 0.04);
}

TEST(SinglePrecisionLaw, MaxwellAndPascalOfGraphicsReachTheShareOfOtherCards) {
  const SizeList sizes = {{"m", 5124}, {"n", 9124}, {"k", 2560}};
  for (const char* gpu : {"M40", "GTX Titan X", "Titan X", "GTX 1080 Ti"}) {
    const Device device = find_device(gpu);
    const Kernel kernel = kernel_of("gemm", DType::kFp32, sizes);
    const double share = static_cast<double>(kernel.flops) / device.matmul_peak(DType::kFp32) /
                         law_seconds(kernel, device);
    EXPECT_NEAR(share, 0.88, 0.05) << gpu;
  }
}

TEST(SinglePrecisionLaw, SixteenBitsOnNvidiasLanesHaveTheRateOfFp32) {
  // P100's packed instructions have sums in 16 bits, which PyTorch does not ask for.
  const Device p100 = find_device("P100-PCIe");
  const SizeList sizes = {{"m", 4096}, {"n", 4096}, {"k", 2048}};
  const Kernel half = kernel_of("gemm", DType::kFp16, sizes);
  const double fp32 = law_seconds(kernel_of("gemm", DType::kFp32, sizes), p100);
  EXPECT_NEAR(law_seconds(half, p100) / fp32, 1, 0.02);
  EXPECT_LT(law_seconds(half, p100, {.half_sums = true}) / fp32, 0.7);
}

TEST(SinglePrecisionLaw, PascalsBlocksDriftApartInLongRows) {
  // Measured on P100: 0.75, 0.44 and 0.31 of the peak. The law is fitted on P4, too.
  const auto share = [](int64_t m, int64_t k) {
    return reached(DType::kFp32, m, m, k, "P100-PCIe");
  };
  EXPECT_NEAR(share(4096, 4096), 0.75, 0.08);
  EXPECT_NEAR(share(4096, 16384), 0.44, 0.08);
  EXPECT_NEAR(share(4096, 32768), 0.31, 0.15);
  // The fewer waves, the less.
  EXPECT_GT(share(1024, 16384) / share(1024, 4096), 1.1 * share(4096, 16384) / share(4096, 4096));
}

TEST(SinglePrecisionLaw, RowsOf32ThousandElementsAreSlowFromVoltaToAmpere) {
  for (const char* gpu : {"V100-PCIe", "A100-PCIE-80GB"}) {
    const double ratio = reached(DType::kFp32, 8192, 8192, 30000, gpu) /
                         reached(DType::kFp32, 8192, 8192, 50000, gpu);
    EXPECT_NEAR(ratio, 1.2, 0.03) << gpu;
  }
  EXPECT_NEAR(reached(DType::kFp32, 8192, 8192, 30000, "H100"),
              reached(DType::kFp32, 8192, 8192, 50000, "H100"), 0.01);
}

TEST(SinglePrecisionLaw, BatchedProductsOfOneRowReadTheMatrixOnce) {
  // 64 matrices of 4096 x 1024, 1 GiB, at 0.80 of A100's 1555 GB/s; with two rows the routine's
  // tiles of 128 rows multiply padding.
  const Device a100 = find_device("A100-PCIE-40GB");
  const auto time = [&](int64_t m) {
    return law_seconds(
        kernel_of("matmul", DType::kFp32, {{"batch", 64}, {"m", m}, {"n", 4096}, {"k", 1024}}),
        a100);
  };
  EXPECT_NEAR(time(1) / (1024.0 * 1024 * 1024 / (0.80 * 1555e9)), 1, 0.02);
  EXPECT_GT(time(2), 3 * time(1));
}

TEST(SinglePrecisionLaw, PowerCountsThePaddingOfTiles) {
  // 4096 columns and one: T4's lanes run a whole row of tiles more for it.
  const Device t4 = find_device("T4");
  const auto time = [&](int64_t n) {
    return law_seconds(kernel_of("linear", DType::kFp32, {{"m", 4096}, {"n", n}, {"k", 4096}}), t4);
  };
  EXPECT_NEAR(time(4097) / time(4096), 1 + 1.0 / 32, 0.01);
}

TEST(SinglePrecisionLaw, TheBatchedRoutineHasFewKernelsBeforeHopper) {
  const auto time = [](const char* gpu, int64_t m, int64_t n) {
    const Kernel kernel =
        kernel_of("matmul", DType::kFp32, {{"batch", 2048}, {"m", m}, {"n", n}, {"k", 1024}});
    return law_seconds(kernel, find_device(gpu));
  };
  // A100 and L4 run tiles of 128 x 128, P100 64 rows by 128 columns: what does not fill a tile
  // takes as long.
  EXPECT_NEAR(time("A100", 64, 64) / time("A100", 128, 128), 1, 0.05);
  EXPECT_NEAR(time("P100-PCIe", 32, 128) / time("P100-PCIe", 64, 128), 1, 0.05);
  EXPECT_GT(time("P100-PCIe", 128, 64) / time("P100-PCIe", 64, 128), 1.7)
      << "less what memory hides";
  EXPECT_LT(time("V100-PCIe", 64, 64) / time("V100-PCIe", 128, 128), 0.4);
  EXPECT_LT(time("H100", 64, 64) / time("H100", 128, 128), 0.5);
}

TEST(SinglePrecisionLaw, AShortProductTakesTheFirstBlocksTime) {
  // Nothing to do: the start and end of a kernel, 5000 cycles of 1.38 GHz.
  const Kernel kernel = kernel_of("linear", DType::kFp32, {{"m", 1}, {"n", 1}, {"k", 1}});
  EXPECT_NEAR(law_seconds(kernel, find_device("V100-PCIe")), 5000 / 1.38e9, 1e-6);
}

TEST(LowPrecisionLaw, PowerSlowsLongProductsMoreWithGddr) {
  // A100-SXM4: 312 TFLOP/s at 0.25 pJ are 78 of 400 W, so no more than 1 / 1.195 of the peak.
  const double a100 = reached(DType::kBf16, 128 * 108, 256 * 8, 32768, "A100");
  EXPECT_LT(a100, 1 / 1.195);
  EXPECT_GT(a100, 0.75);
  // L40S: 362 TFLOP/s at 1.06 pJ are 1.57 times the 245 of 350 W that are left for them.
  const double l40s = reached(DType::kBf16, 128 * 142, 256 * 8, 32768, "L40S");
  EXPECT_LT(l40s, 1 / 1.62);
  EXPECT_GT(l40s, 0.50);
  // RTX 4090: 165 TFLOP/s at the same energy are 0.56 of what its 450 W leave: as measured in vLLM,
  // it reaches its rate.
  EXPECT_GT(reached(DType::kBf16, 128 * 128, 256 * 8, 32768, "RTX 4090"), 0.95);
}

TEST(LowPrecisionLaw, RowsOfOddLengthRunKernelsWithoutAlignedLoads) {
  // Measured on H100: 8192 x 50257 x 768 at 94 TFLOP/s, 30522 x 1024 x 8192 at 259.
  const double odd = reached(DType::kBf16, 8192, 50257, 768, "H100");
  EXPECT_GT(odd, 0.08);
  EXPECT_LT(odd, 0.12);
  const double even = reached(DType::kBf16, 8192, 30522, 1024, "H100");
  EXPECT_GT(even, 0.20);
  EXPECT_LT(even, 0.28);
  EXPECT_GT(reached(DType::kBf16, 8192, 50264, 768, "H100"), 0.5);
  // The number of rows has no part in it, nor has FP32.
  EXPECT_GT(reached(DType::kBf16, 8191, 50264, 768, "H100"), 0.5);
  EXPECT_NEAR(reached(DType::kFp32, 8192, 50257, 768, "H100"),
              reached(DType::kFp32, 8192, 50264, 768, "H100"), 0.02);
}

TEST(LowPrecisionLaw, ATransposedFirstOperandIsStoredInRowsOfM) {
  const Device h100 = find_device("H100");
  const auto time = [&](int64_t m, int64_t k, int64_t trans_a) {
    return law_seconds(
        kernel_of("gemm", DType::kBf16, {{"m", m}, {"n", 1024}, {"k", k}, {"trans_a", trans_a}}),
        h100);
  };
  EXPECT_GT(time(4097, 4096, 1), 3 * time(4096, 4096, 1)) << "[k, m]";
  EXPECT_LT(time(4096, 4097, 1), 1.1 * time(4096, 4096, 1));
  EXPECT_GT(time(4096, 4097, 0), 3 * time(4096, 4096, 0)) << "[m, k]";
}

TEST(LowPrecisionLaw, UnalignedRowsInTf32) {
  // Measured on H100: 8192 x 30522 x 1024, rows of 8 bytes, 4.15 ms; 2048 x 8192 x 2048 189 us.
  const Device h100 = find_device("H100");
  const auto time = [&](int64_t m, int64_t n, int64_t k) {
    return law_seconds(kernel_of("linear", DType::kTf32, {{"m", m}, {"n", n}, {"k", k}}), h100);
  };
  EXPECT_NEAR(time(8192, 30522, 1024), 4.15e-3, 0.6e-3);
  EXPECT_NEAR(time(2048, 8192, 2048), 189e-6, 30e-6);
  EXPECT_LT(time(8192, 30524, 1024), 0.5 * time(8192, 30522, 1024));
}

TEST(LowPrecisionLaw, Gcn5AddsInFp32AtHalfTheRate) {
  const Kernel kernel = kernel_of("gemm", DType::kFp16, {{"m", 8192}, {"n", 8192}, {"k", 8192}});
  const auto ratio = [&](const char* gpu) {
    const Device device = find_device(gpu);
    return law_seconds(kernel, device) / law_seconds(kernel, device, {.half_sums = true});
  };
  EXPECT_NEAR(ratio("MI60"), 2, 0.02);
  EXPECT_NEAR(ratio("MI25"), 2, 0.02);
  EXPECT_EQ(ratio("RX 6800 XT"), 1) << "V_DOT2_F32_F16";
  EXPECT_EQ(ratio("MI100"), 1) << "matrix units";
}

TEST(LowPrecisionLaw, AnAmdBlockAloneWaitsForItsLoads) {
  // RX 6800 XT, 72 units of 256 FLOP a clock: a tile of 64 x 64 takes 54 cycles of a unit for a
  // step of k, and 30 that the other blocks of the unit would hide.
  const Device device = find_device("RX 6800 XT");
  const auto time = [&](int64_t batch) {
    const SizeList sizes = {{"batch", batch}, {"m", 64}, {"n", 64}, {"k", 256}};
    return law_seconds(kernel_of("matmul", DType::kFp16, sizes), device, {.half_sums = true});
  };
  EXPECT_LT(time(72 * 8), 6.5 * time(72));
  EXPECT_GT(time(72 * 64), 6.5 * time(72 * 8));
}

TEST(LowPrecisionLaw, AVectorTimesAMatrixStreamsTheWeights) {
  // 8192 x 28672 weights of two bytes through 0.80 of an A100-40's 1.555 TB/s.
  const Device device = find_device("A100-PCIE-40GB");
  const Kernel kernel = kernel_of("linear", DType::kBf16, {{"m", 1}, {"n", 28672}, {"k", 8192}});
  const double stream_s = 2.0 * 8192 * 28672 / (0.80 * device.memory_bytes_per_s);
  const double law_s = law_seconds(kernel, device);
  EXPECT_GT(law_s, stream_s);
  EXPECT_LT(law_s, stream_s * 1.05 + 10e-6) << "and the launch";
}

TEST(LowPrecisionLaw, SmallWeightsAreFoundInL2WhereTheBenchmarkLeavesThemThere) {
  // 2 MB in 40 MB of L2; six copies still fit, and a cold cache has none of it.
  const Device device = find_device("A100-PCIE-40GB");
  const Kernel kernel = kernel_of("linear", DType::kBf16, {{"m", 1}, {"n", 1024}, {"k", 1024}});
  const Conditions cold = {.software = software_of("vllm"), .caches = Caches::kCold};
  const Conditions warm = {.software = software_of("vllm"), .caches = Caches::kWarm};
  const Conditions alternating = {.software = software_of("vllm"), .caches = Caches::kAlternating};
  EXPECT_LT(law_seconds(kernel, device, warm), law_seconds(kernel, device, cold));
  EXPECT_EQ(law_seconds(kernel, device, alternating), law_seconds(kernel, device, warm));
  // 33.6 MB: one copy fits, six do not.
  const Kernel large = kernel_of("linear", DType::kBf16, {{"m", 1}, {"n", 4096}, {"k", 4096}});
  EXPECT_LT(law_seconds(large, device, warm), law_seconds(large, device, alternating));
  EXPECT_EQ(law_seconds(large, device, alternating), law_seconds(large, device, cold));
}

TEST(LowPrecisionLaw, QuantizingTheActivationsTakesLaunchesOfItsOwn) {
  const Device device = find_device("H100");
  const Kernel kernel =
      kernel_of("quantized_linear", DType::kBf16,
                {{"m", 16}, {"n", 1024}, {"k", 1024}, {"scheme", QuantScheme::kFp8}});
  // 9 us of launches with TensorRT-LLM, 3 us with the others.
  const double sglang_s = law_seconds(kernel, device, {.software = software_of("sglang")});
  EXPECT_NEAR(law_seconds(kernel, device, {.software = software_of("trtllm")}) - sglang_s, 6e-6,
              1e-9);
  // vLLM finds a scale for each row: 1500 cycles of an SM.
  EXPECT_NEAR(law_seconds(kernel, device, {.software = software_of("vllm")}) - sglang_s,
              16 * 1500 / 132.0 / 1.98e9, 1e-12);
}

TEST(LowPrecisionLaw, AQuantizedInputSavesTheLaunchesThatQuantizeIt) {
  const Device device = find_device("H100");
  Kernel kernel = kernel_of("quantized_linear", DType::kBf16,
                            {{"m", 16}, {"n", 1024}, {"k", 1024}, {"scheme", QuantScheme::kFp8}});
  const Chip chip(device, bundled_laws());
  const Conditions trtllm{.software = software_of("trtllm")};
  EXPECT_EQ(low_precision_law(kernel, chip, trtllm).fused_s, 0);
  const double seconds = low_precision_law(kernel, chip, trtllm).seconds;
  kernel.quantized_input = true;
  const LawTime law = low_precision_law(kernel, chip, trtllm);
  EXPECT_EQ(law.seconds, seconds) << "measurements are of the product with these launches";
  EXPECT_NEAR(law.fused_s, 9e-6, 1e-7);
  kernel.scheme = QuantScheme::kFp4;
  EXPECT_NEAR(low_precision_law(kernel, chip, trtllm).fused_s, 4.9e-6, 1e-7);
}

}  // namespace
}  // namespace tilecast
