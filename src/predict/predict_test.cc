#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "base/embedded.h"
#include "base/rng.h"
#include "devices/registry.h"
#include "ops/op_def.h"
#include "predict/bound.h"
#include "predict/cost_models.h"
#include "predict/learned.h"
#include "predict/predictor.h"
#include "random_kernels.h"
#include "test_support.h"

namespace tilecast {
namespace {

TEST(Learned, IsNeverFasterThanPhysicsOnAnyDevice) {
  const auto predictor = make_learned_predictor(embedded_weights());
  const auto kernels = random_kernels(2000, 1);
  std::vector<KernelTime> times(kernels.size());
  for (const Device& device : bundled_devices()) {
    predictor->predict(kernels, device, {}, times);
    for (size_t i = 0; i < kernels.size(); ++i) {
      const double bound = bound_of(kernel_kind(kernels[i]), kernels[i], device, {}).seconds();
      ASSERT_GE(times[i].seconds, bound) << device.id << " kernel " << i;
      ASSERT_GE(times[i].low_s, bound) << device.id << " kernel " << i;
      ASSERT_LE(times[i].low_s, times[i].seconds);
      ASSERT_GE(times[i].high_s, times[i].seconds);
      // No measured kernel came nearer to a data sheet's rates than that.
      const bool learned = times[i].predictor == kernel_kind_name(kernel_kind(kernels[i]));
      ASSERT_LE(times[i].utilization_ratio, learned ? 0.97 + 1e-9 : 1.0)
          << device.id << " kernel " << i;
      ASSERT_TRUE(std::isfinite(times[i].high_s));
    }
  }
}

// Solvers of MIOpen are not held to the model's own bound, but to arithmetic at the rate of the
// fastest unit, with no tile larger than F(7x7, 3x3), and all bytes from DRAM.
TEST(CostModels, ConvolutionsOfMiopenKeepTheDataSheet) {
  if (embedded_files("tuning/").empty()) GTEST_SKIP() << "a build without tuning";
  const auto predictor = make_learned_predictor(embedded_weights());
  constexpr double kLargestReduction = (21.0 / 9) * (21.0 / 9);
  Rng rng(6);
  const auto size = [&](int bits) { return int64_t{1} << rng.below(static_cast<uint64_t>(bits)); };
  std::vector<Kernel> kernels;
  for (int i = 0; i < 200; ++i) {
    const SizeList sizes = {{"batch", size(9)},
                            {"in_channels", size(14)},
                            {"out_channels", size(14)},
                            {"height", 7 * size(6)},
                            {"window_height", 1 + 2 * static_cast<int64_t>(rng.below(6))}};
    for (const char* op : {"conv2d", "conv2d_input_backward", "conv2d_weight_backward"}) {
      for (const DType dtype : {DType::kFp32, DType::kFp16})
        for (const Kernel& kernel : kernels_of_sizes(op, dtype, sizes)) kernels.push_back(kernel);
    }
  }
  std::vector<KernelTime> times(kernels.size());
  size_t solvers = 0;
  for (const Device& device : bundled_devices()) {
    if (device.vendor != "amd" || device.as_gpu() == nullptr) continue;
    predictor->predict(kernels, device, {}, times);
    for (size_t i = 0; i < kernels.size(); ++i) {
      if (!times[i].predictor.starts_with("miopen:")) continue;
      ++solvers;
      const bool transforms = times[i].predictor.find("Winograd") != std::string_view::npos;
      const auto flops = static_cast<double>(kernels[i].flops);
      const double least_s = std::max(
          flops / device.matmul_peak(kernels[i].dtype) / (transforms ? kLargestReduction : 1),
          static_cast<double>(kernels[i].bytes()) / device.memory_bytes_per_s);
      if (times[i].predictor != "miopen:fft") {
        EXPECT_GE(times[i].low_s, least_s * (1 - 1e-9)) << device.id << " " << times[i].predictor;
      }
      EXPECT_LE(times[i].utilization_ratio, 1) << device.id << " " << times[i].predictor;
    }
  }
  EXPECT_GT(solvers, 1000u);
}

TEST(Learned, AKernelsTimeDoesNotDependOnItsNeighbours) {
  const auto predictor = make_learned_predictor(embedded_weights());
  const Device device = find_device("V100-PCIe");
  const auto kernels = random_kernels(100, 2);
  std::vector<KernelTime> together(kernels.size());
  predictor->predict(kernels, device, {}, together);
  for (size_t i = 0; i < kernels.size(); ++i) {
    KernelTime alone;
    predictor->predict({&kernels[i], 1}, device, {}, {&alone, 1});
    EXPECT_EQ(alone.seconds, together[i].seconds) << i;
  }
}

TEST(Learned, MostlyGrowsWithWork) {
  // Twice the rows of a product or a softmax. Laws grow with work (law_growth_test.cc); nothing
  // holds the residuals to it: falls of over 1 % and 20 % are counted and capped (bench/laws.cc
  // counts a million).
  const auto predictor = make_learned_predictor(embedded_weights());
  size_t falls = 0, deep = 0;
  size_t total = 0;
  Rng rng(3);
  for (const Device& device : bundled_devices()) {
    std::vector<Kernel> small, large;
    for (int i = 0; i < 200; ++i) {
      const char* op = i % 2 ? "linear" : "softmax";
      // Whole multiples of 32: a dimension that gets better aligned may make a product faster.
      const auto size = [&] { return 32 * static_cast<int64_t>(std::exp2(8 * rng.uniform())); };
      SizeList sizes = taken_sizes(op, {{"m", size()}, {"n", size()}, {"k", size()}});
      small.push_back(kernels_of_sizes(op, DType::kFp32, sizes)[0]);
      integer_in(sizes, "m") *= 2;
      large.push_back(kernels_of_sizes(op, DType::kFp32, sizes)[0]);
    }
    std::vector<KernelTime> a(small.size()), b(large.size());
    predictor->predict(small, device, {}, a);
    predictor->predict(large, device, {}, b);
    for (size_t i = 0; i < a.size(); ++i) {
      falls += b[i].seconds < 0.99 * a[i].seconds;
      deep += b[i].seconds < 0.8 * a[i].seconds;
    }
    total += a.size();
  }
  EXPECT_LE(falls, total * 7 / 100) << "of " << total;
  EXPECT_LE(deep, total * 2 / 100) << "of " << total;
}

TEST(TensorMatmul, AVectorTimesAMatrixRunsNearTheMemorysRate) {
  // Decoding a token: 134 MB of weights through an H100's 3.35 TB/s are 40 us.
  const Kernel kernel =
      kernels_of_sizes("linear", DType::kBf16, {{"m", 1}, {"n", 8192}, {"k", 8192}})[0];
  const Device device = find_device("H100");
  KernelTime time;
  make_learned_predictor(embedded_weights())->predict({&kernel, 1}, device, {}, {&time, 1});
  const double stream_s = static_cast<double>(kernel.bytes()) / device.memory_bytes_per_s;
  EXPECT_GT(time.seconds, stream_s);
  EXPECT_LT(time.seconds, 1.5 * stream_s);
  EXPECT_FALSE(time.extrapolated);
}

TEST(TensorMatmul, SoftwareMattersForSmallFp8) {
  // TensorRT-LLM quantizes the activations in launches of their own.
  const Kernel kernel =
      kernels_of_sizes("quantized_linear", DType::kBf16,
                       {{"m", 16}, {"n", 1024}, {"k", 1024}, {"scheme", QuantScheme::kFp8}})[0];
  const Device device = find_device("H100");
  const auto predictor = make_learned_predictor(embedded_weights());
  KernelTime vllm, trtllm;
  predictor->predict({&kernel, 1}, device, {.software = software_of("vllm")}, {&vllm, 1});
  predictor->predict({&kernel, 1}, device, {.software = software_of("trtllm")}, {&trtllm, 1});
  EXPECT_GT(trtllm.seconds, 1.5 * vllm.seconds);
}

TEST(TensorMatmul, SaysWhatItBorrows) {
  const auto feature_of = [](const char* op, DType dtype, const char* gpu, int64_t batch = 1) {
    const Kernel kernel =
        kernels_of_sizes(op, dtype, {{"batch", batch}, {"m", 512}, {"n", 512}, {"k", 512}})[0];
    KernelTime time;
    make_learned_predictor(embedded_weights())
        ->predict({&kernel, 1}, find_device(gpu), {}, {&time, 1});
    return std::string(time.extrapolated_feature);
  };
  EXPECT_EQ(feature_of("matmul", DType::kBf16, "H100", 8), "") << "as latent attention has them";
  EXPECT_EQ(feature_of("linear", DType::kInt8, "H100"), "dtype");
  EXPECT_EQ(feature_of("linear", DType::kFp16, "V100-PCIe"), "architecture");
  EXPECT_EQ(feature_of("linear", DType::kFp16, "P100-PCIe"), "architecture");
}

TEST(CostModels, TheFirstThatCoversForecastsAndTheLastCoversAll) {
  Weights some = load_weights("");
  some.models[static_cast<size_t>(KernelKind::kSoftmax)] = {};
  const Device device = find_device("V100-PCIe");
  std::vector<Kernel> kernels = random_kernels(64, 3);
  std::vector<KernelTime> whole(kernels.size()), part(kernels.size());
  make_learned_predictor(embedded_weights())->predict(kernels, device, {}, whole);
  make_learned_predictor(some)->predict(kernels, device, {}, part);
  size_t without = 0;
  for (size_t i = 0; i < kernels.size(); ++i) {
    if (whole[i].predictor != "softmax") {
      EXPECT_EQ(part[i].seconds, whole[i].seconds) << "another model's kernels do not change";
      continue;
    }
    ++without;
    EXPECT_EQ(part[i].predictor, "roofline");
    EXPECT_TRUE(part[i].extrapolated);
    EXPECT_EQ(part[i].extrapolated_feature, "model");
    EXPECT_GT(part[i].seconds, roofline_bound(kernels[i], device).seconds());
    EXPECT_LT(part[i].low_s, part[i].seconds);
    EXPECT_GT(part[i].high_s, part[i].seconds);
  }
  EXPECT_GT(without, 0u);
  EXPECT_TRUE(cost_models().back().covers(kernels[0], device, Weights{}));
}

TEST(CostModels, HaveNamesOfTheirOwnAndTheLearnedOnesAreOfGpus) {
  const Kernel kernel = random_kernels(1, 4).front();
  Device device = find_device("V100-PCIe");
  const auto covering = [&] {
    std::set<std::string_view> names;
    for (const CostModel& model : cost_models()) {
      if (model.covers(kernel, device, embedded_weights())) names.insert(model.name);
    }
    return names;
  };
  EXPECT_EQ(covering().size(), 2u) << "a learned one and the roofline";
  device.chip = Accelerator{};
  EXPECT_EQ(covering(), std::set<std::string_view>{"roofline"});
  std::set<std::string_view> all;
  for (const CostModel& model : cost_models()) all.insert(model.name);
  EXPECT_EQ(all.size(), cost_models().size());
}

TEST(Kinds, NoKernelIsOfTwoAndEachFeatureHasAName) {
  for (const Kernel& kernel : random_kernels(200, 5)) {
    int covered = 0;
    for (size_t n = 0; n < kKernelKindCount; ++n)
      covered += kernel_kind_def(static_cast<KernelKind>(n)).covers(kernel);
    EXPECT_EQ(covered, 1);
  }
  for (size_t n = 0; n < kKernelKindCount; ++n) {
    const std::vector<std::string_view>& names = feature_names(static_cast<KernelKind>(n));
    EXPECT_EQ(std::set(names.begin(), names.end()).size(), names.size());
    EXPECT_EQ(embedded_weights().models[n].mean.size(), names.size());
  }
  const Kernel reduce = kernels_of_sizes("all_reduce", DType::kBf16,
                                         {{"rows", 64}, {"columns", 64}, {"ranks", 2}})[0];
  EXPECT_FALSE(find_kernel_kind(reduce)) << "nobody learned collectives";
}

TEST(IntervalLawTest, IsLinearBetweenItsAnchors) {
  const IntervalLaw law{.low_log = {-0.9, -0.3, -0.1}, .high_log = {0.8, 0.4, 0.2}};
  EXPECT_EQ(law.at(0.01).low, -0.9);
  EXPECT_DOUBLE_EQ(law.at(3).high, 0.4);
  EXPECT_NEAR(law.at(std::sqrt(3.0 * 30.0)).high, 0.3, 1e-12);
  EXPECT_EQ(law.at(1e6).low, -0.1);
  EXPECT_TRUE(law.valid());
  EXPECT_FALSE((IntervalLaw{.low_log = {0.1, 0, 0}}).valid()) << "does not hold its forecast";
  EXPECT_FALSE((IntervalLaw{.common_share = 1.5}).valid());
}

TEST(Roofline, IsTheLargerOfComputeAndMemory) {
  const auto predictor = make_roofline_predictor();
  const Device device = find_device("V100-PCIe");
  const Kernel kernel =
      kernels_of_sizes("linear", DType::kFp32, {{"m", 4096}, {"n", 4096}, {"k", 4096}})[0];
  KernelTime time;
  predictor->predict({&kernel, 1}, device, {}, {&time, 1});
  EXPECT_DOUBLE_EQ(time.seconds, 2.0 * 4096 * 4096 * 4096 / device.matmul_peak(DType::kFp32));
  EXPECT_EQ(time.limit, Limit::kCompute);
}

TEST(Bounds, ADtypeThatTheDeviceHasNotIsRefused) {
  const Kernel kernel =
      kernels_of_sizes("linear", DType::kFp8, {{"m", 64}, {"n", 64}, {"k", 64}})[0];
  EXPECT_ERROR(
      physical_bound(kernel, find_device("V100-PCIe"), Caches::kCold), kUnsupported,
      "nvidia-v100-pcie-32gb has no unit that multiplies fp8 matrices; it has: fp32, fp16");
}

TEST(WavesTest, AreCountedByHand) {
  const Device device = find_device("V100-PCIe");  // 80 SMs
  const Kernel kernel = kernels_of_sizes("matmul", DType::kFp32,
                                         {{"batch", 3}, {"m", 200}, {"n", 300}, {"k", 64}})[0];
  const Waves waves = count_waves(kernel, device, {128, 64});
  EXPECT_EQ(waves.tiles, 3 * 2 * 5);
  EXPECT_EQ(waves.waves, 1);
  EXPECT_DOUBLE_EQ(waves.occupancy, 30.0 / 80.0);
}

TEST(Attention, AColdCacheTakesLongerThanAWarmOne) {
  const Device device = find_device("L40S");
  // 67 MB of keys and values in 96 MB of L2.
  const SizeList sizes = {
      {"batch", 8}, {"keys", 2048}, {"head_dim", 128}, {"heads", 32}, {"kv_heads", 8}};
  const std::vector<Kernel> kernels(
      2, kernels_of_sizes("cached_attention", DType::kBf16, sizes).front());
  const std::vector<Conditions> conditions = {{.caches = Caches::kCold}, {.caches = Caches::kWarm}};
  std::vector<KernelTime> times(2);
  predict_each(*make_learned_predictor(embedded_weights()), kernels, conditions, device, times);
  const double bytes = static_cast<double>(kernels[0].bytes());
  EXPECT_GE(times[0].seconds, bytes / device.memory_bytes_per_s);
  EXPECT_LT(times[1].seconds, bytes / device.memory_bytes_per_s) << "faster than DRAM";
}

TEST(Clocks, AKernelTakesTheRatesOfTheClockInForce) {
  const Device device = find_device("MI100");
  const double clock_hz = 1087e6, ratio = device.gpu().boost_clock_hz / clock_hz;
  const std::vector<Kernel> kernels(
      2, kernels_of_sizes("gemm", DType::kFp32, {{"m", 4096}, {"n", 4096}, {"k", 4096}}).front());
  const std::vector<Conditions> conditions = {{}, {.clock_hz = clock_hz}};
  std::vector<KernelTime> times(2);
  predict_each(*make_roofline_predictor(), kernels, conditions, device, times);
  EXPECT_DOUBLE_EQ(times[1].seconds, ratio * times[0].seconds);
  predict_each(*make_learned_predictor(embedded_weights()), kernels, conditions, device, times);
  // A product that the matrix units hold back: its utilization hardly depends on the clock.
  EXPECT_NEAR(times[1].seconds / times[0].seconds, ratio, 0.05 * ratio);
  // It is still the measured device, with its own interval.
  EXPECT_NEAR(times[1].high_s / times[1].seconds, times[0].high_s / times[0].seconds, 0.02);
  EXPECT_FALSE(times[1].extrapolated) << times[1].extrapolated_feature;
}

TEST(Experts, ManyTokensAreBoundByFlopsAndFewByWeights) {
  const Device device = find_device("H100");
  SizeList sizes = {{"tokens", 16384},
                    {"ffn_dim", 1536},
                    {"hidden_dim", 4096},
                    {"num_experts", 128},
                    {"top_k", 8}};
  std::vector<Kernel> kernels = kernels_of_sizes("experts", DType::kBf16, sizes);
  integer_in(sizes, "tokens") = 64;
  kernels.push_back(kernels_of_sizes("experts", DType::kBf16, sizes).front());
  std::vector<KernelTime> times(2);
  make_learned_predictor(embedded_weights())
      ->predict(kernels, device, {.software = software_of("trtllm")}, times);
  EXPECT_EQ(times[0].limit, Limit::kCompute);
  EXPECT_EQ(times[1].limit, Limit::kMemory);
  EXPECT_GT(times[0].seconds, times[1].seconds);
}

TEST(Collectives, AnAllReduceIsThatOfTheDevicesNode) {
  const Device device = find_device("H100");
  const Kernel kernel = kernels_of_sizes("all_reduce", DType::kBf16,
                                         {{"rows", 4096}, {"columns", 8192}, {"ranks", 8}})
                            .front();
  KernelTime time;
  make_learned_predictor(embedded_weights())->predict({&kernel, 1}, device, {}, {&time, 1});
  // NCCL 2.27, 64 MB of half on 8 H100: 322 us (aiconfigurator's nccl table).
  EXPECT_NEAR(time.seconds, 322e-6, 0.1 * 322e-6);
  EXPECT_EQ(time.limit, Limit::kNetwork);
  EXPECT_FALSE(time.extrapolated);
  EXPECT_LT(time.utilization_ratio, 1);
}

TEST(Unmeasured, ATypeThatNoNetworkLearnedFallsToTheRooflineAndSaysSo) {
  const Device device = find_device("H100");
  const std::vector<Kernel> kernels = {
      kernels_of_sizes("linear_scan_backward", DType::kBf16, {{"tokens", 4096}, {"head_dim", 64}})
          .front()};
  std::vector<KernelTime> learned(1), roofline(1);
  make_learned_predictor(embedded_weights())->predict(kernels, device, {}, learned);
  make_roofline_predictor()->predict(kernels, device, {}, roofline);
  for (size_t i = 0; i < kernels.size(); ++i) {
    EXPECT_EQ(learned[i].predictor, "roofline");
    EXPECT_TRUE(learned[i].extrapolated);
    EXPECT_EQ(learned[i].extrapolated_feature, "model");
    EXPECT_EQ(learned[i].low_s, roofline[i].seconds);
    EXPECT_DOUBLE_EQ(learned[i].seconds, 2e-6 + roofline[i].seconds);
    EXPECT_GT(learned[i].high_s, learned[i].seconds);
  }
}

}  // namespace
}  // namespace tilecast
