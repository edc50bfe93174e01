#include "profile/collective_calls.h"

#include <gtest/gtest.h>

#include <string>

#include "profile/operators.h"
#include "tilecast/error.h"

namespace tilecast {
namespace {

/// A kernel of NCCL as torch.profiler writes it.
std::string nccl_event(const std::string& name, int64_t in, int64_t out, int size,
                       const std::string& ranks, int at) {
  return R"({"ph": "X", "cat": "kernel", "name": "ncclDevKernel_Generic", "pid": 0, "tid": 7,
 "ts": )" +
         std::to_string(at) +
         R"(, "dur": 90, "args": {"device": 0, "stream": 9, "Collective name": ")" + name +
         R"(", "In msg nelems": )" + std::to_string(in) + R"(, "Out msg nelems": )" +
         std::to_string(out) + R"(, "Group size": )" + std::to_string(size) +
         R"(, "dtype": "BFloat16", "In split size": "[]", "Out split size": "[]",
 "Process Group Name": "0", "Process Group Description": "default_pg", "Process Group Ranks": ")" +
         ranks + R"("}})";
}

ProfilerTrace job_of(const std::string& events) {
  return parse_profiler_trace(
      R"({"schemaVersion": 1, "distributedInfo": {"backend": "nccl", "rank": 0, "world_size": 16},
 "traceEvents": [)" +
          events + "]}",
      "t.json");
}

TEST(TracedCollectives, KernelsStateKindSizeAndRanks) {
  const ProfilerTrace trace =
      job_of(nccl_event("allreduce", 1000, 1000, 8, "[0, 1, 2, 3, 4, 5, 6, 7]", 10) + "," +
             nccl_event("allreduce", 1000, 1000, 8, "[0, 1, 2, 3, 4, 5, 6, 7]", 200) + "," +
             nccl_event("_allgather_base", 1000, 2000, 2, "[0, 8]", 400));
  EXPECT_EQ(trace.world_size, 16);
  ASSERT_EQ(trace.collectives.size(), 2u) << "equal ones are stored once";
  EXPECT_EQ(trace.collectives[0].ranks.size(), 8u);
  const std::vector<OperatorGroup> groups = operator_groups(trace);
  ASSERT_EQ(groups.size(), 2u);
  EXPECT_EQ(groups[0].calls, 2);
  EXPECT_EQ(groups[0].kind, TracedKind::kCollective);
  const auto reduce = known_collective(trace.collectives[0]);
  const auto gather = known_collective(trace.collectives[1]);
  ASSERT_TRUE(reduce && gather);
  EXPECT_EQ(reduce->kind, CollectiveKind::kAllReduce);
  EXPECT_EQ(reduce->bytes, 2000);
  EXPECT_EQ(gather->kind, CollectiveKind::kAllGather);
  EXPECT_EQ(gather->bytes, 4000) << "of the result";
}

TEST(TracedCollectives, RanksFillTheNodesOfTheOtherCluster) {
  const Cluster cluster = find_cluster("dgx-h100");
  TracedCollective call{"allreduce", "BFloat16", 1000, 1000, 8, {0, 1, 2, 3, 4, 5, 6, 7}};
  EXPECT_EQ(group_on(call, 16, cluster), (CommGroup{.ranks = 8, .ranks_per_node = 8}));
  call.ranks = {0, 2, 4, 6};
  EXPECT_EQ(group_on(call, 16, cluster),
            (CommGroup{.ranks = 4, .ranks_per_node = 4, .concurrent = 2, .stride = 2}));
  call.ranks = {3, 11};
  EXPECT_EQ(group_on(call, 16, cluster),
            (CommGroup{.ranks = 2, .ranks_per_node = 1, .concurrent = 8}))
      << "eight such groups share the node's network";
  call.ranks = std::vector<int64_t>(20, 5);
  EXPECT_FALSE(group_on(call, 16, cluster)) << "one rank, twenty times";
  call.ranks.clear();
  call.group_size = 16;
  EXPECT_EQ(group_on(call, 16, cluster), (CommGroup{.ranks = 16, .ranks_per_node = 8}))
      << "the whole job";
  call.group_size = 4;
  EXPECT_FALSE(group_on(call, 16, cluster)) << "some four of them";
}

TEST(TracedCollectives, LongListsOfRanksAreSequences) {
  const auto ranks = [](int size, const char* text) {
    return job_of(nccl_event("allreduce", 10, 10, size, text, 10)).collectives.at(0).ranks;
  };
  EXPECT_EQ(ranks(64, "[0, 1, 2, ..., 62, 63]").size(), 64u);
  EXPECT_EQ(ranks(32, "[1, 3, ..., 61, 63]").at(2), 5);
  EXPECT_TRUE(ranks(32, "[0, 1, ..., 62, 63]").empty()) << "no even steps give 32 of them";
}

TEST(TracedCollectives, TheirTimeIsThatOfTheModel) {
  const Cluster cluster = find_cluster("dgx-h100");
  const TracedCollective call{"allreduce", "BFloat16", 1 << 25,
                              1 << 25,     8,          {0, 1, 2, 3, 4, 5, 6, 7}};
  const auto time = collective_there(call, 8, cluster);
  ASSERT_TRUE(time);
  EXPECT_EQ(time->value, collective_time(CollectiveKind::kAllReduce, 1 << 26, DType::kBf16,
                                         packed_group(8, cluster), cluster)
                             .seconds);
  TracedCollective barrier = call;
  barrier.name = "barrier";
  EXPECT_FALSE(collective_there(barrier, 8, cluster));
  TracedCollective doubles = call;
  doubles.dtype = "Double";
  EXPECT_FALSE(collective_there(doubles, 8, cluster));
}

}  // namespace
}  // namespace tilecast
