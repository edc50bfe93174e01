// Products of few rows, as a step of text generation has them: fewer rows take no longer than more.
// Benchmarks that time the host or the first call of a sweep break that.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <array>

#include "devices/registry.h"
#include "ops/op_def.h"
#include "predict/bound.h"
#include "predict/predictor.h"
#include "scenario/internal.h"

namespace tilecast {
namespace {

struct Layer {
  int64_t n, k;
};
/// Steps of Llama 3 8B and 70B, Gemma 2 9B, DeepSeek V3 on eight GPUs and Qwen 3 30B.
constexpr auto kLayers =
    std::to_array<Layer>({{6144, 4096},  {4096, 4096}, {28672, 4096}, {4096, 14336}, {1280, 8192},
                          {8192, 1024},  {7168, 8192}, {8192, 3584},  {8192, 3584},  {28672, 3584},
                          {3584, 14336}, {2112, 7168}, {3072, 1536},  {7168, 2048},  {4608, 7168},
                          {7168, 2304},  {5120, 2048}, {2048, 4096},  {1536, 2048},  {2048, 768}});
constexpr auto kRows = std::to_array<int64_t>({1, 2, 4, 8});
constexpr auto kSchemes = std::to_array<QuantScheme>(
    {QuantScheme::kNone, QuantScheme::kFp8, QuantScheme::kFp8Block, QuantScheme::kInt8,
     QuantScheme::kInt8WeightOnly, QuantScheme::kInt4WeightOnly, QuantScheme::kFp4});
const auto kServing = std::to_array<Software>(
    {software_of("pytorch"), software_of("vllm"), software_of("sglang"), software_of("trtllm")});

/// The layers one after the other, for each of kRows.
std::vector<Kernel> layers(QuantScheme scheme) {
  std::vector<Kernel> kernels;
  for (const int64_t m : kRows) {
    for (const Layer& layer : kLayers) {
      SizeList sizes = {{"m", m}, {"n", layer.n}, {"k", layer.k}};
      const bool stored = scheme != QuantScheme::kNone;
      if (stored) sizes.push_back({"scheme", scheme});
      const char* op = stored ? "quantized_linear" : "linear";
      // The last kernel is the product; others quantize its input.
      kernels.push_back(kernels_of_sizes(op, DType::kBf16, sizes).back());
    }
  }
  return kernels;
}

TEST(FewRows, TakeNoLongerThanMore) {
  // Measured: TensorRT-LLM's int4 layers on A100 take 8 % less with two rows than with one
  // (median).
  constexpr double kLayerMayFall = 1.10, kAllMayFall = 1.08;
  // Libraries choose among kernels for each size, and not always well.
  constexpr double kMayBreak = 0.012;
  const Weights weights = load_weights("");
  size_t pairs = 0, broken = 0;
  for (const Device& device : bundled_devices()) {
    for (const QuantScheme scheme : kSchemes) {
      const std::vector<Kernel> kernels = layers(scheme);
      if (!has_unit_for(kernels.front(), device)) continue;
      for (const Software software : kServing) {
        std::vector<KernelTime> times(kernels.size());
        make_learned_predictor(weights)->predict(kernels, device, {.software = software}, times);
        std::array<double, kRows.size()> all{};
        for (size_t r = 0; r < kRows.size(); ++r) {
          for (size_t i = 0; i < kLayers.size(); ++i) {
            const double seconds = times[r * kLayers.size() + i].seconds;
            all[r] += seconds;
            if (r == 0) continue;
            ++pairs;
            if (times[(r - 1) * kLayers.size() + i].seconds > kLayerMayFall * seconds) ++broken;
          }
          if (r > 0) {
            EXPECT_LE(all[r - 1], kAllMayFall * all[r]) << fmt::format(
                "{} {} {}: {} rows take longer than {}", device.id, software_name(software),
                scheme_info(scheme).name, kRows[r - 1], kRows[r]);
          }
        }
      }
    }
  }
  fmt::print("{} of {} layers take over 10 % less with twice the rows\n", broken, pairs);
  EXPECT_LE(broken, kMayBreak * static_cast<double>(pairs));
  EXPECT_GE(pairs, 40000u);
}

}  // namespace
}  // namespace tilecast
