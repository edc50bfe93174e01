#include "sim/events.h"

#include <algorithm>

#include "base/budget.h"
#include "base/check.h"

namespace tilecast {

EventGraph::StreamId EventGraph::add_stream() {
  last_.push_back(-1);
  return static_cast<StreamId>(last_.size() - 1);
}

EventGraph::Op EventGraph::add(std::span<const StreamId> streams, double duration_s) {
  const auto op = static_cast<Op>(ops_.size());
  go_on("simulating a training step");
  Budget::here().allow(kStepOperations, op, "the pipeline with all of its micro-batches");
  ops_.push_back({.duration_s = duration_s, .waits = {}});
  for (const StreamId stream : streams) {
    Op& last = last_[static_cast<size_t>(stream)];
    if (last >= 0 && last != op) wait(op, {.op = last});
    last = op;
  }
  return op;
}

void EventGraph::after(Op op, Op earlier) { wait(op, {.op = earlier}); }

void EventGraph::after_start(Op op, Op earlier, double lag_s) {
  wait(op, {.op = earlier, .lag_s = lag_s, .from_start = true});
}

EventGraph::LinkId EventGraph::add_link() { return link_count_++; }

void EventGraph::use(Op op, std::span<const LinkId> links, double busy_s, Sends sends) {
  TILECAST_CHECK(op + 1 == static_cast<Op>(ops_.size())) << "links of an earlier operation";
  Operation& of = ops_.back();
  if (busy_s <= 0 || of.duration_s <= 0 || links.empty()) return;
  if (of.use_count++ == 0) of.first_use = static_cast<int32_t>(uses_.size());
  uses_.push_back({.op = op,
                   .part = std::min(1.0, busy_s / of.duration_s),
                   .sends = sends,
                   .first_link = static_cast<int32_t>(use_links_.size()),
                   .link_count = static_cast<int32_t>(links.size())});
  use_links_.insert(use_links_.end(), links.begin(), links.end());
}

void EventGraph::use_together(Op op, double busy_s) {
  TILECAST_CHECK(op + 1 == static_cast<Op>(ops_.size())) << "links of an earlier operation";
  Operation& of = ops_.back();
  if (of.duration_s > 0) of.together = std::clamp(busy_s / of.duration_s, 0.0, 1.0);
}

std::span<const EventGraph::Use> EventGraph::uses_of(Op op) const {
  const Operation& of = ops_[static_cast<size_t>(op)];
  return {uses_.data() + of.first_use, static_cast<size_t>(of.use_count)};
}

std::span<const EventGraph::LinkId> EventGraph::links_of(const Use& use) const {
  return {use_links_.data() + use.first_link, static_cast<size_t>(use.link_count)};
}

std::vector<EventGraph::Run> EventGraph::run_without_sharing() const {
  std::vector<Run> runs(ops_.size());
  std::vector<int32_t> open(ops_.size(), 0), first(ops_.size() + 1, 0);
  for (const Operation& op : ops_) {
    for (const Wait& w : op.waits) ++first[static_cast<size_t>(w.op) + 1];
  }
  for (size_t i = 0; i < ops_.size(); ++i) first[i + 1] += first[i];
  std::vector<Op> followers(static_cast<size_t>(first.back()));
  std::vector<int32_t> next(first.begin(), first.end() - 1);
  std::vector<Op> ready;
  for (size_t i = 0; i < ops_.size(); ++i) {
    open[i] = static_cast<int32_t>(ops_[i].waits.size());
    if (open[i] == 0) ready.push_back(static_cast<Op>(i));
    for (const Wait& w : ops_[i].waits)
      followers[static_cast<size_t>(next[static_cast<size_t>(w.op)]++)] = static_cast<Op>(i);
  }
  size_t done = 0;
  for (; done < ready.size(); ++done) {
    const auto i = static_cast<size_t>(ready[done]);
    go_on("simulating a training step");
    Run& run = runs[i];
    for (const Wait& w : ops_[i].waits) {
      const Run& before = runs[static_cast<size_t>(w.op)];
      const double free_s = w.from_start ? before.start_s + w.lag_s : before.end_s;
      if (free_s < run.start_s || (free_s == run.start_s && run.cause >= 0)) continue;
      run.start_s = free_s;
      run.cause = w.op;
    }
    run.end_s = run.start_s + ops_[i].duration_s;
    for (int32_t f = first[i]; f < first[i + 1]; ++f) {
      const Op follower = followers[static_cast<size_t>(f)];
      if (--open[static_cast<size_t>(follower)] == 0) ready.push_back(follower);
    }
  }
  TILECAST_CHECK(done == ops_.size()) << "operations wait for each other in a circle";
  return runs;
}

std::vector<EventGraph::Op> EventGraph::critical_path(const std::vector<Run>& runs) {
  std::vector<Op> path;
  const auto last = std::max_element(runs.begin(), runs.end(),
                                     [](const Run& a, const Run& b) { return a.end_s < b.end_s; });
  if (last == runs.end()) return path;
  for (auto op = static_cast<Op>(last - runs.begin()); op >= 0;
       op = runs[static_cast<size_t>(op)].cause)
    path.push_back(op);
  std::reverse(path.begin(), path.end());
  return path;
}

}  // namespace tilecast
