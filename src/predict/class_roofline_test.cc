#include "predict/class_roofline.h"

#include <gtest/gtest.h>

#include "devices/registry.h"
#include "ops/op_def.h"

namespace tilecast {
namespace {

KernelTime class_time(const Kernel& kernel, const Device& device) {
  static const Weights weights = load_weights("");
  KernelTime time;
  make_learned_predictor(weights)->predict({&kernel, 1}, device, {}, {&time, 1});
  return time;
}

TEST(ClassRoofline, ChipsWithoutALawReachSharesOfTheirDataSheet) {
  const ClassRooflineConstants& c = bundled_laws().class_roofline;
  const Device chip = find_device("TPU v5e");
  const Kernel large =
      kernels_of_sizes("linear", DType::kBf16, {{"m", 8192}, {"n", 8192}, {"k", 8192}})[0];
  const KernelTime product = class_time(large, chip);
  const double peak = chip.gpu().matrix_peak(DType::kBf16);
  EXPECT_NEAR(product.seconds,
              c.start_s + static_cast<double>(large.flops) / (c.product_share * peak), 1e-9);
  EXPECT_EQ(product.predictor, kClassRoofline);
  EXPECT_EQ(product.extrapolated_feature, "architecture");
  EXPECT_EQ(product.limit, Limit::kCompute);
  EXPECT_LT(product.low_s, product.seconds);
  EXPECT_GE(product.low_s, roofline_bound(large, chip).seconds());
  EXPECT_GT(product.high_s, 2 * product.seconds);

  const Kernel token =
      kernels_of_sizes("linear", DType::kBf16, {{"m", 1}, {"n", 8192}, {"k", 8192}})[0];
  const KernelTime streamed = class_time(token, chip);
  EXPECT_NEAR(streamed.seconds,
              c.start_s + static_cast<double>(token.bytes()) /
                              (c.product_memory_share * chip.memory_bytes_per_s),
              1e-9);
  EXPECT_EQ(streamed.limit, Limit::kMemory);
}

TEST(ClassRoofline, IsOfChipsThatAreNoGpus) {
  const Kernel kernel =
      kernels_of_sizes("linear", DType::kBf16, {{"m", 64}, {"n", 64}, {"k", 64}})[0];
  for (const char* chip : {"TPU v5e", "TPU v6e", "TPU v7", "Gaudi 3", "Trainium2"}) {
    EXPECT_TRUE(is_known_by_class(kernel, find_device(chip))) << chip;
    EXPECT_EQ(find_device(chip).warnings.size(), 1u) << chip;
  }
  for (const char* gpu : {"H100", "MI300X", "GB10", "Strix Halo"})
    EXPECT_FALSE(is_known_by_class(kernel, find_device(gpu))) << gpu;
}

}  // namespace
}  // namespace tilecast
