// Convolutions and their gradients.

#include "predict/features.h"

namespace tilecast {
namespace {

struct ConvolutionInputs {
  const Kernel& kernel;
  const Convolution& c;

  int64_t in() const { return c.in_channels / c.groups; }
  int64_t out() const { return c.out_channels / c.groups; }
  int64_t pixels() const { return c.batch * c.out_height * c.out_width; }
  bool is(Convolution::Pass pass) const { return c.pass == pass; }
};

using ConvolutionFeature = Feature<ConvolutionInputs>;

constexpr auto kConvolution = std::to_array<ConvolutionFeature>({
    {"log2_batch", [](const ConvolutionInputs& x) { return log2_of(x.c.batch); }},
    {"log2_in", [](const ConvolutionInputs& x) { return log2_of(x.in()); }},
    {"log2_out", [](const ConvolutionInputs& x) { return log2_of(x.out()); }},
    {"log2_height", [](const ConvolutionInputs& x) { return log2_of(x.c.out_height); }},
    {"log2_pixels", [](const ConvolutionInputs& x) { return log2_of(x.pixels()); }},
    {"log2_taps",
     [](const ConvolutionInputs& x) { return log2_of(x.c.window_height * x.c.window_width); }},
    {"log2_groups", [](const ConvolutionInputs& x) { return log2_of(x.c.groups); }},
    {"log2_stride", [](const ConvolutionInputs& x) { return log2_of(x.c.stride); }},
    {"log2_dilation", [](const ConvolutionInputs& x) { return log2_of(x.c.dilation); }},
    {"log2_flops", [](const ConvolutionInputs& x) { return log2_of(x.kernel.flops); }},
    {"log2_weights", [](const ConvolutionInputs& x) { return log2_of(x.in() * x.out()); }},
    {"is_input_gradient",
     [](const ConvolutionInputs& x) { return flag(x.is(Convolution::Pass::kInputGradient)); }},
    {"is_weight_gradient",
     [](const ConvolutionInputs& x) { return flag(x.is(Convolution::Pass::kWeightGradient)); }},
    {"channels_last", [](const ConvolutionInputs& x) { return flag(x.c.channels_last != 0); }},
    {"log2_element_bits",
     [](const ConvolutionInputs& x) { return log2_of(dtype_bits(x.kernel.dtype)); }},
    {"is_tf32",
     [](const ConvolutionInputs& x) { return flag(x.kernel.compute_dtype() == DType::kTf32); }},
    {"align_in", [](const ConvolutionInputs& x) { return alignment(x.in()); }},
    {"align_out", [](const ConvolutionInputs& x) { return alignment(x.out()); }},
    {"fill_out_32", [](const ConvolutionInputs& x) { return fill_of(x.out(), 32); }},
    {"fill_out_128", [](const ConvolutionInputs& x) { return fill_of(x.out(), 128); }},
    {"fill_height_4", [](const ConvolutionInputs& x) { return fill_of(x.c.out_height, 4); }},
    {"fill_height_8", [](const ConvolutionInputs& x) { return fill_of(x.c.out_height, 8); }},
    {"fill_width_16", [](const ConvolutionInputs& x) { return fill_of(x.c.out_width, 16); }},
});

using ConvolutionTable = FeatureTable<kConvolution>;

}  // namespace

KernelKindDef convolution_kind() {
  return {.name = "convolution",
          .covers = [](const Kernel& kernel) { return kernel.is<Convolution>(); },
          .law = convolution_law,
          .features = ConvolutionTable::names(),
          .make =
              [](const Kernel& kernel, const Conditions&) {
                return ConvolutionTable::values(
                    ConvolutionInputs{kernel, std::get<Convolution>(kernel.shape)});
              }};
}

}  // namespace tilecast
