// A layer of experts in PyTorch: what its kernels compute, and what they take on a measured GPU.

#include "ops/grouped_experts.h"

#include <gtest/gtest.h>

#include <functional>
#include <numeric>
#include <utility>
#include <vector>

#include "base/embedded.h"
#include "devices/registry.h"
#include "predict/learned.h"
#include "predict/predictor.h"
#include "random_kernels.h"

namespace tilecast {
namespace {

/// 16,384 (token, expert) pairs of each layer that was measured.
GroupedExperts layer(double experts, int64_t tokens, int64_t hidden, int64_t ffn) {
  return {.assignments = 16384,
          .active_experts = experts,
          .tokens = tokens,
          .hidden_dim = hidden,
          .ffn_dim = ffn,
          .gated = true};
}

int64_t product_flops(const std::vector<Kernel>& kernels) {
  return std::accumulate(
      kernels.begin(), kernels.end(), int64_t{0},
      [](int64_t sum, const auto& k) { return sum + (k.is_product() ? k.flops : 0); });
}

double product_s(const std::vector<Kernel>& kernels) {
  std::vector<Kernel> products;
  for (const Kernel& kernel : kernels) {
    if (kernel.is_product()) products.push_back(kernel);
  }
  std::vector<KernelTime> times(products.size());
  make_learned_predictor(embedded_weights())
      ->predict(products, find_device("H100"), {.caches = Caches::kCold}, times);
  return std::accumulate(times.begin(), times.end(), 0.0,
                         [](double sum, const KernelTime& time) { return sum + time.seconds; });
}

TEST(GroupedExperts, EachPassMultipliesAsMuch) {
  const GroupedExperts mixtral = layer(8, 8192, 4096, 14336);
  constexpr int64_t kFlops = int64_t{2} * 16384 * 3 * 4096 * 14336;
  std::vector<Kernel> forward, input, weights;
  add_grouped_forward(mixtral, forward);
  add_grouped_input_gradient(mixtral, input);
  add_grouped_weight_gradient(mixtral, 8, weights);
  EXPECT_EQ(product_flops(forward), kFlops);
  EXPECT_EQ(product_flops(input), kFlops);
  EXPECT_EQ(product_flops(weights), kFlops);
  EXPECT_EQ(weights[0].write_bytes + weights[1].write_bytes, int64_t{2} * 8 * 3 * 4096 * 14336);
}

int64_t bytes_of(const std::vector<Kernel>& kernels) {
  return std::accumulate(kernels.begin(), kernels.end(), int64_t{0},
                         [](int64_t sum, const Kernel& k) { return sum + k.bytes(); });
}

/// Bytes that a pass moves more with a change of the layer, for each element of rows x 2,880.
template <class Change>
std::pair<double, double> bytes_more(
    Change change, const std::function<void(GroupedExperts&)>& prepare = [](GroupedExperts&) {}) {
  GroupedExperts plain = layer(16, 32768, 2880, 2880);
  plain.fused = true;
  plain.own_tokens = 4096;
  prepare(plain);
  GroupedExperts changed = plain;
  change(changed);
  std::vector<Kernel> passes[4];
  add_grouped_forward(plain, passes[0]);
  add_grouped_forward(changed, passes[1]);
  add_grouped_input_gradient(plain, passes[2]);
  add_grouped_input_gradient(changed, passes[3]);
  EXPECT_EQ(product_flops(passes[0]), product_flops(passes[1]));
  const double elements = 16384.0 * 2880;
  return {static_cast<double>(bytes_of(passes[1]) - bytes_of(passes[0])) / elements,
          static_cast<double>(bytes_of(passes[3]) - bytes_of(passes[2])) / elements};
}

TEST(GroupedExperts, RowsFromOtherRanksAreSortedAndUnsorted) {
  const auto [forward, backward] = bytes_more([](GroupedExperts& l) { l.sorted_again = true; });
  EXPECT_DOUBLE_EQ(forward, 2 * (2 + 2));
  EXPECT_DOUBLE_EQ(backward, 2 * (2 + 2));
}

TEST(GroupedExperts, BiasesOfTheSecondProductAreAddedInFp32ExpertByExpert) {
  const auto [forward, backward] = bytes_more([](GroupedExperts& l) { l.biased = true; });
  EXPECT_DOUBLE_EQ(forward, 4 + (6 + 4) + (4 + 4) + (4 + 2));
  EXPECT_DOUBLE_EQ(backward, (2 + 4) + (4 + 2) + (4 + 4) + 4 + (4 + 4) + 4 + (2 + 2));
}

TEST(GroupedExperts, BiasesOfPyTorchAreGatheredAndAddedRowByRow) {
  const auto with_bias = [](bool frozen) {
    return bytes_more([&](GroupedExperts& l) { l.biased = true; },
                      [&](GroupedExperts& l) {
                        l.fused = false;
                        l.frozen = frozen;
                      });
  };
  // Both products, of which that of gate and up has twice the columns: gathered rows, and the sum.
  constexpr double kColumns = 2 + 1, kSortedBytes = 2 * 12 * 16.0 / 2880;
  EXPECT_DOUBLE_EQ(with_bias(false).first, kColumns * (2 + (4 + 2)));
  EXPECT_DOUBLE_EQ(with_bias(false).second, kColumns * 2 + kSortedBytes);
  EXPECT_DOUBLE_EQ(with_bias(true).second, 0) << "no gradient";
}

TEST(GroupedExperts, ProductsIn8BitsPadAndCastTheirRows) {
  const auto in_8_bits = [](bool scaled_first, bool frozen) {
    return bytes_more([&](GroupedExperts& l) {
      l.scheme = QuantScheme::kFp8;
      l.scaled_first = scaled_first;
      l.frozen = frozen;
    });
  };
  // The gradients of gate and up have twice the columns of the others.
  const auto plain = in_8_bits(false, false), scaled = in_8_bits(true, false),
             frozen = in_8_bits(false, true);
  EXPECT_DOUBLE_EQ(scaled.first - plain.first, 2 * 2);
  EXPECT_DOUBLE_EQ(scaled.second - plain.second, 3 * 2);
  EXPECT_DOUBLE_EQ(plain.first - frozen.first, 2) << "no transposed copies";
  EXPECT_DOUBLE_EQ(plain.second - frozen.second, 3);
}

TEST(GroupedExperts, ClampsAreKernelsOfTheirOwn) {
  const auto [forward, backward] = bytes_more([](GroupedExperts& l) { l.clamped = true; });
  // Two clamps, gate and up put together.
  constexpr double kClamps = 2 * (2 + 2) + 2 * (2 + 2);
  EXPECT_DOUBLE_EQ(forward, kClamps);
  // One comparison and the choice; two, both joined, and the choice; put together.
  EXPECT_DOUBLE_EQ(backward, (3 + 5) + (3 + 3 + 3 + 5) + 2 * (2 + 2));
  const auto again = bytes_more([](GroupedExperts& l) { l.clamped = true; },
                                [](GroupedExperts& l) { l.activation_again = true; });
  EXPECT_DOUBLE_EQ(again.second - backward, kClamps);
}

TEST(GroupedExperts, PyTorchsGateWithClampsIsKernelsOfItsOwn) {
  const auto [forward, backward] = bytes_more([](GroupedExperts& l) { l.clamped = true; },
                                              [](GroupedExperts& l) { l.fused = false; });
  // Seven kernels, two of them of two tensors; without clamps an activation and its product.
  EXPECT_DOUBLE_EQ(forward, 5 * (2 + 2) + 2 * (4 + 2) - ((2 + 2) + (4 + 2)));
  // Through each of them but the last sum and the clamps, and gate's gradients added; the clamps;
  // gate and up beside each other by zeros, copies and a sum; instead of three kernels and a join.
  constexpr double kProducts = 6 * (4 + 2) + (2 + 2), kClamps = (3 + 5) + (3 + 3 + 3 + 5),
                   kColumns = 2 * (4 + 4) + (8 + 4);
  EXPECT_DOUBLE_EQ(backward, kProducts + kClamps + kColumns - (3 * (4 + 2) + 2 * (2 + 2)));
}

TEST(GroupedExperts, TheHostLaunchesAProductForEachExpertAndWaits) {
  GroupedExperts megatron = layer(16, 32768, 2880, 2880);
  megatron.fused = true;
  const auto host_of = [](const GroupedExperts& l) {
    std::vector<Kernel> kernels;
    add_grouped_forward(l, kernels);
    std::vector<HostCalls> calls;
    for (const Kernel& k : kernels) {
      if (k.is_product() || k.host.waits) calls.push_back(k.host);
    }
    return calls;
  };
  const HostCalls each{.launches = 16, .waits = false};
  EXPECT_EQ(host_of(megatron), (std::vector<HostCalls>{each, each}));
  megatron.counts_awaited = true;
  EXPECT_EQ(host_of(megatron), (std::vector<HostCalls>{{.launches = 16, .waits = true}, each}));
  megatron.counts_awaited = false;
  megatron.clamped = true;  // its offset is copied from the host's memory
  EXPECT_EQ(host_of(megatron),
            (std::vector<HostCalls>{each, {.launches = 1, .waits = true}, each}));
  EXPECT_EQ(host_of(layer(16, 32768, 2880, 2880)), (std::vector<HostCalls>{{}, {}}))
      << "grouped_mm is one kernel";
}

TEST(GroupedExperts, EachExpertsRowsAreCastAlone) {
  GroupedExperts eight = layer(16, 32768, 2880, 2880);
  eight.fused = true;
  eight.scheme = QuantScheme::kFp8;
  const auto kernels_of = [](const GroupedExperts& l) {
    std::vector<Kernel> kernels;
    add_grouped_forward(l, kernels);
    return kernels.size();
  };
  const size_t known = kernels_of(eight);
  eight.scaled_first = true;
  // The largest value and the cast of each expert, before both products.
  EXPECT_EQ(kernels_of(eight) - known, 2u * (2 * 16 - 1));
  // NVFP4: columns are written by a kernel of their own, frozen weights need none.
  eight.scheme = QuantScheme::kFp4;
  EXPECT_EQ(kernels_of(eight) - known, 2u * (3 * 16 - 1));
  eight.frozen = true;
  EXPECT_EQ(kernels_of(eight) - known, 2u * (2 * 16 - 1));
}

TEST(GroupedExperts, CopiesInNvfp4HaveHalfAByteAndAScaleOf16Elements) {
  const auto written = [](QuantScheme scheme) {
    GroupedExperts l = layer(16, 32768, 2880, 2880);
    l.fused = true;
    l.scheme = scheme;
    std::vector<Kernel> with, without;
    add_grouped_forward(l, with);
    l.scheme = QuantScheme::kNone;
    add_grouped_forward(l, without);
    int64_t bytes = 0;
    for (const Kernel& kernel : with) bytes += kernel.is_product() ? 0 : kernel.write_bytes;
    for (const Kernel& kernel : without) bytes -= kernel.is_product() ? 0 : kernel.write_bytes;
    return static_cast<double>(bytes);
  };
  // Of each row, in two layouts; padding is the same.
  const double elements = written(QuantScheme::kFp8) - written(QuantScheme::kFp4);
  EXPECT_NEAR(elements / (2.0 * (1 - (0.5 + 1.0 / 16)) * 16384 * (2880 + 2880)), 1, 1e-3);
}

TEST(GroupedExperts, RanksThatDivideAnExpertOrderTheRowsOfTheirOwnTokensAlone) {
  const auto [forward, backward] = bytes_more([](GroupedExperts& l) { l.tensor_ranks = 2; });
  // Of two bytes, half as many rows are written from tokens, and read to sum them up.
  EXPECT_DOUBLE_EQ(forward, -(1 + 1));
  EXPECT_DOUBLE_EQ(backward, -(1 + 1));
  // PyTorch's layer sums the rows of all ranks that it gathered.
  const auto [gathered, gathered_gradient] = bytes_more(
      [](GroupedExperts& l) { l.tensor_ranks = 2; }, [](GroupedExperts& l) { l.fused = false; });
  EXPECT_DOUBLE_EQ(gathered, 0);
  EXPECT_DOUBLE_EQ(gathered_gradient, 0);
}

TEST(GroupedExperts, TakeWhatWasMeasured) {
  // Both products of a layer on one H100 (data/measurements, kernels.csv), an even and an uneven
  // load: forward, and input and weight gradients together.
  const struct {
    GroupedExperts layer;
    double even_s, uneven_s, even_gradients_s, uneven_gradients_s;
  } rows[] = {{layer(8, 8192, 4096, 14336), 7.43e-3, 8.02e-3, 15.28e-3, 16.40e-3},
              {layer(32, 2048, 7168, 2048), 1.99e-3, 2.55e-3, 4.38e-3, 5.07e-3},
              {layer(128, 2048, 2048, 768), 0.542e-3, 0.680e-3, 1.189e-3, 1.375e-3}};
  for (const auto& row : rows) {
    std::vector<Kernel> forward, gradients;
    add_grouped_forward(row.layer, forward);
    add_grouped_input_gradient(row.layer, gradients);
    add_grouped_weight_gradient(row.layer, static_cast<int64_t>(row.layer.active_experts),
                                gradients);
    constexpr double kLess = 0.9, kMore = 1.1;
    EXPECT_GT(product_s(forward), kLess * row.even_s) << row.layer.active_experts;
    EXPECT_LT(product_s(forward), kMore * row.uneven_s) << row.layer.active_experts;
    EXPECT_GT(product_s(gradients), kLess * row.even_gradients_s) << row.layer.active_experts;
    EXPECT_LT(product_s(gradients), kMore * row.uneven_gradients_s) << row.layer.active_experts;
  }
}

}  // namespace
}  // namespace tilecast
