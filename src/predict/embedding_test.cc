#include "predict/embedding.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "base/rng.h"
#include "devices/registry.h"
#include "embedding/traffic.h"
#include "ops/sizes.h"
#include "predict/bound.h"
#include "predict/law.h"
#include "predict/predictor.h"
#include "random_kernels.h"

namespace tilecast {
namespace {

TEST(EmbeddingBags, TimesLieBetweenAllBytesFromL2AndAllFromDram) {
  Rng rng(41);
  const auto predictor = make_learned_predictor(embedded_weights());
  for (const char* name : {"V100", "T4", "nvidia-a100-sxm4-80gb", "H100", "MI210"}) {
    const Device device = find_device(name);
    const Chip chip(device, bundled_laws());
    for (int i = 0; i < 40; ++i) {
      const SizeList sizes = {{"tables", 1 + static_cast<int64_t>(rng.below(4))},
                              {"bags", rng.log_uniform(16)},
                              {"pooling", rng.log_uniform(7)},
                              {"dim", 4 * rng.log_uniform(7)},
                              {"table_rows", rng.log_uniform(25)},
                              {"skew_percent", static_cast<int64_t>(rng.below(2) * 110)}};
      for (const char* op : {"embedding_bags", "embedding_bags_backward"}) {
        for (const Kernel& kernel : kernels_of_sizes(op, DType::kFp32, sizes)) {
          KernelTime time;
          predictor->predict({&kernel, 1}, device, {}, {&time, 1});
          const auto bytes = static_cast<double>(kernel.bytes());
          const double seconds = time.seconds - kLatencyFloor;
          EXPECT_GE(seconds, bytes / device.gpu().l2_bytes_per_s() * (1 - 1e-9));
          const EmbeddingBag& bag = std::get<EmbeddingBag>(kernel.shape);
          const auto gathered = static_cast<double>(bag.gathered_bytes);
          const double all_from_dram = bag_seconds({bytes, gathered, 0}, chip);
          const double all_from_l2 = bag_seconds({bytes, gathered, gathered}, chip);
          const double compute_s = roofline_bound(kernel, device).compute_s;
          EXPECT_GE(seconds, all_from_l2 * (1 - 1e-9));
          EXPECT_LE(seconds,
                    std::max(all_from_dram + bag_chain_s(static_cast<double>(bag.pooling), chip),
                             compute_s) *
                        (1 + 1e-9));
          EXPECT_LE(time.low_s, time.seconds);
          EXPECT_GE(time.high_s, time.seconds);
          EXPECT_TRUE(time.extrapolated);
          EXPECT_EQ(time.predictor, "embedding_bag");
        }
      }
    }
  }
}

/// Our own measurements on an H100 (data/measurements/nvidia-h100-sxm5-80gb/movement.csv,
/// 2026-11-22): the kit's kernel in FP32 with a cold L2, rows of
/// more than 10 us whose lookups go through the table in turn.
TEST(EmbeddingBags, AreNearTheKitsKernelOnH100) {
  struct Row {
    double bags, dim, pooling, rows, seconds;
  };
  constexpr Row kRows[] = {{2791, 29, 36, 1217867, 11.94e-6},   {1250, 237, 35, 9471, 14.99e-6},
                           {21310, 19, 10, 40276, 16.03e-6},    {74, 97, 123, 2276763, 17.22e-6},
                           {45322, 43, 3, 9056361, 29.31e-6},   {38008, 48, 13, 212436, 41.42e-6},
                           {32542, 30, 27, 154456, 45.81e-6},   {7846, 38, 85, 3590447, 70.96e-6},
                           {10014, 208, 17, 2478901, 72.99e-6}, {52341, 244, 5, 36400, 110.1e-6},
                           {5845, 501, 55, 526948, 283.1e-6},   {63129, 108, 62, 77121, 374e-6}};
  const Device device = find_device("H100");
  const Chip chip(device, bundled_laws());
  double sum = 0;
  for (const Row& row : kRows) {
    const double lookups = row.bags * row.pooling;
    // Without reuse, each row is used as often as the table is small.
    const double distinct = std::min(row.rows, lookups);
    const TableAccess access{.lookups = lookups,
                             .recorded = lookups,
                             .classes = {{.rows = distinct, .uses = lookups / distinct}}};
    const TableTraffic traffic =
        forward_traffic({.rows = row.rows, .dim = row.dim, .bags = row.bags, .access = access});
    const double seconds =
        kLatencyFloor + bag_chain_s(row.pooling, chip) +
        bag_seconds({traffic.bytes(), traffic.gathered_bytes, traffic.hit_bytes(chip.l2_bytes)},
                    chip);
    // One block per bag costs the kit's kernel more than the model knows.
    EXPECT_GT(seconds / row.seconds, 0.5) << row.bags << " bags";
    EXPECT_LT(seconds / row.seconds, 1.3) << row.bags << " bags";
    sum += std::log(seconds / row.seconds);
  }
  EXPECT_NEAR(std::exp(sum / std::size(kRows)), 1, 0.25);
}

TEST(EmbeddingBags, ALargerL2AndMoreReuseAreNotSlower) {
  const auto predictor = make_learned_predictor(embedded_weights());
  double before = 1e9;
  for (const int64_t rows : {int64_t{1} << 26, int64_t{1} << 20, int64_t{1} << 14}) {
    const Kernel kernel =
        kernels_of_sizes("embedding_bags", DType::kFp32,
                         {{"bags", 65536}, {"pooling", 20}, {"dim", 128}, {"table_rows", rows}})
            .front();
    double slower = 1e9;
    for (const int64_t l2 : {int64_t{4} << 20, int64_t{40} << 20, int64_t{400} << 20}) {
      Device device = find_device("nvidia-a100-sxm4-80gb");
      std::get<Gpu>(device.chip).l2_bytes = l2;
      KernelTime time;
      predictor->predict({&kernel, 1}, device, {}, {&time, 1});
      EXPECT_LE(time.seconds, slower);
      slower = time.seconds;
    }
    EXPECT_LT(slower, before);  // fewer rows: more of them repeat
    before = slower;
  }
}

}  // namespace
}  // namespace tilecast
