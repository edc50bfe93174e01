#include "profile/memory_use.h"

#include <gtest/gtest.h>

#include <optional>
#include <string>

#include "profile/trace.h"
#include "profiler_trace.h"

namespace tilecast {
namespace {

std::string memory_event(double ts, int64_t address, int64_t bytes, int64_t allocated,
                         int64_t reserved, int device_type = 1) {
  return R"({"ph": "i", "cat": "cpu_instant_event", "s": "t", "name": "[memory]", "pid": 1, "tid": 1,
 "ts": )" +
         std::to_string(ts) + R"(, "args": {"Total Reserved": )" + std::to_string(reserved) +
         R"(, "Total Allocated": )" + std::to_string(allocated) + R"(, "Bytes": )" +
         std::to_string(bytes) + R"(, "Device Id": 0, "Device Type": )" +
         std::to_string(device_type) + R"(, "Addr": )" + std::to_string(address) + "}}";
}

constexpr int64_t kMiB = int64_t{1} << 20;

std::string memory_step(int number, double ts, double dur) {
  return R"({"ph": "X", "cat": "user_annotation", "name": "ProfilerStep#)" +
         std::to_string(number) + R"(", "pid": 1, "tid": 1, "ts": )" + std::to_string(ts) +
         R"(, "dur": )" + std::to_string(dur) + "}";
}

/// A product of 30 us; External id and correlation are `id`.
std::string one_product(int id, double ts) {
  return op_event("aten::mm", id, ts, 30, kProductArguments) + "," +
         call_event("cudaLaunchKernel", id, ts + 12, 5) + "," +
         kernel_event("gemm_kernel", id, id, ts + 20, 30);
}

std::optional<TracedMemoryUse> memory_of(const std::string& events) {
  const ProfilerTrace trace = parse_profiler_trace(h100_trace(events), "t.json");
  return memory_use(trace, operator_groups(trace));
}

/// A product with a workspace of 4 MiB whose result of 16 MiB stays; 100 MiB were held before.
std::string product_with_memory(int device_type = 1) {
  return h100_trace(memory_step(1, 90, 200) + "," +
                    op_event("aten::mm", 1, 100, 30, kProductArguments) + "," +
                    memory_event(105, 1, 16 * kMiB, 116 * kMiB, 200 * kMiB, device_type) + "," +
                    memory_event(110, 2, 4 * kMiB, 120 * kMiB, 200 * kMiB, device_type) + "," +
                    call_event("cudaLaunchKernel", 11, 112, 5) + "," +
                    memory_event(118, 2, -4 * kMiB, 116 * kMiB, 200 * kMiB, device_type) + "," +
                    memory_event(140, 9, -kMiB, 115 * kMiB, 200 * kMiB, device_type) + "," +
                    kernel_event("gemm_kernel", 1, 11, 120, 30));
}

TEST(MemoryUse, MeasuredBesideTheModels) {
  const ProfilerTrace trace = parse_profiler_trace(product_with_memory(), "t.json");
  const std::optional<TracedMemoryUse> use = memory_use(trace, operator_groups(trace));
  ASSERT_TRUE(use);
  EXPECT_FALSE(use->of_host);
  EXPECT_EQ(use->peak_bytes, 120 * kMiB);
  EXPECT_EQ(use->reserved_bytes, 200 * kMiB);
  EXPECT_EQ(use->held_bytes, 100 * kMiB);
  EXPECT_EQ(use->results_bytes, 20 * kMiB);
  EXPECT_EQ(use->workspace_bytes, 4 * kMiB);
  EXPECT_EQ(use->known_results_bytes, 20 * kMiB);
  EXPECT_EQ(use->model_results_bytes, int64_t{4096} * 2048 * 2);
  EXPECT_EQ(use->model_weights_bytes, int64_t{1024} * 2048 * 2);
  // 100 and 16 MiB in segments of their own, 4 MiB in one of 20 MiB.
  EXPECT_EQ(use->model_reserved_bytes, 136 * kMiB);
}

