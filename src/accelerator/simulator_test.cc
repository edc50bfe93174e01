// Hand-worked graphs, with one fetch stage (an instruction a cycle), one stage and two units; and
// closed forms.

#include "accelerator/simulator.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "accelerator/mapper.h"
#include "accelerator/registry.h"
#include "base/rng.h"

namespace tilecast::accelerator {
namespace {

constexpr Ticks kCycle = kTicksPerCycle;

// --- Hand-worked graphs. One fetch stage (an instruction a cycle), one stage, two units.

struct Given {
  uint16_t unit;
  Ticks latency, interval;
  std::vector<Slot> reads, writes;
  std::vector<MemoryUse> memories;
};

struct Times {
  Ticks fetched, entered, completed;  ///< cycles
  bool operator==(const Times&) const = default;
};

Machine machine_of(int64_t buffer, int64_t capacity) {
  Machine machine;
  machine.fetches = {{.name = "fetch", .interval = kCycle, .issue_buffer = buffer}};
  machine.stages = {{.name = "execute", .capacity = capacity}};
  machine.units.resize(2);
  for (Unit& unit : machine.units) unit.stages = {0};
  return machine;
}

std::vector<Times> run(const Machine& machine, const std::vector<Given>& given) {
  LoopNestBuilder builder;
  for (int i = 0; i < 4; ++i) builder.slot();
  std::vector<NodeId> parts;
  std::vector<int32_t> order;
  for (const Given& one : given)
    parts.push_back(builder.instruction({.unit = one.unit,
                                         .latency = one.latency * kCycle,
                                         .interval = one.interval * kCycle,
                                         .reads = one.reads,
                                         .writes = one.writes,
                                         .memories = one.memories}));
  const LoopNest nest = builder.finish(builder.sequence(parts));
  Simulator simulator(machine, nest);
  std::vector<Times> times;
  for (const NodeId part : parts) {
    const Passage passage = simulator.issue(nest.nodes[static_cast<size_t>(part)].index);
    times.push_back(
        {passage.fetched / kCycle, passage.entered / kCycle, passage.completed / kCycle});
  }
  return times;
}

void expect_times(const std::vector<Times>& found, const std::vector<Times>& expected) {
  ASSERT_EQ(found.size(), expected.size());
  for (size_t i = 0; i < found.size(); ++i) {
    EXPECT_EQ(found[i].fetched, expected[i].fetched) << "instruction " << i;
    EXPECT_EQ(found[i].entered, expected[i].entered) << "instruction " << i;
    EXPECT_EQ(found[i].completed, expected[i].completed) << "instruction " << i;
  }
}

TEST(DependencyGraph, StructuralHazardWaitsForTheUnit) {
  // Both use unit 0, which takes one instruction every 5 cycles.
  //  i  fetched  arrives  enters  completes
  //  0     0        1        1        6
  //  1     1        2        6       11
  expect_times(run(machine_of(8, 8), {{0, 5, 5}, {0, 5, 5}}), {{0, 1, 6}, {1, 6, 11}});
}

TEST(DependencyGraph, DataHazardWaitsForTheWriter) {
  // 1 reads on another unit what 0 writes; 2 overwrites what 1 reads.
  //  i  fetched  enters  completes
  //  0     0        1        8
  //  1     1        8       10     after 0 has written
  //  2     2       10       11     after 1 has read
  expect_times(run(machine_of(8, 8), {{0, 7, 1, {}, {{.base = 0}}},
                                      {1, 2, 1, {{.base = 0}}, {}},
                                      {0, 1, 1, {}, {{.base = 0}}}}),
               {{0, 1, 8}, {1, 8, 10}, {2, 10, 11}});
}

TEST(DependencyGraph, FullIssueBufferStopsTheFetch) {
  // A buffer of one and a stage of one; the unit takes 4 cycles each.
  //  i  fetched  leaves the buffer  enters  completes
  //  0     0            1              1        5
  //  1     1            2              5        9     in the stage from 2 to 5
  //  2     2            5              9       13     in the buffer from 3 to 5
  //  3     5            9             13       17     fetched when 2 has left the buffer
  expect_times(run(machine_of(1, 1), {{0, 4, 4}, {0, 4, 4}, {0, 4, 4}, {0, 4, 4}}),
               {{0, 1, 5}, {1, 5, 9}, {2, 9, 13}, {5, 13, 17}});
}

TEST(DependencyGraph, PortsOfAMemoryAreShared) {
  // Two units, one memory whose port each instruction takes for 3 cycles.
  //  i  enters  completes
  //  0     1        4
  //  1     4        7      the port is free at 4
  Machine machine = machine_of(8, 8);
  machine.memories.resize(1);
  machine.memories[0].type = "sram";
  const MemoryUse use{.memory = 0, .busy = 3 * kCycle};
  expect_times(run(machine, {{0, 3, 3, {}, {}, {use}}, {1, 3, 3, {}, {}, {use}}}),
               {{0, 1, 4}, {1, 4, 7}});
}

TEST(DependencyGraph, CacheMissTakesTheLatencyOfTheNextMemory) {
  // A cache of one set with two ways, lines of 16 bytes; a hit takes 2 cycles, a miss 10 more.
  //  i  address  line  result                 enters  completes
  //  0      0      0   miss                      1       13
  //  1      8      0   hit                      13       15
  //  2     16      1   miss                     15       27
  //  3     32      2   miss, replaces line 0    27       39
  //  4      0      0   miss                     39       51
  Machine machine = machine_of(8, 8);
  machine.memories.resize(2);
  machine.memories[0] = {
      .name = "cache", .type = "cache", .bytes = 32, .request_bytes = 16, .ways = 2, .backing = 1};
  machine.memories[1] = {.name = "dram", .type = "dram", .read_latency = 10};
  std::vector<Given> given;
  for (const int64_t address : {0, 8, 16, 32, 0})
    given.push_back({0, 2, 2, {}, {}, {{.memory = 0, .busy = kCycle, .address = address}}});
  expect_times(run(machine, given),
               {{0, 1, 13}, {1, 13, 15}, {2, 15, 27}, {3, 27, 39}, {4, 39, 51}});
}

// --- Closed forms.

TEST(SystolicArray, FoldsTakeThePublishedCycles) {
  // SCALE-Sim (Samajdar et al., ISPASS 2020, equations 1 to 3): a fold of an R x C array takes
  // 2R + C + T - 2 cycles. Output stationary: T is the length of the sum, folds cover rows and
  // columns of the output. Weight stationary: T is the number of rows, folds cover the sum and the
  // columns. Input stationary: T is the number of columns, folds cover the sum and the rows.
  Rng rng(7);
  const auto folds = [](int64_t size, int64_t part) { return (size + part - 1) / part; };
  for (int i = 0; i < 50; ++i) {
    const auto rows = static_cast<int64_t>(1 + rng.below(16));
    const auto columns = static_cast<int64_t>(1 + rng.below(32));
    const auto m = static_cast<int64_t>(1 + rng.below(200));
    const auto n = static_cast<int64_t>(1 + rng.below(200));
    const auto k = static_cast<int64_t>(1 + rng.below(200));
    const ParameterValues values = {{"ROWS", static_cast<double>(rows)},
                                    {"COLUMNS", static_cast<double>(columns)},
                                    {"BUFFER", 1e12},
                                    {"MEMORY_WIDTH", 1e12},
                                    {"MEMORY_LATENCY", 0}};
    const Layer layer{.sizes = {1, n, k, m, 1, 1, 1}};
    const auto cycles = [&](const std::string& dataflow) {
      const Design design = open_accelerator("systolic-array:dataflow=" + dataflow, values);
      return run_mapping(design, layer, {.order = "", .tile = layer.sizes}).time.cycles;
    };
    const int64_t fill = 2 * rows + columns - 2;
    const std::string shape = std::to_string(rows) + " x " + std::to_string(columns) + ": " +
                              std::to_string(m) + ", " + std::to_string(n) + ", " +
                              std::to_string(k);
    EXPECT_EQ(cycles("output_stationary"), (fill + k) * folds(m, rows) * folds(n, columns))
        << shape;
    EXPECT_EQ(cycles("weight_stationary"), (fill + m) * folds(k, rows) * folds(n, columns))
        << shape;
    EXPECT_EQ(cycles("input_stationary"), (fill + n) * folds(k, rows) * folds(m, columns)) << shape;
  }
}

}  // namespace
}  // namespace tilecast::accelerator
