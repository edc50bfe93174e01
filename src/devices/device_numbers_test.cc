// GPUs that do not exist.

#include "devices/device_numbers.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "devices/ranges.h"
#include "devices/registry.h"
#include "tilecast/error.h"

namespace tilecast {
namespace {

TEST(DeviceNumbers, RatesAreThoseOfMoreSmsAtAnotherClock) {
  const Device known = find_device("H100"), larger = find_device("H100:sm_count=264");
  EXPECT_EQ(larger.gpu().sm_count, 264);
  EXPECT_DOUBLE_EQ(larger.matmul_peak(DType::kBf16), known.matmul_peak(DType::kBf16) * 264 /
                                                         static_cast<double>(known.gpu().sm_count));
  EXPECT_EQ(larger.memory_bytes_per_s, known.memory_bytes_per_s);
  const Device slower = find_device("H100:boost_clock_hz=0.99e9");
  EXPECT_NEAR(slower.matmul_peak(DType::kBf16) / known.matmul_peak(DType::kBf16),
              0.99e9 / known.gpu().boost_clock_hz, 1e-12);
  EXPECT_EQ(slower.gpu().clock_share, 1);  // its own boost clock
}

TEST(DeviceNumbers, ARateThatIsGivenReplacesTheOneThatFollows) {
  const Device device = find_device("H100:matrix_flops_per_s.bf16=2e15,sm_count=264");
  EXPECT_EQ(device.gpu().matrix_peak(DType::kBf16), 2e15);
  EXPECT_EQ(device.id,
            "nvidia-h100-sxm5-80gb:sm_count=264,matrix_flops_per_s.bf16=2000000000000000");
}

TEST(DeviceNumbers, ALinkIsThatOfItsKind) {
  const Device device = find_device("H100:link_bytes_per_s.nvlink=900e9");
  for (const Link& link : device.links)
    EXPECT_EQ(link.kind == "nvlink", link.bytes_per_s == 900e9) << link.kind;
}

TEST(DeviceNumbers, MoreNumbersLeaveTheStatedOnes) {
  const Device stated = find_device("H100:matrix_flops_per_s.bf16=2e15,sm_count=264");
  const Device both = with_numbers(stated, {{"boost_clock_hz", 0.99e9}, {"memory_bytes", 192e9}});
  const Device once = find_device(
      "H100:memory_bytes=192e9,matrix_flops_per_s.bf16=2e15,sm_count=264,boost_clock_hz=0.99e9");
  EXPECT_EQ(both.gpu().matrix_peak(DType::kBf16), 2e15);
  EXPECT_EQ(both.gpu().sm_count, 264);
  EXPECT_DOUBLE_EQ(both.gpu().vector_peak(DType::kFp32), once.gpu().vector_peak(DType::kFp32));
  EXPECT_EQ(both.id, once.id);
  EXPECT_EQ(both.name, once.name);
  EXPECT_EQ(both.warnings, once.warnings);
  EXPECT_THROW(with_numbers(stated, {{"sm_count", 100}}), Error);
  EXPECT_THROW(find_device("H100:sm_count=8:sm_count=16"), Error);
}

TEST(DeviceNumbers, RefusesWhatIsNotPossible) {
  for (const char* spec :
       {"H100:sm_count=0", "H100:sm_count=1.5", "H100:sm_count=1e30",
        "H100:memory_bytes_per_s=3350", "H100:sm_count=", "H100:=5", "H100:sm_count=8,sm_count=16",
        "H100:matrix_flops_per_s.bf17=1e12", "H100:link_bytes_per_s.warp=1e9",
        "A100-40GB:1g.5gb:sm_count=10", "H100:sm_count=nan"})
    EXPECT_THROW(find_device(spec), Error) << spec;
}

TEST(DeviceNumbers, EveryNumberCanBeSet) {
  for (const std::string& name : device_number_names()) {
    ASSERT_NE(find_device_number(name), nullptr) << name;
    // The range of a number is found by its name, or by what stands before the dtype.
    const std::string start = name.substr(0, name.find('.'));
    const auto& ranges = quantity_ranges();
    const auto range = std::find_if(ranges.begin(), ranges.end(),
                                    [&](const QuantityRange& r) { return start.ends_with(r.key); });
    ASSERT_NE(range, ranges.end()) << name;
    const Device device = find_device("H100");
    EXPECT_NE(with_numbers(device, {{name, range->typical}}).id, device.id) << name;
  }
}

}  // namespace
}  // namespace tilecast
