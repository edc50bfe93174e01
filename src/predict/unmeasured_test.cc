#include "predict/unmeasured.h"

#include <gtest/gtest.h>

#include "devices/registry.h"
#include "ops/op_def.h"
#include "random_kernels.h"

namespace tilecast {
namespace {

KernelTime time_on(const char* gpu, const Kernel& kernel) {
  KernelTime time;
  make_learned_predictor(embedded_weights())
      ->predict({&kernel, 1}, find_device(gpu), {}, {&time, 1});
  return time;
}

Kernel renamed(Kernel kernel, std::string_view op) {
  kernel.op = require_op(op);
  return kernel;
}

const Kernel kRelu = {.shape = Stream{.elements = 1 << 24},
                      .op = require_op("relu"),
                      .flops = 1 << 24,
                      .read_bytes = int64_t{4} << 24,
                      .write_bytes = int64_t{4} << 24};
const Kernel kNorm = {
    .shape = Rows{.rows = 256, .columns = 1 << 16, .function = Rows::Function::kNorm},
    .op = require_op("layer_norm"),
    .flops = int64_t{8} << 24,
    .read_bytes = int64_t{4} << 24,
    .write_bytes = int64_t{4} << 24};

TEST(UnmeasuredOperator, TakesTheTimeOfAnotherAndSaysSo) {
  const KernelTime known = time_on("A100-PCIE-40GB", kRelu);
  const KernelTime unknown = time_on("A100-PCIE-40GB", renamed(kRelu, "avg_pool"));
  EXPECT_EQ(unknown.seconds, known.seconds);
  EXPECT_FALSE(known.extrapolated);
  EXPECT_TRUE(unknown.extrapolated);
  EXPECT_EQ(unknown.extrapolated_feature, kUnmeasuredOperator);
  EXPECT_LT(known.high_s, 1.5 * known.seconds);
  EXPECT_GT(unknown.high_s, 5 * unknown.seconds);
  EXPECT_EQ(unknown.low_s, known.low_s) << "such operators were hardly faster than the law";
}

TEST(UnmeasuredOperator, OfRowsIsNearerToItsModel) {
  const KernelTime known = time_on("A100-PCIE-40GB", kNorm);
  const KernelTime unknown = time_on("A100-PCIE-40GB", renamed(kNorm, "group_norm"));
  EXPECT_GT(unknown.high_s, 1.9 * unknown.seconds);
  EXPECT_LT(unknown.high_s, 3 * unknown.seconds);
  EXPECT_LE(unknown.low_s, known.low_s);
  EXPECT_GE(unknown.low_s, unknown.utilization_ratio * unknown.seconds);
}

TEST(UnmeasuredOperator, BatchNormIsOneInTrainingOnly) {
  EXPECT_TRUE(is_unmeasured(renamed(kNorm, "batch_norm")));
  EXPECT_FALSE(is_unmeasured(renamed(kRelu, "batch_norm")));
  EXPECT_TRUE(is_unmeasured(renamed(kRelu, "max_pool2d")));
  EXPECT_FALSE(is_unmeasured(kRelu));
}

}  // namespace
}  // namespace tilecast
