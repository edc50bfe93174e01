#include "sim/events.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/rng.h"
#include "tilecast/error.h"

namespace tilecast {
namespace {

TEST(EventGraph, ACollectiveStartsWhenTheLastRankIsReadyAndHoldsAll) {
  EventGraph graph;
  const auto a = graph.add_stream(), b = graph.add_stream();
  graph.add(a, 1.0);
  graph.add(b, 3.0);
  const EventGraph::StreamId both[] = {a, b};
  const auto reduce = graph.add(both, 0.5);
  const auto after = graph.add(a, 1.0);
  const std::vector<EventGraph::Run> runs = graph.run();
  EXPECT_EQ(runs[static_cast<size_t>(reduce)].start_s, 3.0);
  EXPECT_EQ(runs[static_cast<size_t>(after)].end_s, 4.5);
  EXPECT_EQ(EventGraph::critical_path(runs), (std::vector<EventGraph::Op>{1, reduce, after}));
}

TEST(EventGraph, ALagCountsFromTheStartOfTheEarlierOperation) {
  EventGraph graph;
  const auto compute = graph.add_stream(), network = graph.add_stream();
  const auto backward = graph.add(compute, 10.0);
  const auto bucket = graph.add(network, 1.0);
  graph.after_start(bucket, backward, 4.0);
  EXPECT_EQ(graph.run()[static_cast<size_t>(bucket)].start_s, 4.0);
}

TEST(EventGraph, OperationsThatWaitForEachOtherAreABug) {
  EventGraph graph;
  const auto stream = graph.add_stream();
  const auto first = graph.add(stream, 1.0);
  const auto second = graph.add(stream, 1.0);
  graph.after(first, second);
  EXPECT_THROW(graph.run(), Error);
}

/// The end lies between the longest stream and the sum of all operations.
TEST(EventGraph, TheEndLiesBetweenTheBusiestStreamAndTheSerialSum) {
  Rng rng(11);
  for (int trial = 0; trial < 200; ++trial) {
    EventGraph graph;
    const size_t streams = 1 + rng.below(5);
    std::vector<double> busy(streams, 0);
    for (size_t s = 0; s < streams; ++s) graph.add_stream();
    double sum = 0;
    for (int op = 0; op < 40; ++op) {
      const double seconds = rng.uniform();
      std::vector<EventGraph::StreamId> used;
      for (size_t s = 0; s < streams; ++s) {
        if (rng.below(streams) == 0) used.push_back(static_cast<EventGraph::StreamId>(s));
      }
      if (used.empty()) used.push_back(0);
      for (const auto s : used) busy[static_cast<size_t>(s)] += seconds;
      sum += seconds;
      const auto added = graph.add(used, seconds);
      if (added > 0 && rng.below(3) == 0)
        graph.after(added, static_cast<EventGraph::Op>(rng.below(static_cast<size_t>(added))));
    }
    double end = 0;
    for (const EventGraph::Run& run : graph.run()) end = std::max(end, run.end_s);
    EXPECT_GE(end, *std::max_element(busy.begin(), busy.end()) - 1e-9);
    EXPECT_LE(end, sum + 1e-9);
  }
}

}  // namespace
}  // namespace tilecast
