#include <gtest/gtest.h>

#include "base/file.h"
#include "measurements/measurements.h"
#include "test_support.h"

namespace tilecast {
namespace {

TEST(CollectiveLayouts, NcclCountsElementsOfTheWholeBuffer) {
  const TemporaryFolder folder;
  write_file(folder.path() / "nccl.csv",
             "gpu,software,dtype,collective,num_gpus,elements,latency_ms\n"
             "H100,nccl 2.27.3,half,alltoall,4,1024,0.007\n"
             "H100,nccl 2.27.3,int8,all_gather,8,1024,0.01\n"
             "H100,nccl 2.27.3,half,gossip,8,1024,0.01\n");
  const MeasurementSet set = read_measurements(folder.path());
  ASSERT_EQ(set.collectives.size(), 2u);
  EXPECT_EQ(set.collectives[0].kind, CollectiveKind::kAllToAll);
  EXPECT_EQ(set.collectives[0].bytes, 2048);
  EXPECT_EQ(set.collectives[0].group.ranks_per_node, 4);
  EXPECT_DOUBLE_EQ(set.collectives[0].measured_s, 7e-6);
  EXPECT_EQ(set.collectives[1].bytes, 1024);
  ASSERT_EQ(set.unmatched.size(), 1u);
  EXPECT_NE(set.unmatched[0].find("'gossip'"), std::string::npos);
}

TEST(CollectiveLayouts, OfTwoTimesOfServingSoftwareTheReplayedOneCounts) {
  const TemporaryFolder folder;
  write_file(folder.path() / "custom_allreduce.csv",
             "gpu,software,dtype,num_gpus,elements,latency_ms\n"
             "H100,vllm 0.24.0,bfloat16,2,128,0.042\n"
             "H100,vllm 0.24.0,bfloat16,2,128,0.0043\n");
  const MeasurementSet set = read_measurements(folder.path());
  ASSERT_EQ(set.collectives.size(), 1u);
  EXPECT_EQ(set.collectives[0].software, software_of("vllm"));
  EXPECT_DOUBLE_EQ(set.collectives[0].measured_s, 4.3e-6);
  EXPECT_EQ(set.unmatched.size(), 1u);
}

TEST(CollectiveLayouts, ARowOfDeepEpIsADispatchAndACombine) {
  const TemporaryFolder folder;
  write_file(folder.path() / "deepep_normal.csv",
             "gpu,software,nodes,hidden_size,num_tokens,topk,num_experts,dispatch_sms,"
             "dispatch_transmit_us,combine_sms,combine_transmit_us\n"
             "H100,sglang 0.5,2,7168,64,8,256,20,47,24,97\n"
             "H100,sglang 0.5,2,7168,64,2,8,20,47,24,97\n");
  const MeasurementSet set = read_measurements(folder.path());
  ASSERT_EQ(set.collectives.size(), 2u);
  EXPECT_EQ(set.collectives[0].group.ranks, 16);
  EXPECT_EQ(set.collectives[0].exchange->sm_count, 20);
  EXPECT_EQ(set.collectives[1].kind, CollectiveKind::kExpertCombine);
  EXPECT_EQ(set.collectives[1].exchange->sm_count, 24);
  EXPECT_DOUBLE_EQ(set.collectives[1].measured_s, 97e-6);
  EXPECT_EQ(set.unmatched.size(), 1u) << "8 experts on 16 ranks";
}

TEST(CollectiveLayouts, VidursFoldersNameTheNode) {
  const TemporaryFolder folder;
  const std::string rows =
      "time_stats.all_reduce.median,num_workers,size,collective,devices_per_node\n"
      "0.5,16,2048,all_reduce,8\n";
  for (const char* node : {"a100_dgx", "a40_pairwise_nvlink"}) {
    std::filesystem::create_directories(folder.path() / node);
    write_file(folder.path() / node / "all_reduce.csv", rows);
  }
  const MeasurementSet set = read_measurements(folder.path());
  ASSERT_EQ(set.collectives.size(), 1u);
  EXPECT_EQ(set.collectives[0].cluster, "p4d");
  EXPECT_EQ(set.collectives[0].group, (CommGroup{.ranks = 16, .ranks_per_node = 8}));
  EXPECT_DOUBLE_EQ(set.collectives[0].measured_s, 0.5e-3);
  EXPECT_EQ(set.unmatched.size(), 1u);
}

}  // namespace
}  // namespace tilecast
