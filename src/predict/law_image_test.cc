// Laws of norms in networks of images against times of an H100 (data/measurements, stages).

#include <gtest/gtest.h>

#include "law_seconds.h"
#include "ops/op_def.h"

namespace tilecast {
namespace {

TEST(ImageNormLaw, BatchNormsOfImagesStoredByPixelReadThemTwice) {
  // EfficientNet-B0 in training on an H100, FP16, batch 128 (data/measurements, stages: timm_ops).
  const Device h100 = find_device("H100");
  const auto seconds = [&](const char* op, int64_t channels, int64_t pixels, int64_t reads) {
    const int64_t bytes = 2 * 128 * channels * pixels;
    const Kernel kernel{.shape = Stream{.rows = channels, .elements = 128 * pixels},
                        .op = require_op(op),
                        .dtype = DType::kFp16,
                        .read_bytes = 2 * reads * bytes,
                        .write_bytes = bytes};
    const LawTime time = stream_law(kernel, Chip(h100, bundled_laws()), {});
    EXPECT_TRUE(time.stands_alone);
    return time.seconds;
  };
  EXPECT_NEAR(seconds("batch_norm", 96, 112 * 112, 1), 440e-6, 60e-6);
  EXPECT_NEAR(seconds("batch_norm", 672, 14 * 14, 1), 45e-6, 7e-6);
  EXPECT_NEAR(seconds("batch_norm_backward", 96, 112 * 112, 2), 669e-6, 70e-6);
  EXPECT_NEAR(seconds("batch_norm_backward", 480, 14 * 14, 2), 50e-6, 7e-6);
}

TEST(ImageNormLaw, BatchNormsWithStoredStatisticsTakeCyclesForEachElement) {
  // ResNet-50 in inference on an H100, FP16, batch 256: 526 us for 256 channels of 56 x 56 pixels,
  // 1.6 TB/s. Slower memory hides the cycles.
  const int64_t elements = int64_t{256} * 256 * 56 * 56;
  const Kernel kernel{.shape = Stream{.elements = elements},
                      .op = require_op("batch_norm"),
                      .dtype = DType::kFp16,
                      .flops = 2 * elements,
                      .read_bytes = 2 * elements,
                      .write_bytes = 2 * elements};
  EXPECT_NEAR(law_seconds(kernel, find_device("H100")), 526e-6, 30e-6);
  const Device rtx = find_device("RTX 4090");
  EXPECT_NEAR(
      law_seconds(kernel, rtx),
      law_seconds(kernel_of("relu", DType::kFp16, {{"rows", 1}, {"columns", elements}}), rtx),
      5e-6);
}

TEST(ImageNormLaw, CompiledRowsStayInRegisters) {
  // ConvNeXt's norms under torch.compile on an H100, FP16, batch 256: 384 columns 25.8 us, 77 MB;
  // PyTorch's own kernel 104 us, 154 MB.
  const Device h100 = find_device("H100");
  const auto seconds = [&](const char* op, int64_t bytes) {
    const Kernel kernel{
        .shape = Rows{.rows = 50176, .columns = 384, .function = Rows::Function::kNorm},
        .op = require_op(op),
        .read_bytes = bytes / 2,
        .write_bytes = bytes / 2};
    return law_seconds(kernel, h100);
  };
  const int64_t elements = 50176 * 384;
  EXPECT_NEAR(seconds("fused_layer_norm", 4 * elements), 25.8e-6, 4e-6);
  EXPECT_GT(seconds("layer_norm", 8 * elements), 70e-6);
}

}  // namespace
}  // namespace tilecast
