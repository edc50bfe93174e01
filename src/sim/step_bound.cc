#include "sim/step_bound.h"

#include <algorithm>
#include <numeric>

namespace tilecast {
namespace {

/// A pass over gathered units with idle streams: parameters are gathered at most two units ahead,
/// gradients are reduced on the same stream (see simulate_step).
double least_gathered_s(const std::vector<GatheredUnit>& units, bool backward) {
  const size_t count = units.size();
  double link = 0, compute = 0, before = 0;  // ends; `before`: of the unit before the last
  const auto at = [&](size_t i) -> const GatheredUnit& {
    return units[backward ? count - 1 - i : i];
  };
  std::vector<double> gathered(count);
  gathered[0] = link = at(0).gather_s;
  for (size_t i = 0; i < count; ++i) {
    if (i + 1 < count) {
      link = std::max(link, i >= 1 ? before : 0) + at(i + 1).gather_s;
      gathered[i + 1] = link;
    }
    before = compute =
        std::max(compute, gathered[i]) + (backward ? at(i).backward_s : at(i).forward_s);
    if (backward && at(i).reduce_s > 0) link = std::max(link, compute) + at(i).reduce_s;
  }
  return compute;
}

/// Least times of the passes of a part: from the end of the pass before on the same rank, and from
/// when another stage's result is there (by then, parameters may have been gathered).
struct Passes {
  double forward_s = 0, backward_s = 0, last_backward_s = 0;
  double received_forward_s = 0, received_backward_s = 0, received_last_s = 0;
};

Passes passes_of(const PartLoad& part) {
  Passes p{part.forward_s, part.backward_s, part.last_backward_s,
           part.forward_s, part.backward_s, part.last_backward_s};
  if (part.units.empty()) return p;
  p.forward_s = least_gathered_s(part.units, false);
  p.backward_s = p.last_backward_s = least_gathered_s(part.units, true);
  p.received_forward_s = p.received_backward_s = 0;
  for (const GatheredUnit& unit : part.units) {
    p.received_forward_s += unit.forward_s;
    p.received_backward_s += unit.backward_s;
  }
  p.received_last_s = p.received_backward_s;
  return p;
}

class Bound {
 public:
  explicit Bound(const TrainingStep& step) : step_(step), shape_(step.pipeline) {
    for (const StageLoad& load : step.stages) {
      std::vector<Passes>& parts = passes_.emplace_back();
      for (const PartLoad& part : load.parts) parts.push_back(passes_of(part));
    }
    sum_up();
  }

  double seconds() {
    const int64_t stages = shape_.stages;
    const bool splits = splits_backward(shape_.schedule);
    for (int64_t s = 0; splits && s < stages; ++s) ends_alone(s);
    for (int64_t s = 0; !splits && s < stages; ++s) {
      ends(s, head_[index(s)] + all_[index(s)]);
      around(s);
      communication(s);
    }
    const bool one_by_one = shape_.schedule == PipelineSchedule::k1F1B && shape_.chunks == 1;
    for (int64_t s = 0; one_by_one && s + 1 < stages; ++s) {
      for (int64_t end = s + 1; end < stages; ++end) round_trips(s, end);
    }
    if (step_.share_embeddings_s > 0)
      end_.front() = end_.back() = std::max(end_.front(), end_.back()) + step_.share_embeddings_s;
    double most = 0;
    for (size_t s = 0; s < end_.size(); ++s)
      most = std::max(most, std::max(end_[s], copied_[s]) + step_.stages[s].optimizer_s +
                                step_.stages[s].gather_parameters_s);
    return most;
  }

 private:
  static size_t index(int64_t i) { return static_cast<size_t>(i); }
  const Passes& of(int64_t stage, int64_t chunk) const {
    return passes_[index(stage)][index(chunk)];
  }
  const PartLoad& load(int64_t stage, int64_t chunk) const {
    return step_.stages[index(stage)].parts[index(chunk)];
  }

  void sum_up() {
    const auto m = static_cast<double>(shape_.microbatches);
    double head = 0;
    end_.assign(index(shape_.stages), 0);
    copied_.assign(index(shape_.stages), 0);
    for (int64_t s = 0; s < shape_.stages; ++s) {
      head_.push_back(head);
      head += of(s, 0).received_forward_s + load(s, 0).send_forward_s;
      double all = s == 0 ? 0 : of(s, 0).received_forward_s - of(s, 0).forward_s;
      for (int64_t c = 0; c < shape_.chunks; ++c)
        all += m * of(s, c).forward_s + (m - 1) * of(s, c).backward_s + of(s, c).last_backward_s;
      all_.push_back(all);
      tail_.push_back(tail(s));
      copied_tail_.push_back(copied_tail(s));
    }
  }

  /// From the end of the last backward pass of a stage, which is of its first part, until its
  /// gradients are reduced.
  double tail(int64_t stage) const {
    const StageLoad& stage_load = step_.stages[index(stage)];
    const PartLoad& part = stage_load.parts.front();
    double reduced = -part.last_backward_s;  // that pass's start: times of buckets begin there
    for (const GradientBucket& bucket : part.buckets)
      reduced = std::max(reduced, bucket.ready_s - part.last_backward_s) + bucket.reduce_s;
    // The first of the units is the last whose gradients are reduced.
    if (!part.units.empty()) reduced = part.units.front().reduce_s;
    return std::max(0.0, reduced) + stage_load.reduce_rest_s;
  }

