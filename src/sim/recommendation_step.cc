#include "sim/recommendation_step.h"

#include <algorithm>

#include "sim/events.h"

namespace tilecast {
namespace {

class Ranks {
 public:
  explicit Ranks(const RecommendationStep& step)
      : step_(step), count_(step.tables_forward_s.size()) {
    for (size_t r = 0; r < count_; ++r) {
      compute_.push_back(graph_.add_stream());
      links_.push_back(graph_.add_stream());
    }
  }

  RecommendationTimes run() {
    const auto tables = on_each("lookups", step_.tables_forward_s);
    const EventGraph::Op sums = exchange("exchange of sums", step_.exchange_s, tables);
    if (step_.exchange_ids_s > 0)
      exchange("exchange of the next batch's ids", step_.exchange_ids_s, {});
    on_each("bottom MLP", step_.bottom_forward_s);
    const auto top = on_each("interaction and top MLP", step_.top_forward_s, sums);
    const auto top_backward = on_each("backward: top MLP and interaction", step_.top_backward_s);
    add_buckets(top_backward, 0, step_.top_backward_s);
    const EventGraph::Op gradients =
        exchange("exchange of the sums' gradients", step_.exchange_gradients_s, top_backward);
    const auto bottom_backward = on_each("backward: bottom MLP", step_.bottom_backward_s);
    add_buckets(bottom_backward, step_.top_backward_s, step_.bottom_backward_s);
    auto last = on_each("update of tables", step_.tables_backward_s, gradients);
    EventGraph::Op reduced = -1;
    if (step_.reduce_tables_s > 0)
      reduced = exchange("all-reduce of replicated tables", step_.reduce_tables_s, last);
    if (!buckets_.empty() && reduced < 0) reduced = buckets_.back();
    const auto optimizer = on_each("optimizer of the MLPs", step_.optimizer_s, reduced);
    return times(top, optimizer, last);
  }

 private:
  using Ops = std::vector<EventGraph::Op>;

  /// The same on all ranks, after a collective.
  Ops on_each(const char* name, double seconds, EventGraph::Op after = -1) {
    return on_each(name, std::vector<double>(count_, seconds), after);
  }
  Ops on_each(const char* name, const std::vector<double>& seconds, EventGraph::Op after = -1) {
    Ops ops;
    for (size_t r = 0; r < count_; ++r) {
      ops.push_back(graph_.add(compute_[r], seconds[r]));
      if (after >= 0) graph_.after(ops.back(), after);
    }
    parts_.push_back({{.name = name}, ops});
    return ops;
  }

  /// A collective of all ranks, when each has done its part.
  EventGraph::Op exchange(const char* name, double seconds, const Ops& before) {
    const EventGraph::Op op = graph_.add(links_, seconds);
    for (const EventGraph::Op earlier : before) graph_.after(op, earlier);
    communication_s_ += seconds;
    parts_.push_back({{.name = name, .on_links = true}, {op}});
    return op;
  }

  /// The buckets that become ready in a part of the backward pass, which starts `from` after the
  /// first part.
  void add_buckets(const Ops& part, double from, double length) {
    for (; next_bucket_ < step_.buckets.size(); ++next_bucket_) {
      const GradientBucket& bucket = step_.buckets[next_bucket_];
      const bool last = from > 0;
      if (!last && bucket.ready_s > from + length) return;
      const EventGraph::Op op = graph_.add(links_, bucket.reduce_s);
      for (const EventGraph::Op start : part)
        graph_.after_start(op, start, std::clamp(bucket.ready_s - from, 0.0, length));
      communication_s_ += bucket.reduce_s;
      buckets_.push_back(op);
    }
  }

  RecommendationTimes times(const Ops& top, const Ops& optimizer, const Ops& tables) const {
    const std::vector<EventGraph::Run> runs = graph_.run();
    const auto end = [&](EventGraph::Op op) { return runs[static_cast<size_t>(op)].end_s; };
    RecommendationTimes times;
    for (const EventGraph::Run& run : runs) times.seconds = std::max(times.seconds, run.end_s);
    double backward_end = 0;
    for (size_t r = 0; r < count_; ++r) {
      times.forward_s = std::max(times.forward_s, end(top[r]));
      backward_end = std::max(backward_end, end(tables[r]));
      double compute = step_.bottom_forward_s + step_.top_forward_s + step_.top_backward_s +
                       step_.bottom_backward_s + step_.optimizer_s;
      compute += step_.tables_forward_s[r] + step_.tables_backward_s[r];
      times.compute_s = std::max(times.compute_s, compute);
    }
    times.parts = timed_parts(runs);
    for (const EventGraph::Op op : buckets_) backward_end = std::max(backward_end, end(op));
    for (const EventGraph::Op op : optimizer)
      backward_end = std::max(backward_end, runs[static_cast<size_t>(op)].start_s);
    times.backward_s = backward_end - times.forward_s;
    times.optimizer_s = times.seconds - backward_end;
    times.communication_s = communication_s_;
    times.exposed_s = times.seconds - times.compute_s;
    return times;
  }

  /// A part and its operations: one for each rank, or collectives.
  struct Part {
    RecommendationPart part;
    Ops ops;
  };

  std::vector<RecommendationPart> timed_parts(const std::vector<EventGraph::Run>& runs) const {
    std::vector<Part> all = parts_;
    if (!buckets_.empty())
      all.push_back({{.name = "all-reduces of the MLPs", .on_links = true}, buckets_});
    std::vector<RecommendationPart> parts;
    for (const auto& [part, ops] : all) {
      RecommendationPart timed = part;
      timed.start_s = runs[static_cast<size_t>(ops.front())].start_s;
      double sum = 0;
      for (const EventGraph::Op op : ops) {
        const EventGraph::Run& run = runs[static_cast<size_t>(op)];
        timed.start_s = std::min(timed.start_s, run.start_s);
        timed.end_s = std::max(timed.end_s, run.end_s);
        timed.seconds = std::max(timed.seconds, run.end_s - run.start_s);
        sum += run.end_s - run.start_s;
      }
      if (part.on_links) timed.seconds = sum;
      if (timed.seconds > 0) parts.push_back(timed);
    }
    std::stable_sort(parts.begin(), parts.end(),
                     [](const auto& a, const auto& b) { return a.start_s < b.start_s; });
    return parts;
  }

  const RecommendationStep& step_;
  const size_t count_;
  std::vector<Part> parts_;
  EventGraph graph_;
  std::vector<EventGraph::StreamId> compute_, links_;
  Ops buckets_;
  size_t next_bucket_ = 0;
  double communication_s_ = 0;
};

}  // namespace

RecommendationTimes simulate_recommendation(const RecommendationStep& step) {
  return Ranks(step).run();
}

}  // namespace tilecast
