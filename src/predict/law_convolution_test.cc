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

/// Depthwise windows of square images.
SizeList depthwise(int64_t batch, int64_t channels, int64_t height, int64_t window,
                   bool channels_last, int64_t stride = 1) {
  return {{"batch", batch},           {"in_channels", channels},
          {"out_channels", channels}, {"height", height},
          {"window_height", window},  {"groups", channels},
          {"stride", stride},         {"channels_last", channels_last ? 1 : 0}};
}

TEST(ConvolutionLaw, DepthwiseWindowsStoredByPixelReachMoreIn16Bits) {
  // ConvNeXt's and EfficientNet's windows on an H100 (data/measurements, stages: timm_ops).
  EXPECT_NEAR(law_s(convolution(depthwise(256, 96, 56, 7, true), DType::kFp16), "H100"), 549e-6,
              80e-6);
  EXPECT_NEAR(law_s(convolution(depthwise(256, 384, 14, 7, true), DType::kFp16), "H100"), 171e-6,
              25e-6);
  EXPECT_NEAR(law_s(convolution(depthwise(128, 480, 14, 5, true), DType::kFp16), "H100"), 44.8e-6,
              9e-6);
  // Gradients of inputs do not: 89 us, 16 images in FP16.
  EXPECT_NEAR(
      law_s(convolution(depthwise(16, 96, 56, 7, true), DType::kFp16, "conv2d_input_backward"),
            "H100"),
      89e-6, 15e-6);
}

TEST(ConvolutionLaw, PyTorchsDepthwiseKernelsComputeAnAddressForEachElement) {
  // Stored by channel on an H100 (data/measurements, stages: convs).
  EXPECT_NEAR(law_s(convolution(depthwise(128, 144, 56, 3, false), DType::kBf16), "H100"), 549e-6,
              60e-6);
  EXPECT_NEAR(law_s(convolution(depthwise(64, 672, 14, 5, false), DType::kBf16), "H100"), 146e-6,
              20e-6);
  EXPECT_NEAR(law_s(convolution(depthwise(128, 96, 56, 7, false), DType::kBf16), "H100"), 1315e-6,
              160e-6);
  EXPECT_NEAR(
      law_s(convolution(depthwise(64, 384, 14, 7, false), DType::kTf32, "conv2d_input_backward"),
            "H100"),
      212e-6, 25e-6);
  EXPECT_NEAR(
      law_s(convolution(depthwise(64, 1152, 7, 3, false), DType::kFp32, "conv2d_weight_backward"),
            "H100"),
      136e-6, 75e-6);
  // cuDNN takes small windows in FP16.
  EXPECT_LT(law_s(convolution(depthwise(128, 144, 56, 3, false), DType::kFp16), "H100"), 300e-6);
}

TEST(ConvolutionLaw, GradientsOfStridedDepthwiseWindowsVisitEachPixelOfTheInput) {
  // EfficientNet-B0, 144 channels of 56 x 56 pixels, 5 x 5, both gradients: 556 us on an H100.
  const SizeList sizes = depthwise(128, 144, 56, 5, true, 2);
  const auto seconds = [&](const char* op) {
    return law_s(convolution(sizes, DType::kFp16, op), "H100");
  };
  EXPECT_NEAR(seconds("conv2d_input_backward") + seconds("conv2d_weight_backward"), 556e-6, 80e-6);
}

TEST(ConvolutionLaw, GroupsThatDoNotFillATileAreRepacked) {
  // RegNetY-3.2GF: 24 groups of 24 channels in FP16, stored by pixel: 708 us on an H100.
  const auto seconds = [](int64_t groups) {
    return law_s(convolution({{"batch", 256},
                              {"in_channels", 576},
                              {"out_channels", 576},
                              {"height", 14},
                              {"groups", groups},
                              {"channels_last", 1}},
                             DType::kFp16),
                 "H100");
  };
  EXPECT_NEAR(seconds(24), 708e-6, 180e-6);
  EXPECT_LT(seconds(36), 300e-6);  // of 16 channels
}

TEST(ConvolutionLaw, GradientsOfWideGroupsStoredByPixelRunOnLanes) {
  // RegNetX-3.2GF's 9 groups of 48 channels on an RTX 3090, PyTorch 1.12.
  const auto ratio = [](int64_t groups, int64_t channels) {
    SizeList sizes = {{"batch", 384},
                      {"in_channels", channels},
                      {"out_channels", channels},
                      {"height", 14},
                      {"groups", groups}};
    const auto seconds = [&] {
      return law_s(convolution(sizes, DType::kFp16, "conv2d_weight_backward"), "RTX 3090");
    };
    const double by_channel = seconds();
    sizes.push_back({"channels_last", 1});
    return seconds() / by_channel;
  };
  EXPECT_GT(ratio(9, 432), 3);
  EXPECT_LT(ratio(32, 512), 1);
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