  /// From there until its gradients are copied out of their buckets, one after the other.
  double copied_tail(int64_t stage) const {
    const PartLoad& first = load(stage, 0);
    double reduced = -first.last_backward_s, copied = 0;
    for (int64_t c = 1; c < shape_.chunks; ++c) {
      for (const GradientBucket& bucket : load(stage, c).buckets) copied += bucket.copy_out_s;
    }
    for (const GradientBucket& bucket : first.buckets) {
      reduced = std::max(reduced, bucket.ready_s - first.last_backward_s) + bucket.reduce_s;
      if (bucket.copy_out_s > 0) copied = std::max(copied, reduced) + bucket.copy_out_s;
    }
    return copied;
  }

  /// A stage ends its last pass at `seconds`, and the stages before it later.
  void ends(int64_t stage, double seconds) {
    double at = seconds;
    for (int64_t s = stage;; --s) {
      end_[index(s)] = std::max(end_[index(s)], at + tail_[index(s)]);
      copied_[index(s)] = std::max(copied_[index(s)], at + copied_tail_[index(s)]);
      if (s == 0) return;
      at += load(s, 0).send_backward_s + of(s - 1, 0).received_last_s;
    }
  }

  /// A stage whose last pass computes gradients of weights, for which no other stage waits.
  void ends_alone(int64_t stage) {
    const double seconds = head_[index(stage)] + all_[index(stage)];
    double copies = 0;
    for (const PartLoad& part : step_.stages[index(stage)].parts) {
      for (const GradientBucket& bucket : part.buckets) copies += bucket.copy_out_s;
    }
    end_[index(stage)] = seconds + step_.stages[index(stage)].reduce_rest_s;
    copied_[index(stage)] = seconds + copies;
  }

  /// The stream that gathers parameters and reduces gradients.
  void communication(int64_t stage) {
    const auto m = static_cast<double>(shape_.microbatches);
    double sum = 0;
    for (const PartLoad& part : step_.stages[index(stage)].parts) {
      for (const GatheredUnit& unit : part.units) sum += m * (2 * unit.gather_s + unit.reduce_s);
    }
    end_[index(stage)] = std::max(end_[index(stage)], sum);
  }

  /// The first micro-batch through all parts and back to the stage's last part; then the rest of
  /// the stage's passes.
  void around(int64_t stage) {
    const int64_t last = shape_.chunks - 1;
    double at = 0;
    for (int64_t c = 0; c < shape_.chunks; ++c) {
      for (int64_t s = 0; s < shape_.stages; ++s)
        at += of(s, c).received_forward_s +
              (c < last || s + 1 < shape_.stages ? load(s, c).send_forward_s : 0);
    }
    const bool only = shape_.microbatches == 1;
    for (int64_t s = shape_.stages - 1; s > stage; --s)
      at += (only ? of(s, last).received_last_s : of(s, last).received_backward_s) +
            load(s, last).send_backward_s;
    // All that stands before the first backward pass is done.
    const int64_t all = shape_.microbatches * shape_.chunks;
    const int64_t before = std::min(forward_ahead(shape_, stage) + 1, all);
    const std::vector<int64_t> done = forward_passes(shape_, before);
    const Passes& own = of(stage, last);
    double rest = all_[index(stage)] - (only ? own.last_backward_s - own.received_last_s
                                             : own.backward_s - own.received_backward_s);
    if (stage > 0) rest += of(stage, 0).forward_s - of(stage, 0).received_forward_s;
    for (int64_t c = 0; c < shape_.chunks; ++c)
      rest -= static_cast<double>(done[index(c)]) * of(stage, c).forward_s;
    ends(stage, at + rest);
  }

  /// Stage `first` runs F(j), B(j - a), F(j + 1), … with a = forward_ahead. F(j) has to get to
  /// stage `end` before that runs B(j - a + l), l = end - first, which has to get back before
  /// `first` runs F(j + l + 1).
  void round_trips(int64_t first, int64_t end) {
    const int64_t ahead = forward_ahead(shape_, first), between = end - first;
    const int64_t m = shape_.microbatches;
    if (ahead + between >= m) return;
    double trip = 0;
    for (int64_t s = first; s <= end; ++s) {
      trip += of(s, 0).received_forward_s + of(s, 0).received_backward_s;
      if (s < end) trip += load(s, 0).send_forward_s + load(s + 1, 0).send_backward_s;
    }
    // A trip: from the end of F(j) to the end of F(j + between + 1), with B(j - a + between)
    // before.
    const int64_t trips = (m - 1 - ahead) / (between + 1);
    const auto j = static_cast<double>(ahead + trips * (between + 1));
    const auto all = static_cast<double>(m);
    const Passes& own = of(first, 0);
    const double before =
        head_[index(first)] + static_cast<double>(ahead + 1) * own.received_forward_s;
    const double after = (all - 1 - j) * own.forward_s +
                         (all - (j - static_cast<double>(ahead)) - 1) * own.backward_s +
                         own.last_backward_s;
    ends(first, before + static_cast<double>(trips) * trip + after);
  }

  const TrainingStep& step_;
  const PipelineShape& shape_;
  std::vector<std::vector<Passes>> passes_;  ///< by stage and part
  std::vector<double> head_;                 ///< by stage: until the first micro-batch is there
  std::vector<double> all_;                  ///< by stage: all passes
  std::vector<double> tail_;
  std::vector<double> copied_tail_;
  std::vector<double> end_;     ///< by stage: when its gradients are reduced, at the earliest
  std::vector<double> copied_;  ///< and when they are copied out of their buckets
};

}  // namespace

double least_step_s(const TrainingStep& step) { return Bound(step).seconds(); }

}  // namespace tilecast
