#include "sim/training_step.h"

#include <algorithm>
#include <array>
#include <map>

#include "base/budget.h"
#include "base/check.h"
#include "base/checked.h"
#include "sim/events.h"
#include "sim/step_replicas.h"
#include "sim/step_times.h"

namespace tilecast {
namespace {

using Op = EventGraph::Op;
using StreamId = EventGraph::StreamId;

/// In which directions an operation uses the links of a rank.
enum class Way : uint8_t { kBoth, kOut, kIn };

class StepSimulation {
 public:
  StepSimulation(const TrainingStep& step, Folding folding)
      : step_(step),
        width_(folding == Folding::kNone ? step.width : 1),
        replicas_(simulated_replicas(step, folding)) {
    for (int64_t s = 0; s < step_.pipeline.stages; ++s) {
      for (size_t r = 0; r < replicas_.factors.size(); ++r) {
        Rank& rank = ranks_.emplace_back();
        for (int64_t w = 0; w < width_; ++w) {
          rank.compute.push_back(graph_.add_stream());
          rank.communication.push_back(graph_.add_stream());
          rank.links.push_back({.node = {graph_.add_link(), graph_.add_link()},
                                .network = {graph_.add_link(), graph_.add_link()}});
        }
        rank.forward_link = graph_.add_stream();
        rank.backward_link = graph_.add_stream();
      }
    }
  }

  StepTimes run(Events events) {
    allow_passes();
    for (int64_t s = 0; s < step_.pipeline.stages; ++s) add_stage(s);
    connect_stages();
    finish();
    const std::vector<EventGraph::Run> runs = graph_.run();
    StepTimes times;
    times.simulated_replicas = static_cast<int64_t>(replicas_.factors.size());
    for (const EventGraph::Run& run : runs) times.seconds = std::max(times.seconds, run.end_s);
    const StepOperations operations{graph_, runs, labels_};
    times.stages = stage_times(operations, step_.pipeline.stages, width_,
                               static_cast<int64_t>(slowest_replica(replicas_)), times.seconds);
    if (events == Events::kAll) times.events = step_events(operations, replicas_.numbers);
    return times;
  }

 private:
  /// Each pass is an operation, and sends its result by another.
  void allow_passes() const {
    const PipelineShape& p = step_.pipeline;
    const int64_t passes =
        checked_product({splits_backward(p.schedule) ? 3 : 2, p.stages, p.chunks, p.microbatches,
                         static_cast<int64_t>(replicas_.factors.size())});
    Budget::here().allow(kStepOperations, checked_multiply(p.stages > 1 ? 2 : 1, passes),
                         "the pipeline with all of its micro-batches");
  }

  /// Out and in.
  struct RankLinks {
    std::array<EventGraph::LinkId, 2> node, network;
  };
  struct Rank {
    std::vector<StreamId> compute, communication;  ///< of each rank of the width
    std::vector<RankLinks> links;
    StreamId forward_link = -1, backward_link = -1;
    std::vector<Op> last_completed;  ///< by part of the stage: completes gradients of weights
    Op last = -1;                    ///< operation of the compute stream
  };
  /// First and last operation of a pass, and the operation that sends its result.
  struct Passed {
    Op first = -1, last = -1, sent = -1;
  };
  struct BucketCopy {
    int64_t stage = 0;
    double seconds = 0;
    std::vector<Op> reductions;  ///< of the bucket, of each rank of the width
  };
  using Key = std::tuple<PassKind, int64_t, int64_t, size_t>;  // part, micro-batch, replica

  Rank& rank(int64_t stage, size_t replica) {
    return ranks_[static_cast<size_t>(stage) * replicas_.factors.size() + replica];
  }
  const StageLoad& load(int64_t stage) const { return step_.stages[static_cast<size_t>(stage)]; }

  Op add(std::span<const StreamId> streams, double seconds, const StepLabel& label) {
    labels_.push_back(label);
    return graph_.add(streams, seconds);
  }

  /// The links of an operation's ranks, collected rank by rank.
  class Links {
   public:
    void add(const RankLinks& links, Way way) {
      for (const size_t direction : {size_t{0}, size_t{1}}) {
        if (way == (direction == 0 ? Way::kIn : Way::kOut)) continue;
        node_.push_back(links.node[direction]);
        network_.push_back(links.network[direction]);
      }
    }
    void add(const Rank& rank, Way way) {
      for (const RankLinks& links : rank.links) add(links, way);
    }
    /// States the use of links of the operation that was added last.
    void use(EventGraph& graph, Op op, const Transfer& time,
             EventGraph::Sends sends = EventGraph::Sends::kThroughout) const {
      graph.use(op, node_, time.node_s, sends);
      graph.use(op, network_, time.network_s, sends);
      if (sends == EventGraph::Sends::kInTurns) graph.use_together(op, time.both_s);
    }

