#include "profile/memory_use.h"

#include <gtest/gtest.h>

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

/// A product with a workspace of 4 MiB whose result of 16 MiB stays; 100 MiB were held before.
std::string product_with_memory(int device_type = 1) {
  return h100_trace(op_event("aten::mm", 1, 100, 30, kProductArguments) + "," +
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

TEST(MemoryUse, NoneWithoutEvents) {
  EXPECT_FALSE(memory_use(parse_profiler_trace(two_products(), "t.json"), {}));
}

}  // namespace
}  // namespace tilecast
