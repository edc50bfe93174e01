#include "ops/kernel.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "ops/sizes.h"

namespace tilecast {
namespace {

TEST(KernelTypes, NameTheirSizesOnceAndShowNoOther) {
  std::set<std::string_view> types;
  for (const KernelTypeInfo& type : kernel_types()) {
    EXPECT_TRUE(types.insert(type.name).second) << type.name;
    const std::set<std::string_view> names(type.sizes.begin(), type.sizes.end());
    EXPECT_EQ(names.size(), type.sizes.size()) << type.name;
    EXPECT_LE(names.size(), kMaxSizes);
    size_t shown = 0;
    for (size_t at = type.text.find('{'); at != std::string_view::npos;
         at = type.text.find('{', at + 1), ++shown) {
      const size_t end = type.text.find('}', at);
      ASSERT_NE(end, std::string_view::npos) << type.text;
      EXPECT_TRUE(names.count(type.text.substr(at + 1, end - at - 1))) << type.text;
    }
    EXPECT_GT(shown, 0u) << type.name;
  }
}

TEST(KernelTypes, SizesStandInTheOrderOfTheNames) {
  const Kernel kernel{.shape = Attention{.batch = 2, .queries = 3, .keys = 5, .head_dim = 64}};
  const KernelTypeInfo& type = type_info(kernel);
  EXPECT_EQ(type.name, "attention");
  const auto sizes = sizes_of(kernel);
  for (const auto& [name, value] : {std::pair<std::string_view, int64_t>{"batch", 2},
                                    {"queries", 3},
                                    {"keys", 5},
                                    {"head_dim", 64},
                                    {"window", 0}}) {
    const auto at = std::find(type.sizes.begin(), type.sizes.end(), name);
    ASSERT_NE(at, type.sizes.end()) << name;
    EXPECT_EQ(sizes[static_cast<size_t>(at - type.sizes.begin())], value) << name;
  }
}

TEST(KernelTypes, KernelsThatDifferInAnySizeAreDistinct) {
  const KernelHash hash;
  const Kernel kernel{.shape = Gemm{.m = 64, .n = 64, .k = 64}};
  Kernel other = kernel;
  EXPECT_EQ(hash(kernel), hash(other));
  other.shape = Gemm{.m = 64, .n = 64, .k = 65};
  EXPECT_NE(kernel, other);
  EXPECT_NE(hash(kernel), hash(other));
  other.shape = Gemm{.m = 64, .n = 64, .k = 64, .batched = true};
  EXPECT_NE(kernel, other);
  other.shape = Rows{64, 64, Rows::Function::kSoftmax};
  Kernel norm = other;
  norm.shape = Rows{64, 64, Rows::Function::kNorm};
  EXPECT_NE(other, norm);
}

TEST(Convolution, EveryPassIsAProductOfTheSameThreeSizes) {
  // 8 images from 16 to 32 channels, 14 x 14 pixels out of 28 x 28 by a window of 3 x 3, two
  // groups.
  SizeList sizes = {{"batch", 8},   {"out_channels", 32}, {"in_channels", 16},
                    {"height", 28}, {"stride", 2},        {"groups", 2}};
  const int64_t pixels = 8 * 14 * 14, window = 8 * 3 * 3, out = 16;
  const auto gemm = [&](const char* op) {
    return gemm_of(kernels_of_sizes(op, DType::kFp32, sizes).front());
  };
  EXPECT_EQ(gemm("conv2d"), (Gemm{2, pixels, out, window, true}));
  EXPECT_EQ(gemm("conv2d_input_backward"), (Gemm{2, pixels, window, out, true}));
  EXPECT_EQ(gemm("conv2d_weight_backward"), (Gemm{2, out, window, pixels, true}));
  integer_in(sizes, "groups") = 1;
  EXPECT_FALSE(gemm("conv2d").batched) << "one plain product";
}

TEST(Scan, UpdatesAndReadsEveryElementOfTheStateAtEveryToken) {
  SizeList sizes = {{"batch", 2},     {"tokens", 100},    {"heads", 16},
                    {"head_dim", 64}, {"state_dim", 128}, {"groups", 4}};
  const int64_t steps = int64_t{2} * 100 * 16;
  const Kernel plain = kernels_of_sizes("linear_scan", DType::kBf16, sizes).front();
  EXPECT_EQ(plain.shape, KernelVariant(Scan{2, 100, 16, 64, 128}));
  EXPECT_EQ(plain.flops, 5 * steps * 64 * 128);
  // Values, keys and queries of four groups, decay in fp32; the output.
  EXPECT_EQ(plain.read_bytes, 2 * (steps * 64 + 2 * 2 * 100 * 4 * 128) + 4 * steps);
  EXPECT_EQ(plain.write_bytes, 2 * steps * 64);
  const Kernel backward = kernels_of_sizes("linear_scan_backward", DType::kBf16, sizes).front();
  EXPECT_TRUE(backward.as<Scan>()->backward);
  EXPECT_EQ(backward.flops, 14 * steps * 64 * 128);
  sizes.push_back({"delta", 1});
  EXPECT_EQ(kernels_of_sizes("linear_scan", DType::kBf16, sizes).front().flops,
            7 * steps * 64 * 128);
}

TEST(Scan, ACacheOfStatesIsReadAndWrittenBack) {
  SizeList sizes = {{"batch", 3},     {"tokens", 1},      {"heads", 16},
                    {"head_dim", 64}, {"state_dim", 128}, {"groups", 4}};
  const Kernel plain = kernels_of_sizes("linear_scan", DType::kBf16, sizes).front();
  sizes.push_back({"cached", 1});
  const Kernel cached = kernels_of_sizes("linear_scan", DType::kBf16, sizes).front();
  const int64_t states = int64_t{4} * 3 * 16 * 64 * 128;  // fp32
  EXPECT_EQ(cached.read_bytes, plain.read_bytes + states);
  EXPECT_EQ(cached.write_bytes, plain.write_bytes + states);
  EXPECT_EQ(cached.flops, plain.flops);
  EXPECT_EQ(cached.shape, plain.shape);
}

TEST(CausalConvolution, StreamsItsTokensAndKeepsTheLastOnes) {
  SizeList sizes = {{"batch", 2}, {"tokens", 50}, {"channels", 96}, {"width", 4}};
  const Kernel plain = kernels_of_sizes("causal_conv1d", DType::kBf16, sizes).front();
  EXPECT_EQ(plain.shape, KernelVariant(Stream{.elements = 2 * 50 * 96}));
  EXPECT_EQ(plain.flops, 2 * 4 * 2 * 50 * 96);
  EXPECT_EQ(plain.read_bytes, 2 * (2 * 50 * 96 + 96 * 4));
  EXPECT_EQ(plain.write_bytes, 2 * 2 * 50 * 96);
  sizes.push_back({"cached", 1});
  const Kernel cached = kernels_of_sizes("causal_conv1d", DType::kBf16, sizes).front();
  EXPECT_EQ(cached.read_bytes - plain.read_bytes, 2 * 2 * 96 * 3);
  EXPECT_EQ(cached.write_bytes - plain.write_bytes, 2 * 2 * 96 * 3);
}

TEST(EmbeddingBag, ReadsEveryPickedRowAndWritesTheirSums) {
  const SizeList sizes = {{"bags", 32}, {"pooling", 20}, {"dim", 64}, {"table_rows", 1000}};
  const Kernel kernel = kernels_of_sizes("embedding_bag", DType::kFp32, sizes).front();
  const EmbeddingBag& bag = std::get<EmbeddingBag>(kernel.shape);
  EXPECT_EQ(sizes_of(kernel)[0], 32);
  EXPECT_EQ(bag.pooling, 20);
  EXPECT_EQ(bag.table_rows, 1000);
  EXPECT_EQ(bag.gathered_bytes, 4 * 32 * 20 * 64);
  EXPECT_EQ(kernel.flops, 32 * 19 * 64);
  // Rows, ids and two sectors of offsets for each bag.
  EXPECT_EQ(kernel.read_bytes, 4 * 32 * 20 * 64 + 8 * 32 * 20 + 64 * 32);
  EXPECT_EQ(kernel.write_bytes, 4 * 32 * 64);
  // 640 lookups of 1000 rows: 473 different ones on average, and each is a miss once.
  EXPECT_NEAR(bag.hits.at(1 << 30), 1 - 473.0 / 640, 0.01);
}

TEST(EmbeddingBag, SeveralTablesAreTheSumOfTheirKernels) {
  const SizeList one = {{"bags", 20000}, {"pooling", 5}, {"dim", 64}, {"table_rows", 100000}};
  SizeList all = one;
  all.push_back({"tables", 3});
  for (const char* op : {"embedding_bags", "embedding_bags_backward"}) {
    const std::vector<Kernel> single = kernels_of_sizes(op, DType::kFp32, one);
    const std::vector<Kernel> triple = kernels_of_sizes(op, DType::kFp32, all);
    ASSERT_EQ(single.size(), triple.size());
    const Kernel &a = single.back(), &b = triple.back();
    EXPECT_NEAR(static_cast<double>(b.flops), 3.0 * static_cast<double>(a.flops), 4);
    EXPECT_NEAR(static_cast<double>(b.bytes()), 3.0 * static_cast<double>(a.bytes()), 4);
    EXPECT_EQ(std::get<EmbeddingBag>(b.shape).tables, 3);
    // One table after the other: each has the whole cache.
    EXPECT_EQ(std::get<EmbeddingBag>(a.shape).hits, std::get<EmbeddingBag>(b.shape).hits);
  }
}

}  // namespace
}  // namespace tilecast
