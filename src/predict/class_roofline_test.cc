#include "predict/class_roofline.h"

#include <gtest/gtest.h>

#include "devices/registry.h"
#include "laws/constant_table.h"
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

TEST(ClassRoofline, EachNumberOfItsLawMovesSomeTime) {
  const auto one = [](const char* op, DType dtype, const SizeList& sizes) {
    return kernels_of_sizes(op, dtype, sizes)[0];
  };
  const SizeList experts = {
      {"ffn_dim", 8192}, {"hidden_dim", 4096}, {"num_experts", 8}, {"top_k", 2}};
  const auto with_tokens = [&](int64_t tokens) {
    SizeList sizes = experts;
    sizes.push_back({"tokens", tokens});
    return sizes;
  };
  const std::vector<Kernel> kernels = {
      one("linear", DType::kBf16, {{"m", 8192}, {"n", 8192}, {"k", 8192}}),
      one("linear", DType::kFp8, {{"m", 8192}, {"n", 8192}, {"k", 8192}}),
      one("linear", DType::kBf16, {{"m", 1}, {"n", 8192}, {"k", 8192}}),
      one("attention", DType::kBf16,
          {{"batch", 8}, {"queries", 8192}, {"keys", 8192}, {"heads", 32}}),
      one("attention", DType::kFp8,
          {{"batch", 8}, {"queries", 8192}, {"keys", 8192}, {"heads", 32}}),
      one("cached_attention", DType::kBf16, {{"batch", 64}, {"keys", 8192}, {"heads", 8}}),
      one("experts", DType::kBf16, with_tokens(65536)),
      one("experts", DType::kBf16, with_tokens(1)),
      one("add", DType::kFp32, {{"rows", 8192}, {"columns", 8192}}),
      one("softmax", DType::kBf16, {{"rows", 8192}, {"columns", 8192}})};
  const Device chip = find_device("Gaudi 3");
  Weights weights = load_weights("");
  const auto seconds = [&] {
    std::vector<KernelTime> times(kernels.size());
    make_learned_predictor(weights)->predict(kernels, chip, {}, times);
    std::vector<double> all;
    for (const KernelTime& time : times) {
      all.push_back(time.seconds);
      all.push_back(time.high_s);
    }
    return all;
  };
  const std::vector<double> before = seconds();
  ConstantTable table;
  weights.laws.describe(table);
  for (const Constant& constant : table.constants()) {
    // No kernel here has more FLOPs for its bytes than the vector units allow.
    if (!constant.name.starts_with("class_roofline.") || constant.name.ends_with("vector_share"))
      continue;
    double& number = table.number(constant.name);
    number *= 1.1;
    EXPECT_NE(seconds(), before) << constant.name;
    number /= 1.1;
  }
}

TEST(ClassRoofline, IsOfChipsThatAreNoGpus) {
  const Kernel kernel =
      kernels_of_sizes("linear", DType::kBf16, {{"m", 64}, {"n", 64}, {"k", 64}})[0];
  for (const char* chip : {"TPU v5e", "TPU v6e", "TPU v7", "Gaudi 3", "Trainium2"}) {
    EXPECT_TRUE(is_known_by_class(kernel, find_device(chip))) << chip;
    EXPECT_EQ(find_device(chip).warnings.size(), 1u) << chip;
  }
  for (const char* gpu : {"H100", "MI300X", "Strix Halo"})
    EXPECT_FALSE(is_known_by_class(kernel, find_device(gpu))) << gpu;
}

}  // namespace
}  // namespace tilecast
