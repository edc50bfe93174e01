#include <gtest/gtest.h>

#include <string>

#include "laws/constants.h"
#include "profile/operators.h"
#include "profiler_trace.h"

namespace tilecast {
namespace {

/// The reason for the first group of a trace of an H100 with these events.
std::string first_reason(const std::string& events) {
  const ProfilerTrace trace = parse_profiler_trace(h100_trace(events), "t.json");
  const std::vector<OperatorGroup> groups = operator_groups(trace);
  for (const OperatorGroup& group : groups)
    if (group.call >= 0) return reason_of(group, trace, 2, bundled_laws().trace);
  return "";
}

TEST(Reasons, AnOperatorThatSortsSaysSoWhateverItsBlocks) {
  EXPECT_EQ(first_reason(op_event("aten::embedding_dense_backward", 1, 1, 5,
                                  R"("Input Dims": [[8192, 768], [8192], [], [], []],
 "Input type": ["float", "long int", "Scalar", "Scalar", "Scalar"],
 "Concrete Inputs": ["", "", "30522", "-1", "False"])") +
                         "," + kernel_event("radix_sort", 1, 1, 10, 40)),
            "it sorts the ids before it sums their rows");
}

TEST(Reasons, ACollectiveOfAnotherStreamSharesTheGpu) {
  const std::string fill = op_event("aten::relu", 1, 1, 5, R"("Input Dims": [[8192, 4096]],
 "Input type": ["float"], "Concrete Inputs": [""])");
  std::string kernel = kernel_event("relu_kernel", 1, 1, 100, 40);
  const std::string small = R"("grid": [8, 2, 1])";
  kernel.replace(kernel.find(small), small.size(), R"("grid": [800, 2, 1])");
  EXPECT_EQ(first_reason(fill + "," + kernel + "," +
                         kernel_event("ncclDevKernel_AllReduce", -1, 2, 90, 35, 9)),
            "a collective of another stream shares the GPU with it")
      << "for 25 of 40 us";
  EXPECT_NE(first_reason(fill + "," + kernel + "," +
                         kernel_event("ncclDevKernel_AllReduce", -1, 2, 90, 15, 9)),
            "a collective of another stream shares the GPU with it");
}

}  // namespace
}  // namespace tilecast