   private:
    std::vector<EventGraph::LinkId> node_, network_;
  };

  double factor(int64_t stage, size_t replica) const {
    return replicas_.factors[replica][static_cast<size_t>(stage)];
  }
  /// A pass of a slow rank: its kernels take longer, the collectives inside do not.
  double slowed_s(double seconds, double inner_s, int64_t stage, size_t replica) const {
    const double kernels_s = std::max(0.0, seconds - inner_s);
    return seconds + (factor(stage, replica) - 1) * kernels_s;
  }

  /// A collective of all replicas of a stage, for each rank of the width. `ready` adds what it
  /// waits for in each replica.
  template <typename Ready>
  Op collective(int64_t stage, double seconds, const Transfer& time, const char* what,
                const PipelinePass& pass, const Ready& ready) {
    Op op = -1;
    for (size_t w = 0; w < static_cast<size_t>(width_); ++w) {
      std::vector<StreamId> streams;
      Links links;
      for (size_t r = 0; r < replicas_.factors.size(); ++r) {
        streams.push_back(rank(stage, r).communication[w]);
        links.add(rank(stage, r).links[w], Way::kBoth);
      }
      op = add(streams, seconds, {what, StepStream::kCollectives, stage, -1, pass});
      links.use(graph_, op, time);
      for (size_t r = 0; r < replicas_.factors.size(); ++r) ready(op, r);
    }
    return op;
  }

  void add_stage(int64_t stage) {
    const std::vector<PipelinePass> order = pipeline_order(step_.pipeline, stage);
    for (size_t r = 0; r < replicas_.factors.size(); ++r)
      rank(stage, r).last_completed.assign(load(stage).parts.size(), -1);
    for (const PipelinePass& pass : order) {
      const PartLoad& part = load(stage).parts[static_cast<size_t>(pass.chunk)];
      TILECAST_CHECK(part.units.empty() || !splits_backward(step_.pipeline.schedule));
      const bool last = pass.microbatch + 1 == step_.pipeline.microbatches;
      if (part.units.empty()) {
        add_pass(stage, pass, part, last);
      } else {
        add_gathered_pass(stage, pass, part);
      }
      if (last && pass.completes()) reduce_buckets(stage, pass, part);
      if (pass.kind != PassKind::kWeightGradients) send(stage, pass, part);
    }
  }

  void note_compute(int64_t stage, size_t r, const PipelinePass& pass, Op first, Op last) {
    Rank& at = rank(stage, r);
    at.last = last;
    if (pass.completes()) at.last_completed[static_cast<size_t>(pass.chunk)] = first;
    passed_[key(pass, stage, r)] = {first, last, -1};
  }

  /// A pass, or a share of its part's, on all ranks that work on it together.
  Op compute(int64_t stage, size_t r, const PipelinePass& pass, const PartLoad& part,
             double seconds, double share = 1) {
    const bool forward = pass.kind == PassKind::kForward;
    // Gradients of weights need no other rank of the stage.
    if (pass.kind == PassKind::kWeightGradients) share = 0;
    const double inner_s = forward ? part.forward_communication_s : part.backward_communication_s;
    const Op op = add(rank(stage, r).compute, slowed_s(seconds, share * inner_s, stage, r),
                      {.what = pass_name(pass.kind),
                       .stream = StepStream::kCompute,
                       .stage = stage,
                       .replica = static_cast<int64_t>(r),
                       .pass = pass,
                       .inner_communication_s = share * inner_s,
                       .work = forward ? StepWork::kForward : StepWork::kBackward});
    Transfer time = forward ? part.forward_transfer : part.backward_transfer;
    if (share == 0 || (time.node_s == 0 && time.network_s == 0)) return op;
    time.node_s *= share;
    time.network_s *= share;
    time.both_s *= share;
    Links links;
    links.add(rank(stage, r), Way::kBoth);
    links.use(graph_, op, time, EventGraph::Sends::kInTurns);
    return op;
  }

  void add_pass(int64_t stage, const PipelinePass& pass, const PartLoad& part, bool last) {
    const double seconds = part.pass_s(pass.kind, last);
    for (size_t r = 0; r < replicas_.factors.size(); ++r) {
      const Op op = compute(stage, r, pass, part, seconds);
      note_compute(stage, r, pass, op, op);
    }
  }

