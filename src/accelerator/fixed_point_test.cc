// The fixed point against the exact evaluation, and laws of times.

#include "accelerator/fixed_point.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "accelerator/mapper.h"
#include "accelerator/registry.h"
#include "accelerator/tiling.h"
#include "base/rng.h"

namespace tilecast::accelerator {
namespace {

// --- Fixed point and laws.

Layer random_layer(Rng& rng) {
  const auto size = [&](int bits) { return rng.log_uniform(bits); };
  Layer layer{.sizes = {1, size(6), size(6), size(5), size(4), 1, 1}};
  if (rng.below(2) == 0) layer.sizes[5] = layer.sizes[6] = 3;
  layer.stride = 1 + static_cast<int64_t>(rng.below(2));
  if (rng.below(3) == 0) {
    layer.kind = LayerKind::kElementwise;
    layer.sizes = {1, size(9), 1, size(10), size(3), 1, 1};
    layer.inputs = 1 + static_cast<int64_t>(rng.below(2));
    layer.stride = 1;
  }
  return layer;
}

Mapping random_mapping(Rng& rng, const Layer& layer) {
  Mapping mapping{.order = "kcpq", .tile = layer.sizes};
  for (size_t i = 1; i < 5; ++i)
    mapping.tile[i] = std::max<int64_t>(1, layer.sizes[i] >> rng.below(3));
  std::vector<char> order(mapping.order.begin(), mapping.order.end());
  rng.shuffle(order);
  mapping.order.assign(order.begin(), order.end());
  return mapping;
}

NestTime time_of(const Design& design, const Layer& given, const Mapping& mapping, bool exact) {
  Layer layer = as_run(given, design.flow);
  const LoopNest nest = tile_layer(design.machine, design.flow, layer, mapping);
  return evaluate_nest(design.machine, nest, {.exact = exact, .most_rerun = 0});
}

TEST(FixedPoint, AgreesWithTheExactEvaluation) {
  Rng rng(3);
  double sum = 0, worst = 0;
  int cases = 0, open = 0;
  for (const std::string& id : bundled_accelerators()) {
    const Design design = open_accelerator(id);
    for (int i = 0; i < 110; ++i) {
      const Layer layer = as_run(random_layer(rng), design.flow);
      if (!design.flow.runs(layer.kind)) continue;
      const Mapping mapping = random_mapping(rng, layer);
      const NestTime fast = time_of(design, layer, mapping, false);
      if (fast.instructions > 3e6) continue;
      const NestTime exact = time_of(design, layer, mapping, true);
      const double error = std::abs(fast.cycles / exact.cycles - 1);
      EXPECT_LE(error, 0.05) << id << " " << mapping_text(mapping, layer);
      EXPECT_LE(fast.low_cycles, exact.cycles * 1.0001)
          << id << " " << mapping_text(mapping, layer);
      EXPECT_GE(fast.high_cycles, exact.cycles * 0.9999)
          << id << " " << mapping_text(mapping, layer);
      if (fast.converged) {
        EXPECT_EQ(fast.cycles, exact.cycles) << id << " " << mapping_text(mapping, layer);
        EXPECT_EQ(fast.activity.instructions, exact.activity.instructions);
      }
      sum += error;
      worst = std::max(worst, error);
      open += !fast.converged;
      ++cases;
    }
  }
  EXPECT_GE(cases, 300);
  EXPECT_LE(sum / cases, 0.005);
  RecordProperty("cases", cases);
  RecordProperty("cases_without_fixed_point", open);
  RecordProperty("mean_percent", std::to_string(100 * sum / cases));
  RecordProperty("worst_percent", std::to_string(100 * worst));
}

TEST(FixedPoint, InstructionsRunOfLargeLayersDoNotGrowWithThem) {
  // Products of 10^10 to 10^13 multiplications. A systolic array needs more: after each fold, the
  // places of its buffer, its stage and its lanes fill anew, 22 ROWS + 16 of them.
  for (const auto& [id, most] : {std::pair{"gemmini", 500},
                                 {"ultratrail", 500},
                                 {"plasticine", 650},
                                 {"systolic-array", 1200}}) {
    const Design design = open_accelerator(id);
    for (const int64_t rows : {int64_t{1} << 16, int64_t{1} << 20}) {
      const MappedLayer mapped = map_layer(design, {.sizes = {1, 16384, 16384, rows, 1, 1, 1}});
      EXPECT_GT(mapped.time.instructions, 1e8) << id;
      EXPECT_LE(mapped.time.evaluated, most) << id;
      EXPECT_TRUE(mapped.time.converged) << id;
    }
  }
}

TEST(FixedPoint, FewInstructionsOfLargeLayersAreRun) {
  const Design design = open_accelerator("gemmini");
  const Layer layer{.sizes = {64, 2048, 2048, 512, 512, 3, 3}};
  const Mapping mapping{.order = "nkpqc", .tile = {1, 64, 256, 16, 16, 3, 3}};
  const NestTime time = time_of(design, layer, mapping, false);
  EXPECT_GT(time.instructions, 4e9);
  EXPECT_LE(time.evaluated, 500);
  EXPECT_TRUE(time.converged);
}

TEST(Laws, MorePortsWiderMemoriesAndLowerLatenciesAreNeverSlower) {
  Rng rng(11);
  for (int i = 0; i < 60; ++i) {
    const Layer layer = random_layer(rng);
    const Mapping mapping = random_mapping(rng, layer);
    const auto cycles = [&](const ParameterValues& values) {
      return time_of(open_accelerator("gemmini", values), layer, mapping, false).cycles;
    };
    const double now = cycles({});
    EXPECT_LE(cycles({{"DMA_WIDTH", 32}}), now);
    EXPECT_LE(cycles({{"DRAM_WIDTH", 64}}), now);
    EXPECT_LE(cycles({{"DRAM_LATENCY", 2}}), now);
    EXPECT_LE(cycles({{"L2_LATENCY", 5}}), now);
    EXPECT_LE(cycles({{"ISSUE", 1}}), now);
    EXPECT_LE(cycles({{"L2_BYTES", 1 << 20}}), now);
  }
}

TEST(Laws, NoLayerIsFasterThanItsUnitsOrItsMemory) {
  Rng rng(13);
  for (const std::string& id : bundled_accelerators()) {
    const Design design = open_accelerator(id);
    for (int i = 0; i < 30; ++i) {
      const Layer layer = as_run(random_layer(rng), design.flow);
      if (!design.flow.runs(layer.kind)) continue;
      const NestTime time = time_of(design, layer, random_mapping(rng, layer), false);
      EXPECT_EQ(time.activity.macs, layer.macs()) << id;
      EXPECT_GE(time.cycles * static_cast<double>(design.machine.pe_count()),
                static_cast<double>(layer.macs()))
          << id;
      for (size_t m = 0; m < design.machine.memories.size(); ++m) {
        const Memory& memory = design.machine.memories[m];
        EXPECT_GE(time.cycles * memory.width_bytes * memory.ports * 1.0001 + 1,
                  static_cast<double>(time.activity.memory_bytes[m]))
            << id << " " << memory.name;
      }
    }
  }
}

}  // namespace
}  // namespace tilecast::accelerator
