#include "accelerator/nest_times.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "accelerator/mapper.h"

namespace tilecast::accelerator {
namespace {

/// Two values of the parameter beside its own: half, and twice, in its range.
std::vector<double> other_values(const Parameter& parameter) {
  std::vector<double> values;
  for (const double value : {parameter.value / 2, parameter.value * 2})
    if (value >= parameter.min && value <= parameter.max) values.push_back(value);
  return values;
}

TEST(NestTimes, DesignsThatShareTimesHaveThoseOfTheirOwn) {
  NestTimesByDesign shared;
  const Layer layer{.sizes = {1, 48, 40, 30, 20, 3, 3}};
  for (const std::string& id : bundled_accelerators()) {
    const Design base = open_accelerator(id);
    map_layer(base, layer, {.times = shared.of(base).get()});
    for (const Parameter& parameter : base.machine.parameters)
      for (const double value : other_values(parameter)) {
        const std::string what = id + ": " + parameter.name + " " + std::to_string(value);
        const Design design = open_accelerator(id, {{parameter.name, value}});
        const MappedLayer own = map_layer(design, layer);
        const MappedLayer found = map_layer(design, layer, {.times = shared.of(design).get()});
        EXPECT_EQ(found.mapping, own.mapping) << what;
        EXPECT_EQ(found.time.cycles, own.time.cycles) << what;
        EXPECT_EQ(found.time.activity.memory_bytes, own.time.activity.memory_bytes) << what;
        EXPECT_EQ(found.time.activity.unit_busy, own.time.activity.unit_busy) << what;
      }
  }
}

TEST(NestTimes, BytesOnTheChipDoNotChangeTimesAndThoseOfACacheDo) {
  const auto key = [](const ParameterValues& values) {
    return timing_key(open_accelerator("gemmini", values));
  };
  EXPECT_EQ(key({{"SCRATCHPAD", 65536}, {"ACCUMULATOR", 32768}}), key({}));
  for (const char* parameter : {"L2_BYTES", "DIM", "DMA_WIDTH", "ISSUE", "DRAM_LATENCY"}) {
    const std::vector<Parameter> all = open_accelerator("gemmini").machine.parameters;
    const auto it = std::find_if(all.begin(), all.end(),
                                 [&](const Parameter& one) { return one.name == parameter; });
    ASSERT_NE(it, all.end());
    EXPECT_NE(key({{parameter, it->value * 2}}), key({})) << parameter;
  }
}

}  // namespace
}  // namespace tilecast::accelerator