  /// Each unit's parameters are gathered while the unit before computes; at most two units are
  /// gathered ahead (PyTorch FSDP, limit_all_gathers).
  void add_gathered_pass(int64_t stage, const PipelinePass& pass, const PartLoad& part) {
    const size_t units = part.units.size(), replicas = replicas_.factors.size();
    std::vector<std::vector<Op>> gathers(units), computed(units, std::vector<Op>(replicas, -1));
    const auto unit_at = [&](size_t i) -> const GatheredUnit& {
      return part.units[pass.returns() ? units - 1 - i : i];
    };
    const auto seconds_of = [&](const GatheredUnit& unit) {
      return pass.returns() ? unit.backward_s : unit.forward_s;
    };
    double all_s = 0;
    for (const GatheredUnit& unit : part.units) all_s += seconds_of(unit);
    const auto gather = [&](size_t i) {
      const size_t first = graph_.op_count();
      collective(stage, unit_at(i).gather_s, unit_at(i).gather_transfer, "gather parameters", pass,
                 [&](Op op, size_t r) {
                   const Op before = i >= 2 ? computed[i - 2][r] : rank(stage, r).last;
                   if (before >= 0) graph_.after(op, before);
                 });
      for (size_t op = first; op < graph_.op_count(); ++op)
        gathers[i].push_back(static_cast<Op>(op));
    };
    gather(0);
    for (size_t i = 0; i < units; ++i) {
      if (i + 1 < units) gather(i + 1);
      const GatheredUnit& unit = unit_at(i);
      for (size_t r = 0; r < replicas; ++r) {
        const double seconds = seconds_of(unit);
        computed[i][r] = compute(stage, r, pass, part, seconds, all_s > 0 ? seconds / all_s : 0);
        for (const Op op : gathers[i]) graph_.after(computed[i][r], op);
      }
      if (pass.returns() && unit.reduce_s > 0)
        collective(stage, unit.reduce_s, unit.reduce_transfer, "reduce gradients", pass,
                   [&](Op op, size_t r) { graph_.after(op, computed[i][r]); });
    }
    for (size_t r = 0; r < replicas; ++r)
      note_compute(stage, r, pass, computed.front()[r], computed.back()[r]);
  }

  void reduce_buckets(int64_t stage, const PipelinePass& pass, const PartLoad& part) {
    const double pass_s = part.pass_s(pass.kind, true);
    const double inner_s =
        pass.kind == PassKind::kWeightGradients ? 0 : part.backward_communication_s;
    // Both passes go through the layers in the same order.
    const double shorter = part.last_backward_s > 0 ? pass_s / part.last_backward_s : 1;
    for (const GradientBucket& bucket : part.buckets) {
      const size_t first = graph_.op_count();
      collective(
          stage, bucket.reduce_s, bucket.transfer, "reduce gradients", pass, [&](Op op, size_t r) {
            const Op backward = rank(stage, r).last_completed[static_cast<size_t>(pass.chunk)];
            const double slowed = slowed_s(pass_s, inner_s, stage, r);
            const double longer = pass_s > 0 ? slowed / pass_s : 1;
            graph_.after_start(op, backward, bucket.ready_s * shorter * longer);
          });
      if (bucket.copy_out_s == 0) continue;
      BucketCopy& copy = copies_.emplace_back(BucketCopy{stage, bucket.copy_out_s, {}});
      for (size_t op = first; op < graph_.op_count(); ++op)
        copy.reductions.push_back(static_cast<Op>(op));
    }
  }

  Key key(const PipelinePass& pass, int64_t stage, size_t r) const {
    return {pass.kind, part_number(step_.pipeline, stage, pass.chunk), pass.microbatch, r};
  }

  void send(int64_t stage, const PipelinePass& pass, const PartLoad& part) {
    const PipelineShape& shape = step_.pipeline;
    const bool back = pass.returns();
    const int64_t number = part_number(shape, stage, pass.chunk);
    const int64_t to = back ? number - 1 : number + 1;
    if (to < 0 || to >= shape.parts()) return;
    const int64_t receiver = stage_of_part(shape, to);
    if (receiver == stage) return;
    const double seconds = back ? part.send_backward_s : part.send_forward_s;
    // Where parts go forth and back, one neighbour gets activations of one and gradients of the
    // other.
    const bool to_before = shape.schedule == PipelineSchedule::kZbV ? receiver < stage : back;
    for (size_t r = 0; r < replicas_.factors.size(); ++r) {
      const StreamId link = to_before ? rank(stage, r).backward_link : rank(stage, r).forward_link;
      // The receiver waits for it, so it counts there.
      const Op op = add({&link, 1}, seconds,
                        {back ? "receive gradients" : "receive activations",
                         to_before ? StepStream::kGradients : StepStream::kActivations, receiver,
                         static_cast<int64_t>(r), pass});
      const Transfer& time = back ? part.send_backward_transfer : part.send_forward_transfer;
      Links links;
      links.add(rank(stage, r), Way::kOut);
      links.add(rank(receiver, r), Way::kIn);
      links.use(graph_, op, time);
      Passed& passed = passed_[key(pass, stage, r)];
      graph_.after(op, passed.last);
      passed.sent = op;
    }
  }

