#include "measurements/call_drift.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "base/file.h"
#include "devices/registry.h"
#include "ops/sizes.h"
#include "predict/kernel_kinds.h"
#include "test_support.h"

namespace tilecast {
namespace {

TEST(Rising, MergesNeighboursThatFall) {
  EXPECT_EQ(rising({1, 2, 4}), (std::vector<double>{1, 2, 4}));
  EXPECT_EQ(rising({3, 1, 5}), (std::vector<double>{2, 2, 5}));
  EXPECT_EQ(rising({3, 2, 1}), (std::vector<double>{2, 2, 2}));
}

/// Convolutions of some sizes on a T4, by the law, with this overhead at a share of the file.
template <class Overhead>
MeasurementSet read_calls(size_t rows, const Overhead& overhead_s) {
  const Device device = find_device("T4");
  std::string csv =
      "OPName,Latency,Device,B,Input_Channel,Output_Channel,Kernel_Szie,Input_Size,"
      "Stride,Padding,Kernels\n";
  for (size_t i = 0; i < rows; ++i) {
    const auto channels = static_cast<int64_t>(8 << (i * 7 % 6));
    const Kernel kernel =
        kernels_of_sizes(
            "conv2d", DType::kFp32,
            {{"batch", 4}, {"in_channels", channels}, {"out_channels", 32}, {"height", 14}})
            .front();
    const double law_s =
        kernel_kind_def(kernel_kind(kernel)).law(kernel, Chip(device, bundled_laws()), {}).seconds;
    const double share = static_cast<double>(i) / static_cast<double>(rows);
    csv += fmt::format("conv,{:.9f},Tesla T4,4,{},32,3,14,1,1,;void winograd_nonfused::x\n",
                       1e3 * (law_s + overhead_s(share)), channels);
  }
  const TemporaryFolder folder;
  write_file(folder.path() / "conv.csv", csv);
  return read_measurements(folder.path());
}

TEST(CallDrift, TakesOffWhatTheOverheadGrowsBy) {
  const MeasurementSet drifting =
      read_calls(1000, [](double share) { return 50e-6 + 400e-6 * share; });
  const MeasurementSet level = read_calls(1000, [](double) { return 50e-6; });
  ASSERT_EQ(drifting.kernels.size(), level.kernels.size());
  for (size_t i = 0; i < level.kernels.size(); ++i) {
    EXPECT_EQ(drifting.kernels[i].protocol, Protocol::kSingleCall);
    EXPECT_NEAR(drifting.kernels[i].measured_s, level.kernels[i].measured_s, 10e-6) << i;
  }
  ASSERT_EQ(drifting.changes.size(), 1u);
  EXPECT_NE(drifting.changes[0].find("single calls slow down"), std::string::npos);
}

TEST(CallDrift, LeavesFilesThatAreTooShortAsTheyAre) {
  const MeasurementSet set = read_calls(100, [](double share) { return 400e-6 * share; });
  EXPECT_TRUE(set.changes.empty());
  EXPECT_EQ(set.kernels.front().algorithm, "Winograd in steps");
}

}  // namespace
}  // namespace tilecast
