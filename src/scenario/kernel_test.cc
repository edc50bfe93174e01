// Forecasts of single kernels.

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "test_forecaster.h"
#include "test_support.h"
#include "tilecast/forecast.h"
#include "tilecast/learn.h"
#include "tilecast/result.h"

namespace tilecast {
namespace {

TEST(KernelTest, RunsAtTheClockThatIsAskedFor) {
  const auto seconds = [](const std::string& clocks) {
    return forecaster()
        .kernel("linear", load_gpu_ref("A100-PCIE-80GB"), "fp32",
                {{"m", 4096}, {"n", 4096}, {"k", 4096}}, {.clocks = clocks})
        .front()
        .latency_s;
  };
  // The device file: 1065 MHz base, 1410 MHz boost.
  EXPECT_EQ(seconds("1410"), seconds("boost"));
  EXPECT_EQ(seconds("1065"), seconds("base"));
  // At the boost clock the board's power limits the lanes a little.
  EXPECT_NEAR(seconds("705") / seconds("boost"), 1.95, 0.1) << "the lanes compute at half the rate";
  // A copy waits for the memory, whose clock is another.
  const auto copy = [](const std::string& clocks) {
    return forecaster()
        .kernel("copy", load_gpu_ref("A100"), "fp32", {{"n", 1 << 28}}, {.clocks = clocks})
        .front()
        .latency_s;
  };
  EXPECT_NEAR(copy("705") / copy("boost"), 1, 0.02);
}

TEST(KernelTest, ClocksThatADeviceCannotHaveAreRefused) {
  const auto kernel = [](const char* gpu, const std::string& clocks) {
    return forecaster().kernel("linear", load_gpu_ref(gpu), "bf16", {}, {.clocks = clocks});
  };
  EXPECT_ERROR(kernel("H100", "bost"), kInput,
               "`clocks`: expected boost, base, sustained or a number of MHz from 10 to 10000, "
               "found 'bost'");
  EXPECT_ERROR(kernel("H100", "nan"), kInput, "found 'nan'");
  EXPECT_ERROR(kernel("H100", "5000"), kInput,
               "more than twice the boost clock of nvidia-h100-sxm5-80gb, 1980 MHz");
  EXPECT_ERROR(kernel("B200", "base"), kUnsupported, "states no base clock");
}

TEST(KernelTest, UnknownWordsAndSizesAreRefusedInTheLibraryToo) {
  const auto kernel = [](const std::string& op, const std::vector<GivenSize>& sizes,
                         const KernelOptions& options = {}) {
    return forecaster().kernel(op, load_gpu_ref("H100"), "bf16", sizes, options);
  };
  EXPECT_ERROR(kernel("linear", {}, {.predictor = "lerned"}), kInput,
               "`predictor`: unknown value 'lerned'; did you mean 'learned'?");
  EXPECT_ERROR(kernel("linear", {}, {.software = "torch"}), kInput,
               "`software`: unknown value 'torch'; did you mean 'pytorch'?");
  EXPECT_ERROR(kernel("experts", {{"scheme", "fp5"}}), kInput, "scheme: unknown scheme 'fp5'");
  EXPECT_ERROR(kernel("attention", {{"kv_dtype", "fp5"}}), kInput, "kv_dtype: unknown dtype");
  EXPECT_ERROR(kernel("attention", {{"heads", "many"}}), kInput,
               "heads: expected a whole number, found 'many'");
  EXPECT_ERROR(kernel("linear", {{"heads", 9}}), kInput, "linear takes no heads; it takes batch");
  EXPECT_ERROR(kernel("linear", {{"m", 0}}), kInput, "linear: m must be at least 1, found 0");
  EXPECT_ERROR(kernel("linear", {{"batch", -5}}), kInput, "batch must be at least 1, found -5");
  EXPECT_ERROR(kernel("attention", {{"heads", 0}}), kInput, "heads must be at least 1");
  EXPECT_ERROR(kernel("attention", {{"kv_heads", -1}}), kInput, "kv_heads must be at least 0");
  EXPECT_ERROR(kernel("attention", {{"kv_heads", 3}}), kInput, "3 kv_heads do not divide 8 heads");
  EXPECT_ERROR(kernel("attention", {{"window", -1}}), kInput, "window must be at least 0");
  EXPECT_ERROR(kernel("experts", {{"num_experts", 0}}), kInput, "num_experts must be at least 1");
  EXPECT_ERROR(kernel("experts", {{"num_experts", 4}, {"top_k", 5}}), kInput,
               "a token cannot go to 5 of 4 experts");
  EXPECT_ERROR(kernel("experts", {{"skew", -1}}), kInput, "skew must be at least 0");
  EXPECT_ERROR(kernel("view", {{"m", 1}}), kUnsupported, "view launches no kernel");
  EXPECT_ERROR(evaluate(forecaster(), "/nowhere", "foo"), kInput, "`predictor`: unknown value");
}

}  // namespace
}  // namespace tilecast
