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
    if (group.call >= 0) return Reasons(trace, bundled_laws().trace).of(group, 2);
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

TEST(Reasons, ACastToAnotherDtypeLoadsElementByElement) {
  std::string kernel = kernel_event("unrolled_elementwise_kernel", 1, 1, 10, 40);
  const std::string grid = R"("grid": [8, 2, 1])";
  kernel.replace(kernel.find(grid), grid.size(), R"("grid": [800, 2, 1])");
  EXPECT_TRUE(first_reason(op_event("aten::copy_", 1, 1, 5,
                                    R"("Input Dims": [[8192, 768], [8192, 768], []],
 "Input type": ["float", "c10::BFloat16", "Scalar"], "Concrete Inputs": ["", "", "False"])") +
                           "," + kernel)
                  .starts_with("tensors of two dtypes"));
}

constexpr const char* kShared = "a collective of another stream shares the GPU with it";

/// The same text with another part.
std::string with_part(std::string text, const std::string& part, const std::string& other) {
  return text.replace(text.find(part), part.size(), other);
}

/// A kernel from 100 to 140 us that fills the GPU, and these.
std::string reason_beside(const std::string& events) {
  return first_reason(op_event("aten::relu", 1, 1, 5, R"("Input Dims": [[8192, 4096]],
 "Input type": ["float"], "Concrete Inputs": [""])") +
                      "," +
                      with_part(kernel_event("relu_kernel", 1, 1, 100, 40), R"("grid": [8, 2, 1])",
                                R"("grid": [800, 2, 1])") +
                      "," + events);
}

std::string all_reduce(double ts, double dur) {
  return kernel_event("ncclDevKernel_AllReduce", -1, 2, ts, dur, 9);
}

TEST(Reasons, ACollectiveOfAnotherStreamSharesTheGpu) {
  EXPECT_EQ(reason_beside(all_reduce(90, 35)), kShared) << "for 25 of 40 us";
  EXPECT_NE(reason_beside(all_reduce(90, 15)), kShared);
  EXPECT_EQ(reason_beside(all_reduce(90, 25) + "," + all_reduce(130, 30)), kShared) << "25 of 40";
}

TEST(Reasons, ACollectiveOfAnotherGpuSharesAndHidesNothing) {
  const auto on_gpu_1 = [](const std::string& event) {
    return with_part(event, R"("device": 0)", R"("device": 1)");
  };
  EXPECT_NE(reason_beside(on_gpu_1(all_reduce(90, 35))), kShared);
  EXPECT_EQ(reason_beside(all_reduce(90, 35) + "," + on_gpu_1(all_reduce(95, 35))), kShared);
}

TEST(Reasons, ACollectiveIsOneWhateverTheNameOfItsKernel) {
  const std::string kernel = kernel_event("cross_device_reduce", -1, 2, 90, 35, 9);
  EXPECT_NE(reason_beside(kernel), kShared);
  EXPECT_EQ(reason_beside(with_part(kernel, R"("device": 0)",
                                    R"("Collective name": "allreduce", "In msg nelems": 4096,
 "Out msg nelems": 4096, "Group size": 2, "dtype": "BFloat16", "device": 0)")),
            kShared);
}

}  // namespace
}  // namespace tilecast