  /// A pass waits for what the parts before and after it send.
  void connect_stages() {
    const int64_t last = step_.pipeline.parts() - 1;
    for (const auto& [key, passed] : passed_) {
      auto [kind, number, microbatch, r] = key;
      // Gradients of weights follow those of inputs on the same stream.
      if (kind == PassKind::kWeightGradients) continue;
      const int64_t from = kind == PassKind::kForward ? number - 1 : number + 1;
      if (from < 0) continue;
      // The last part's backward pass follows its own forward pass, on the same stream.
      if (from > last) continue;
      const Passed& before = passed_.at({kind, from, microbatch, r});
      graph_.after(passed.first, before.sent >= 0 ? before.sent : before.last);
    }
  }

  void finish() {
    const int64_t stages = step_.pipeline.stages;
    for (int64_t s = 0; s < stages; ++s) {
      if (load(s).reduce_rest_s > 0)
        collective(s, load(s).reduce_rest_s, load(s).reduce_rest_transfer, "reduce gradients", {},
                   [&](Op op, size_t r) { graph_.after(op, rank(s, r).last); });
    }
    if (step_.share_embeddings_s > 0) share_embeddings();
    for (const BucketCopy& copy : copies_) copy_out(copy);
    for (int64_t s = 0; s < stages; ++s) update(s);
  }

  /// From a reduced bucket back into the gradients.
  void copy_out(const BucketCopy& copy) {
    for (size_t r = 0; r < replicas_.factors.size(); ++r) {
      Rank& at = rank(copy.stage, r);
      at.last = add(at.compute, copy.seconds * factor(copy.stage, r),
                    {.what = "copy gradients",
                     .stream = StepStream::kCompute,
                     .stage = copy.stage,
                     .replica = static_cast<int64_t>(r),
                     .work = StepWork::kCopies});
      for (const Op op : copy.reductions) graph_.after(at.last, op);
    }
  }

  void share_embeddings() {
    const int64_t last = step_.pipeline.stages - 1;
    for (size_t r = 0; r < replicas_.factors.size(); ++r) {
      for (int64_t w = 0; w < width_; ++w) {
        const auto at = static_cast<size_t>(w);
        const StreamId both[] = {rank(0, r).communication[at], rank(last, r).communication[at]};
        const Op op = add(
            both, step_.share_embeddings_s,
            {"reduce embeddings", StepStream::kCollectives, 0, static_cast<int64_t>(r), {}, last});
        Links links;
        links.add(rank(0, r).links[at], Way::kBoth);
        links.add(rank(last, r).links[at], Way::kBoth);
        links.use(graph_, op, step_.share_embeddings_transfer);
        graph_.after(op, rank(0, r).last);
        graph_.after(op, rank(last, r).last);
      }
    }
  }

  /// The optimizer waits for all gradients: it follows what is on the communication stream.
  void update(int64_t stage) {
    const StageLoad& stage_load = load(stage);
    for (size_t r = 0; r < replicas_.factors.size(); ++r) {
      if (stage_load.optimizer_s == 0) continue;
      Rank& at = rank(stage, r);
      std::vector<StreamId> streams = at.compute;
      streams.insert(streams.end(), at.communication.begin(), at.communication.end());
      at.last = add(streams, stage_load.optimizer_s * factor(stage, r),
                    {.what = "optimizer",
                     .stream = StepStream::kCompute,
                     .stage = stage,
                     .replica = static_cast<int64_t>(r),
                     .work = StepWork::kOptimizer});
    }
    if (stage_load.gather_parameters_s > 0)
      collective(stage, stage_load.gather_parameters_s, stage_load.gather_parameters_transfer,
                 "gather parameters", {},
                 [&](Op op, size_t r) { graph_.after(op, rank(stage, r).last); });
  }

  const TrainingStep& step_;
  int64_t width_;
  EventGraph graph_;
  SimulatedReplicas replicas_;
  std::vector<Rank> ranks_;  ///< by stage and simulated replica
  std::map<Key, Passed> passed_;
  std::vector<BucketCopy> copies_;
  std::vector<StepLabel> labels_;  ///< by operation
};

}  // namespace

StepTimes simulate_step(const TrainingStep& step, Folding folding, Events events) {
  return StepSimulation(step, folding).run(events);
}

}  // namespace tilecast
