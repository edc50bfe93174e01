#include <gtest/gtest.h>

#include "devices/registry.h"
#include "ops/sizes.h"
#include "predict/bound.h"
#include "predict/kernel_kinds.h"

namespace tilecast {
namespace {

Kernel convolution(const SizeList& sizes, DType dtype = DType::kFp32,
                   std::string_view op = "conv2d") {
  return kernels_of_sizes(op, dtype, sizes).front();
}

double law_s(const Kernel& kernel, const std::string& gpu) {
  const Device device = find_device(gpu);
  return convolution_law(kernel, Chip(device, bundled_laws()), {}).seconds;
}

/// A layer of ResNet with this window.
SizeList layer(int64_t window, int64_t stride = 1) {
  return {{"batch", 64},  {"in_channels", 512},      {"out_channels", 512},
          {"height", 28}, {"window_height", window}, {"stride", stride}};
}

TEST(ConvolutionLaw, WinogradTakesLessThanTheProductsOfTheDefinition) {
  for (const char* gpu : {"P4", "P100-PCIe", "V100-PCIe", "T4", "A100"}) {
    const Device device = find_device(gpu);
    const Kernel kernel = convolution(layer(3));
    const double product_s = roofline_bound(kernel, device).compute_s;
    EXPECT_LT(law_s(kernel, gpu), product_s) << gpu;
    // The bound is that of the algorithm with the fewest products.
    EXPECT_NEAR(physical_bound(kernel, device, Caches::kCold).compute_s, product_s / 4,
                1e-9 * product_s);
  }
}

TEST(ConvolutionLaw, StridesDilationAndGroupsLeaveTheImplicitProduct) {
  const Device device = find_device("V100-PCIe");
  const auto bound_of = [&](const Kernel& kernel) {
    return physical_bound(kernel, device, Caches::kCold).compute_s;
  };
  const Kernel strided = convolution(layer(3, 2));
  EXPECT_DOUBLE_EQ(bound_of(strided), roofline_bound(strided, device).compute_s);
  EXPECT_GT(law_s(strided, "V100-PCIe"), bound_of(strided));
  Kernel dilated = convolution(layer(3));
  std::get<Convolution>(dilated.shape).dilation = 2;
  EXPECT_GT(law_s(dilated, "V100-PCIe"), 1.5 * law_s(convolution(layer(3)), "V100-PCIe"));
}

TEST(ConvolutionLaw, ReachesWhatCudnnDoesOnV100) {
  // NeuSight's rows of V100 PCIe, the overhead of calls taken off: 3 x 3, stride 1.
  const double s = law_s(
      convolution({{"batch", 38}, {"in_channels", 893}, {"out_channels", 326}, {"height", 5}}),
      "Tesla V100-PCIE-32GB");
  EXPECT_NEAR(s, 0.83e-3, 0.25e-3);
}

TEST(ConvolutionLaw, CopiesBetweenLayoutsWhereKernelsReadTheOther) {
  SizeList by_pixel = layer(3);
  by_pixel.push_back({"channels_last", 1});
  // Lanes read images by channel, matrix units by pixel.
  EXPECT_GT(law_s(convolution(by_pixel), "H100"), law_s(convolution(layer(3)), "H100"));
  EXPECT_LT(law_s(convolution(by_pixel, DType::kBf16), "H100"),
            law_s(convolution(layer(3), DType::kBf16), "H100"));
}

TEST(ConvolutionLaw, ProductsReadAlignedImagesByChannelAsTheyAre) {
  // ResNet-50's 1 x 1 windows on an H100, FP16: 28 x 28 pixels take the same time in both layouts,
  // 7 x 7 three times as long by channel.
  const auto ratio = [](int64_t height) {
    SizeList sizes = {{"batch", 256},
                      {"in_channels", 512},
                      {"out_channels", 128},
                      {"height", height},
                      {"window_height", 1}};
    const double by_channel = law_s(convolution(sizes, DType::kFp16), "H100");
    sizes.push_back({"channels_last", 1});
    return by_channel / law_s(convolution(sizes, DType::kFp16), "H100");
  };
  EXPECT_DOUBLE_EQ(ratio(28), 1);
  EXPECT_GT(ratio(7), 1.5);
}

TEST(ConvolutionLaw, HalfRateUnitsHideWhatElseAKernelDoes) {
  // A GeForce sums in FP32 at half the rate of its units: 3 x 3 windows reach its rate, on L40S,
  // which has the same units at full rate and less power, 0.6 of it at most.
  const Kernel kernel = convolution({{"batch", 64},
                                     {"in_channels", 512},
                                     {"out_channels", 512},
                                     {"height", 56},
                                     {"channels_last", 1}},
                                    DType::kFp16);
  const auto reached = [&](const char* gpu) {
    return roofline_bound(kernel, find_device(gpu)).compute_s / law_s(kernel, gpu);
  };
  EXPECT_GT(reached("RTX 4090"), 0.93);
  EXPECT_LT(reached("L40S"), 0.6);
}

TEST(ConvolutionLaw, TheBoardsPowerCountsIn16Bits) {
  // As for products: 1.06 pJ a FLOP, 1.64 times for T4's 12 nm, at 65 TFLOP/s are 2.3 times what
  // its 70 W leave for them.
  const Kernel kernel = convolution({{"batch", 64},
                                     {"in_channels", 640},
                                     {"out_channels", 640},
                                     {"height", 64},
                                     {"channels_last", 1}},
                                    DType::kFp16);
  Device t4 = find_device("T4");
  const double held_back_s = convolution_law(kernel, Chip(t4, bundled_laws()), {}).seconds;
  std::get<Gpu>(t4.chip).board_power_w = 1e6;
  EXPECT_NEAR(held_back_s / convolution_law(kernel, Chip(t4, bundled_laws()), {}).seconds, 1.77,
              0.05);
}

TEST(ConvolutionLaw, DepthwiseWindowsAreFarFromThePeak) {
  // data/measurements: 192 channels, 7 x 7, 28 x 28 pixels, batch 128 in TF32: 365 us on H100.
  const Kernel kernel = convolution({{"batch", 128},
                                     {"in_channels", 192},
                                     {"out_channels", 192},
                                     {"height", 28},
                                     {"window_height", 7},
                                     {"groups", 192},
                                     {"channels_last", 1}},
                                    DType::kTf32);
  EXPECT_NEAR(law_s(kernel, "H100"), 365e-6, 70e-6);
}

TEST(ConvolutionWork, StridesBeyondTheWindowSkipLines) {
  SizeList sizes = {{"batch", 1},   {"in_channels", 8},   {"out_channels", 16},
                    {"height", 32}, {"window_height", 1}, {"stride", 2}};
  const int64_t image = 4 * 8 * 32 * 32, weight = 4 * 8 * 16;
  EXPECT_EQ(convolution(sizes).read_bytes, image / 2 + weight);
  EXPECT_EQ(convolution(sizes, DType::kFp32, "conv2d_weight_backward").read_bytes,
            image / 2 + 4 * 16 * 16 * 16);
  sizes.push_back({"channels_last", 1});
  EXPECT_EQ(convolution(sizes).read_bytes, image / 4 + weight);
}

}  // namespace
}  // namespace tilecast
