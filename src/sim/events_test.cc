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

TEST(SharedLinks, AnOperationAloneTakesItsDurationToTheBit) {
  EventGraph graph;
  const auto a = graph.add_stream(), b = graph.add_stream();
  const EventGraph::LinkId link[] = {graph.add_link()};
  const auto first = graph.add(a, 0.1);
  graph.use(first, link, 0.1);
  const auto second = graph.add(b, 0.7);
  graph.use(second, link, 0.7);
  graph.after(second, first);
  const std::vector<EventGraph::Run> runs = graph.run();
  EXPECT_EQ(runs[1].start_s, 0.1);
  EXPECT_EQ(runs[1].end_s, 0.1 + 0.7);
}

TEST(SharedLinks, TwoThatFillALinkTakeTheirSumTogether) {
  EventGraph graph;
  const EventGraph::LinkId link[] = {graph.add_link()};
  for (const double duration_s : {1.0, 3.0}) {
    const auto op = graph.add(graph.add_stream(), duration_s);
    graph.use(op, link, duration_s);
  }
  const std::vector<EventGraph::Run> runs = graph.run();
  EXPECT_DOUBLE_EQ(runs[0].end_s, 2);  // at half its pace
  EXPECT_DOUBLE_EQ(runs[1].end_s, 4);
}

TEST(SharedLinks, HalfOfALinkEachIsNoContention) {
  EventGraph graph;
  const EventGraph::LinkId link[] = {graph.add_link()};
  for (int i = 0; i < 2; ++i) {
    const auto op = graph.add(graph.add_stream(), 2.0);
    graph.use(op, link, 1.0);
  }
  EXPECT_EQ(graph.run()[1].end_s, 2);
}

TEST(SharedLinks, OppositeDirectionsDoNotMeet) {
  EventGraph graph;
  for (int i = 0; i < 2; ++i) {
    const auto op = graph.add(graph.add_stream(), 2.0);
    const EventGraph::LinkId link[] = {graph.add_link()};
    graph.use(op, link, 2.0);
  }
  EXPECT_EQ(graph.run()[1].end_s, 2);
}

/// A pass of 10 s, half of it collectives, beside a collective that fills the link: while the pass
/// sends (q of the time) both have half of the link.
TEST(SharedLinks, APassIsLongerByItsCollectivesOnly) {
  EventGraph graph;
  const EventGraph::LinkId link[] = {graph.add_link()};
  const auto pass = graph.add(graph.add_stream(), 10.0);
  graph.use(pass, link, 5.0, EventGraph::Sends::kInTurns);
  const auto bucket = graph.add(graph.add_stream(), 100.0);
  graph.use(bucket, link, 100.0);
  const std::vector<EventGraph::Run> runs = graph.run();
  EXPECT_DOUBLE_EQ(runs[0].end_s, 15);  // 5 of compute, 5 of sending at half the rate
  // In 15 s, the link carried the pass's 5 s and 10 s of the bucket's 100.
  EXPECT_DOUBLE_EQ(runs[1].end_s, 105);
}

/// A pass that fills links inside its node and between nodes, beside collectives on both kinds:
/// together, it waits for the fuller one; one after the other, for both.
TEST(SharedLinks, APassThatFillsTwoKindsOfLinksIsSlowedOnce) {
  for (const bool together : {true, false}) {
    EventGraph graph;
    const EventGraph::LinkId node[] = {graph.add_link()}, network[] = {graph.add_link()};
    const auto pass = graph.add(graph.add_stream(), 10.0);
    graph.use(pass, node, 4.0, EventGraph::Sends::kInTurns);
    graph.use(pass, network, 4.0, EventGraph::Sends::kInTurns);
    if (together) graph.use_together(pass, 4.0);
    for (const auto& link : {node, network}) {
      const auto bucket = graph.add(graph.add_stream(), 100.0);
      graph.use(bucket, {link, 1}, 100.0);
    }
    const std::vector<EventGraph::Run> runs = graph.run();
    EXPECT_DOUBLE_EQ(runs[0].end_s, together ? 14 : 18);
    // Each link carried the pass's 4 s and the bucket's 100.
    EXPECT_DOUBLE_EQ(runs[1].end_s, 104);
    EXPECT_DOUBLE_EQ(runs[2].end_s, 104);
  }
}

