#include "train/host_rows.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "base/file.h"
#include "test_support.h"

namespace tilecast {
namespace {

TEST(HostRows, NearTheFloorOfASlowHostAreAssumed) {
  const TemporaryFolder folder;
  const auto rows_of = [&](const std::string& rows) {
    write_file(folder.path() / "gemm.csv", "gpu,software,dtype,m,n,k,latency_ms\n" + rows);
    return prepare_training_data({read_measurements(folder.path())}, {});
  };
  // A small product in 60 us: the host's. All up to 108 us may be; the long one is not.
  const TrainingData hosts = rows_of(
      "H100,vllm 1,bfloat16,16,1024,1024,0.060\nH100,vllm 1,bfloat16,256,4096,4096,0.100\n"
      "H100,vllm 1,bfloat16,8192,8192,8192,1.6\n");
  ASSERT_EQ(hosts.rows.size(), 3u);
  EXPECT_TRUE(hosts.rows[0].assumed);
  EXPECT_LT(hosts.rows[0].seconds, 10e-6) << "the law's time";
  EXPECT_LT(hosts.rows[0].weight, 1);
  EXPECT_TRUE(hosts.rows[1].assumed);
  EXPECT_FALSE(hosts.rows[2].assumed);
  EXPECT_EQ(hosts.rows[2].seconds, 1.6e-3);
  EXPECT_EQ(
      hosts.report.back(),
      "took the law's time for 2 rows near the floor of a host that launched without a graph, or "
      "longer than larger products");
  // The same with a fast small product, and without any small one.
  EXPECT_EQ(rows_of("H100,vllm 1,bfloat16,16,1024,1024,0.006\n"
                    "H100,vllm 1,bfloat16,256,4096,4096,0.100\n")
                .rows.size(),
            2u);
  EXPECT_EQ(rows_of("H100,vllm 1,bfloat16,8192,8192,8192,1.6\n"
                    "H100,vllm 1,bfloat16,8192,8192,8192,1.7\n")
                .rows.size(),
            2u);
}

/// Rows of one layer of 4096 x 4096 on H100, by m and us.
TrainingData sweep_of(const std::vector<std::pair<int, double>>& times) {
  const TemporaryFolder folder;
  std::string rows = "gpu,software,dtype,m,n,k,latency_ms\n";
  for (const auto& [m, us] : times)
    rows += fmt::format("H100,vllm 1,fp8,{},4096,4096,{}\n", m, us / 1e3);
  write_file(folder.path() / "gemm.csv", rows);
  return prepare_training_data({read_measurements(folder.path())}, {});
}

TEST(HostRows, NoRowTakesLongerThanALargerProductOnASlowHost) {
  // B200's FP8 by blocks: 151 us are the floor, and 290 us more than 1.8 times that, but the host's
  // all the same. The last is the kernel's.
  const TrainingData data =
      sweep_of({{1, 290}, {2, 151}, {3, 230}, {256, 240}, {8192, 300}, {16384, 580}});
  ASSERT_EQ(data.rows.size(), 6u);
  for (size_t i = 0; i < 4; ++i) {
    EXPECT_TRUE(data.rows[i].assumed) << i;
    EXPECT_LT(data.rows[i].seconds, 100e-6) << i;
  }
  EXPECT_FALSE(data.rows[4].assumed);
  EXPECT_FALSE(data.rows[5].assumed);
}

TEST(HostRows, TheFirstRowOfASweepTakesNoLongerThanTheRest) {
  const std::vector<std::pair<int, double>> rest = {{2, 9.3}, {3, 9.3}, {4, 9.4}, {5, 20},
                                                    {6, 9.3}, {7, 9.1}, {8, 9.2}, {16, 9.3}};
  auto slow = rest;
  slow.insert(slow.begin(), {1, 24.6});
  const TrainingData data = sweep_of(slow);
  ASSERT_EQ(data.rows.size(), slow.size());
  EXPECT_TRUE(data.rows[0].assumed);
  EXPECT_DOUBLE_EQ(data.rows[0].seconds, 9.1e-6);
  EXPECT_LT(data.rows[0].weight, 1);
  for (size_t i = 1; i < slow.size(); ++i) EXPECT_FALSE(data.rows[i].assumed) << slow[i].first;
  EXPECT_EQ(data.report.back(),
            "took the time of larger products for 1 rows, the first of their layers' sweeps");
  // Libraries are not that even.
  auto uneven = rest;
  uneven.insert(uneven.begin(), {1, 11});
  EXPECT_FALSE(sweep_of(uneven).rows[0].assumed);
  // A few rows are no sweep.
  EXPECT_FALSE(sweep_of({{1, 24.6}, {2, 9.3}, {3, 9.3}}).rows[0].assumed);
}

}  // namespace
}  // namespace tilecast
