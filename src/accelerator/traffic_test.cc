#include "accelerator/traffic.h"

#include <gtest/gtest.h>

#include <cmath>

#include "accelerator/instruction_cost.h"
#include "accelerator/mapper.h"
#include "accelerator/registry.h"

namespace tilecast::accelerator {
namespace {

const Memory& cache_of(const Design& design) {
  return design.machine.memories[static_cast<size_t>(design.machine.find_memory("l2"))];
}

/// Share of misses of the weights of a matrix product [64, c] x [c, k] with tiles of 16 columns:
/// four of them share the lines of 64 bytes.
double weight_misses(const Design& design, int64_t k, int64_t c, const Memory& cache) {
  const Layer layer{.sizes = {1, k, c, 64, 1, 1, 1}};
  const Mapping mapping{.order = "k", .tile = {1, 16, c, 64, 1, 1, 1}};
  return miss_ratio(layer, mapping, design.flow, Operand::kWeight, 64, cache);
}

TEST(MissRatio, RowsAPowerOfTwoApartShareFewSets) {
  // 512 KiB, 8 ways, lines of 64 bytes: 1024 sets. Rows of 1024 bytes are 16 lines apart: 64 sets
  // with 512 lines hold 384 rows and do not hold 1024. Rows of 1040 bytes reach all sets.
  const Design design = open_accelerator("gemmini");
  Memory cache = cache_of(design);
  ASSERT_EQ(cache.bytes, 512 * 1024);
  ASSERT_EQ(cache.ways, 8);
  cache.random_replacement = false;
  EXPECT_DOUBLE_EQ(weight_misses(design, 1024, 384, cache), 0.25);
  EXPECT_DOUBLE_EQ(weight_misses(design, 1024, 1024, cache), 1);
  EXPECT_DOUBLE_EQ(weight_misses(design, 1040, 1024, cache), 0.25);
}

TEST(MissRatio, ARandomVictimKeepsSomeLinesOfALoopThatIsTooLarge) {
  // The share m of misses of a loop over x times the cache solves m = 1 - exp(-m x).
  const Design design = open_accelerator("gemmini");
  Memory cache = cache_of(design);
  ASSERT_TRUE(cache.random_replacement);
  const double share = weight_misses(design, 1024, 1024, cache);
  const double missed = (share * 4 - 1) / 3;  // of the three tiles that could hit
  // The input of 64 KiB and the output of 4 KiB a tile are read beside the crowded 2 x 512 KiB.
  const double load = 2 + (65536.0 + 64 * 64) / cache.bytes;
  EXPECT_NEAR(missed, 1 - std::exp(-missed * load), 1e-9);
  EXPECT_GT(missed, 0.7);
  EXPECT_LT(missed, 0.9);
}

TEST(Stores, ToOneLineWaitForEachOther) {
  const Design design = open_accelerator("gemmini");
  const int operation = design.machine.find_operation("mvout");
  const int unit = design.machine.operations[static_cast<size_t>(operation)].units.front();
  Block block{.rows = 16, .row_bytes = 2, .row_stride = 64, .miss_ratio = 0};
  block.moves = {{.memory = design.machine.find_memory("accumulator"), .rows = 16, .row_bytes = 8}};
  const Ticks apart = instruction_on(design.machine, unit, operation, block).interval;
  block.row_stride = 2;
  const Ticks together = instruction_on(design.machine, unit, operation, block).interval;
  EXPECT_EQ(apart, 16 * kTicksPerCycle);  // a request a cycle
  EXPECT_EQ(together, static_cast<Ticks>(16 * cache_of(design).write_latency) * kTicksPerCycle);
}

TEST(Traffic, EveryByteComesFromTheDramOnce) {
  // Whatever the tiles: a product [64, 256] x [256, 128] reads 16,384 + 32,768 bytes and writes
  // 8,192. The caches of the other side hold it all.
  const Design design = open_accelerator("gemmini");
  const Layer layer{.sizes = {1, 128, 256, 64, 1, 1, 1}};
  const int dram = design.machine.find_memory("dram");
  for (const char* text : {"order=k tile=k16", "order=kp tile=k16,p16", "order=pk tile=k64,p16",
                           "order= tile=k128", "order=kc tile=k32,c64"}) {
    const Mapping mapping = parse_mapping(text, layer, "mapping");
    const NestTime time = run_mapping(design, layer, mapping).time;
    EXPECT_EQ(time.activity.memory_bytes[static_cast<size_t>(dram)], 57344) << text;
  }
}

}  // namespace
}  // namespace tilecast::accelerator