/// A follower of a part of a pass comes when that part is done, not at its time alone.
TEST(SharedLinks, WhatWaitsForAPartOfAPassMovesWithThePass) {
  EventGraph graph;
  const EventGraph::LinkId link[] = {graph.add_link()};
  const auto pass = graph.add(graph.add_stream(), 10.0);
  graph.use(pass, link, 10.0, EventGraph::Sends::kInTurns);
  const auto bucket = graph.add(graph.add_stream(), 100.0);
  graph.use(bucket, link, 100.0);
  const auto during = graph.add(graph.add_stream(), 1.0);
  graph.after_start(during, pass, 4.0);
  const auto later = graph.add(graph.add_stream(), 1.0);
  graph.after_start(later, pass, 12.0);
  const std::vector<EventGraph::Run> runs = graph.run();
  EXPECT_DOUBLE_EQ(runs[static_cast<size_t>(during)].start_s, 8);
  EXPECT_DOUBLE_EQ(runs[static_cast<size_t>(later)].start_s, 22);  // 2 s after its end
}

/// On random graphs: each link carries all of its bytes within the time, which lies between that
/// without sharing and the sum of all operations; no operation is faster than alone.
TEST(SharedLinks, NoLinkCarriesMoreThanItsRate) {
  Rng rng(23);
  int shared = 0;
  for (int trial = 0; trial < 500; ++trial) {
    EventGraph graph;
    const size_t streams = 2 + rng.below(4), links = 1 + rng.below(3);
    for (size_t s = 0; s < streams; ++s) graph.add_stream();
    for (size_t l = 0; l < links; ++l) graph.add_link();
    std::vector<double> busy_s(links, 0);
    double sum = 0;
    const size_t ops = 5 + rng.below(40);
    for (size_t i = 0; i < ops; ++i) {
      const auto stream = static_cast<EventGraph::StreamId>(rng.below(streams));
      const double duration_s = rng.below(10) == 0 ? 0 : rng.uniform();
      const auto op = graph.add(stream, duration_s);
      sum += duration_s;
      std::vector<EventGraph::LinkId> used;
      for (size_t l = 0; l < links; ++l) {
        if (rng.below(2) == 0) used.push_back(static_cast<EventGraph::LinkId>(l));
      }
      const double use_s = duration_s * (rng.below(2) == 0 ? 1 : rng.uniform());
      // Passes stand on the first stream alone.
      graph.use(op, used, use_s,
                stream == 0 ? EventGraph::Sends::kInTurns : EventGraph::Sends::kThroughout);
      for (const EventGraph::LinkId l : used) busy_s[static_cast<size_t>(l)] += use_s;
      if (i > 0 && rng.below(3) == 0) graph.after(op, static_cast<EventGraph::Op>(rng.below(i)));
      if (i > 0 && rng.below(4) == 0)
        graph.after_start(op, static_cast<EventGraph::Op>(rng.below(i)), rng.uniform());
    }
    const auto end_of = [](const std::vector<EventGraph::Run>& runs) {
      double end_s = 0;
      for (const EventGraph::Run& run : runs) end_s = std::max(end_s, run.end_s);
      return end_s;
    };
    const std::vector<EventGraph::Run> runs = graph.run();
    const double end_s = end_of(runs), alone_s = end_of(graph.run_without_sharing());
    shared += end_s > alone_s * (1 + 1e-9) ? 1 : 0;
    EXPECT_GE(end_s, alone_s * (1 - 1e-9)) << trial;
    for (const double link_s : busy_s) EXPECT_GE(end_s, link_s * (1 - 1e-9)) << trial;
    for (size_t i = 0; i < runs.size(); ++i)
      EXPECT_GE(runs[i].end_s - runs[i].start_s,
                graph.duration_s(static_cast<EventGraph::Op>(i)) * (1 - 1e-9) - 1e-15);
    // Waiting for a part of an operation may leave all streams idle; else work never stops.
    EXPECT_LE(end_s, sum + static_cast<double>(ops)) << trial;
    const std::vector<EventGraph::Op> path = EventGraph::critical_path(runs);
    EXPECT_EQ(runs[static_cast<size_t>(path.back())].end_s, end_s);
  }
  EXPECT_GT(shared, 100);
}

}  // namespace
}  // namespace tilecast