TEST(MemoryUse, OfTheHostWhereNoGpuHasAny) {
  const ProfilerTrace trace = parse_profiler_trace(product_with_memory(0), "t.json");
  const std::optional<TracedMemoryUse> use = memory_use(trace, operator_groups(trace));
  ASSERT_TRUE(use);
  EXPECT_TRUE(use->of_host);
  EXPECT_EQ(use->peak_bytes, 120 * kMiB);
  EXPECT_EQ(use->model_reserved_bytes, 0);
  EXPECT_EQ(trace.memory.allocated_bytes, 0);
}

TEST(MemoryUse, AnAddressMayBeTakenTwice) {
  const ProfilerTrace trace = parse_profiler_trace(
      h100_trace(memory_event(1, 1, kMiB, kMiB, 0) + "," + memory_event(2, 1, kMiB, 2 * kMiB, 0) +
                 "," + memory_event(3, 1, -kMiB, kMiB, 0) + "," + memory_event(4, 1, -kMiB, 0, 0)),
      "t.json");
  const std::optional<TracedMemoryUse> use = memory_use(trace, {});
  ASSERT_TRUE(use);
  EXPECT_EQ(use->peak_bytes, 2 * kMiB);
  EXPECT_EQ(use->results_bytes, kMiB);
}

TEST(MemoryUse, WeightsAreThoseOfOneStep) {
  const std::string products =
      one_product(1, 100) + "," + one_product(2, 200) + "," + memory_event(105, 1, kMiB, kMiB, 0);
  const std::optional<TracedMemoryUse> steps =
      memory_of(products + "," + memory_step(1, 90, 100) + "," + memory_step(2, 195, 100));
  ASSERT_TRUE(steps);
  EXPECT_EQ(steps->model_weights_bytes, int64_t{1024} * 2048 * 2);
  // Two layers of one step, or one layer twice: without steps nothing tells.
  const std::optional<TracedMemoryUse> bare = memory_of(products);
  ASSERT_TRUE(bare);
  EXPECT_EQ(bare->model_weights_bytes, 0);
}

TEST(MemoryUse, WorkspaceIsTheMostAtATime) {
  // 4 MiB, then 3 and 2 MiB together; 8 MiB stay and are no workspace.
  const std::optional<TracedMemoryUse> use = memory_of(
      one_product(1, 100) + "," + memory_event(101, 1, 4 * kMiB, 4 * kMiB, 0) + "," +
      memory_event(102, 1, -4 * kMiB, 0, 0) + "," + memory_event(103, 1, 3 * kMiB, 3 * kMiB, 0) +
      "," + memory_event(104, 2, 8 * kMiB, 11 * kMiB, 0) + "," +
      memory_event(105, 3, 2 * kMiB, 13 * kMiB, 0) + "," +
      memory_event(106, 1, -3 * kMiB, 10 * kMiB, 0) + "," +
      memory_event(107, 3, -2 * kMiB, 8 * kMiB, 0));
  ASSERT_TRUE(use);
  EXPECT_EQ(use->workspace_bytes, 5 * kMiB);
}

TEST(MemoryUse, OperatorsThatEndedTakeNothing) {
  // The product is over when the sum that follows it takes memory, which it keeps.
  const std::optional<TracedMemoryUse> use =
      memory_of(op_event("aten::outer", 3, 90, 100, "") + "," + one_product(1, 100) + "," +
                memory_event(150, 1, 4 * kMiB, 4 * kMiB, 0));
  ASSERT_TRUE(use);
  EXPECT_EQ(use->results_bytes, 4 * kMiB);
  EXPECT_EQ(use->known_results_bytes, 0);
}

TEST(MemoryUse, EventsThatContradictEachOtherAreLeftOut) {
  constexpr int64_t kHuge = (int64_t{1} << 50) - 1;
  std::string events = one_product(1, 100);
  for (int i = 0; i < 10'000; ++i) events += "," + memory_event(105, i, kHuge, kHuge, kHuge);
  EXPECT_FALSE(memory_of(events));
}

TEST(MemoryUse, NoneWithoutEvents) {
  EXPECT_FALSE(memory_use(parse_profiler_trace(two_products(), "t.json"), {}));
}

}  // namespace
}  // namespace tilecast
