#include "scenario/parallel/parallel.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <optional>

#include "base/checked.h"
#include "base/file.h"
#include "scenario/generation/expert_precision.h"
#include "scenario/parallel/parallel_step.h"
#include "scenario/parallel/rank_memory.h"
#include "scenario/parallel/stage_power.h"
#include "scenario/pass/model_facts.h"
#include "scenario/warnings.h"
#include "tilecast/error.h"

namespace tilecast {
namespace {

/// The parts of the model on one rank of each stage, and the step that they make.
class ParallelStep {
 public:
  /// `modules`: the result of `rank_modules`.
  ParallelStep(const PassSetup& setup, const TimingSetup& timing, const ModelModules& modules)
      : setup_(setup),
        modules_(modules.graph),
        layout_(lay_out_ranks(setup.model, cluster_of(setup.device, setup.request), modules.layers,
                              setup.request)),
        costs_(layout_),
        timing_(timing) {
    timing_.price_collectives = [this](const Program& program, std::vector<KernelTime>& times) {
      costs_.price(program, times);
    };
    make_parts();
    step_ = training_step(parts_, setup_, layout_, costs_);
  }

  const RankLayout& layout() const { return layout_; }
  const CollectiveCosts& costs() const { return costs_; }
  const Graph& modules() const { return modules_; }
  const TrainingStep& step() const { return step_; }
  /// The parts of a stage.
  std::vector<const ModelPart*> parts_of(int64_t stage) const {
    std::vector<const ModelPart*> parts;
    for (int64_t c = 0; c < layout_.pipeline.chunks; ++c)
      parts.push_back(parts_[static_cast<size_t>(part_number(layout_.pipeline, stage, c))]);
    return parts;
  }
  const std::vector<const ModelPart*>& parts() const { return parts_; }

 private:
  /// Parts with the same numbers of the same layers are alike.
  void make_parts() {
    std::map<std::vector<int64_t>, const ModelPart*> known;
    for (const LayerRange& layers : layout_.parts) {
      const ModelPart*& part = known[segment_runs(modules_, layers)];
      if (part == nullptr) {
        owned_.push_back(std::make_unique<ModelPart>(
            make_part({setup_, layout_, modules_}, layers, timing_, costs_)));
        part = owned_.back().get();
      }
      parts_.push_back(part);
    }
  }

  const PassSetup& setup_;
  const Graph& modules_;
  RankLayout layout_;
  CollectiveCosts costs_;
  TimingSetup timing_;
  std::vector<std::unique_ptr<ModelPart>> owned_;
  std::vector<const ModelPart*> parts_;  ///< by their number in the model
  TrainingStep step_;
};

/// The step with what runs on the GPUs, or what they exchange, at an end of its 80 % interval.
/// `end`: -1 the lower one, 1 the upper one.
TrainingStep with_kernels_at(const ParallelStep& parallel, int end) {
  TrainingStep step = parallel.step();
  for (int64_t s = 0; s < step.pipeline.stages; ++s) {
    StageLoad& stage = step.stages[static_cast<size_t>(s)];
    const std::vector<const ModelPart*> parts = parallel.parts_of(s);
    double seconds = 0, at_end_s = 0;
    for (size_t c = 0; c < parts.size(); ++c) {
      const Totals& totals = parts[c]->pass.totals;
      const double end_s = end < 0 ? totals.seconds.low : totals.seconds.high;
      seconds += totals.seconds;
      at_end_s += end_s;
      scale_kernels(stage.parts[c], totals.seconds > 0 ? end_s / totals.seconds : 1);
    }
    stage.optimizer_s *= seconds > 0 ? at_end_s / seconds : 1;
  }
  return step;
}

/// The end of an interval that an independent error joins, both as logarithms. `side`: -1 the lower
/// end, 1 the upper one, which may both be the value itself.
double widened(double value, double end, int side, double error_log) {
  const double both = std::hypot(std::log(end / value), error_log);
  return value * std::exp(side * both);
}

/// The 80 % interval: the step is simulated with the kernels (and the collectives among them) at
/// both ends of their intervals, then with all other exchanges at theirs, so that bubbles and what
/// is hidden follow. The errors of both are taken as independent.
///
/// Runs of several ranks may be slower beside that: their software departs from the schedule. All
/// that is about the mean run; single runs differ from it as their nodes and days do.
std::optional<IntervalParts> add_interval(Forecast& f, const ParallelStep& step,
                                          const IntervalConstants& constants) {
  const auto seconds = [](const TrainingStep& s) {
    return simulate_step(s, Folding::kSymmetric).seconds;
  };
  const auto deviation = [&](int end) {
    const double kernels = seconds(with_kernels_at(step, end)) - f.latency_s;
    const double exchanges = seconds(with_exchanges_at(step.step(), end)) - f.latency_s;
    return std::hypot(kernels, exchanges);
  };
  Interval mean{.value = f.latency_s.value,
                .low = std::max(0.0, f.latency_s - deviation(-1)),
                .high = f.latency_s + deviation(1)};
  const bool several = step.layout().ranks() > 1 && mean > 0;
  if (several) mean.high = widened(mean, mean.high, 1, constants.step_high_log);
  f.latency_s = mean;
  if (!several) return std::nullopt;
  if (mean.low > 0) f.latency_s.low = widened(mean, mean.low, -1, constants.step_machine_log);
  f.latency_s.high = widened(mean, mean.high, 1, constants.step_machine_log);
  return IntervalParts{.model_low_s = mean.low,
                       .model_high_s = mean.high,
                       .machine_spread_ratio = std::expm1(constants.step_machine_log)};
}

struct Work {
  int64_t flops = 0, model_flops = 0, bytes = 0;
  void add(int64_t kernel_flops, int64_t recomputed, int64_t kernel_bytes, int64_t count) {
    flops = checked_add(flops, checked_multiply(kernel_flops, count));
    model_flops = checked_add(model_flops, checked_multiply(kernel_flops - recomputed, count));
    bytes = checked_add(bytes, checked_multiply(kernel_bytes, count));
  }
};

/// How often a launch of a phase runs in a step, in parts that are used `uses` times.
int64_t runs_of(Phase phase, int64_t uses, const ParallelStep& step) {
  return phase == Phase::kOptimizer ? uses
                                    : checked_multiply(uses, step.layout().pipeline.microbatches);
}

/// The distinct parts of the model in order, and how often each is used.
std::vector<std::pair<const ModelPart*, int64_t>> uses_of(const ParallelStep& step) {
  std::vector<std::pair<const ModelPart*, int64_t>> uses;
  for (const ModelPart* part : step.parts()) {
    const auto known =
        std::find_if(uses.begin(), uses.end(), [&](const auto& use) { return use.first == part; });
    if (known == uses.end()) {
      uses.emplace_back(part, 1);
    } else {
      ++known->second;
    }
  }
  return uses;
}

/// Adds the work of a part whose experts all get as many tokens: the mean rank's, whatever the skew
/// (experts without a token aside).
void add_even_work(Work& work, const ParallelStep& step, const ModelPart& part, int64_t uses,
                   const PassSetup& setup) {
  Request request = setup.request;
  request.execution.skew_percent = 0;
  const auto number = static_cast<size_t>(
      std::find(step.parts().begin(), step.parts().end(), &part) - step.parts().begin());
  const PassSetup even{setup.model, setup.device, request, setup.precision};
  const Graph graph =
      part_graph({even, step.layout(), step.modules()}, step.layout().parts[number]);
  const Program program = lower(graph);
  for (const Launch& launch : program.launches) {
    const Kernel& kernel = program.kernels[launch.kernel];
    const int64_t runs = runs_of(launch.node->phase, uses, step);
    work.add(kernel.flops, recomputed_flops(*launch.node, kernel), kernel.bytes(),
             checked_multiply(program.count(launch), runs));
  }
}

/// Rows: of one rank of each stage, where experts have a skew of the busiest. Work: of the mean
/// rank, since that of all ranks of a large run exceeds 64 bits.
void add_rows(Forecast& f, const ParallelStep& step, const PassSetup& setup) {
  const auto names = std::make_shared<TextArena>();
  f.names = names;
  const bool skewed = setup.request.execution.skew_percent.value_or(0) > 0;
  Work work;
  for (const auto& [part, uses] : uses_of(step)) {
    const TimedPass& pass = part->pass;
    if (skewed) add_even_work(work, step, *part, uses, setup);
    for (KernelForecast& row : describe_events(pass.timeline, pass.program(), pass.times, *names)) {
      const bool once = row.phase == phase_name(Phase::kOptimizer);
      const Phase phase = once ? Phase::kOptimizer : Phase::kForward;
      row.count = checked_multiply(row.count, runs_of(phase, uses, step));
      f.kernels_s += row.latency_s * static_cast<double>(row.count);
      if (!skewed) work.add(row.flops, row.recomputed_flops, row.bytes, row.count);
      f.kernels.push_back(std::move(row));
    }
  }
  f.flops = work.flops / step.layout().pp;
  f.model_flops = work.model_flops / step.layout().pp;
  f.bytes = work.bytes / step.layout().pp;
}

StageForecast describe_stage(const ParallelStep& step, int64_t stage, const StageTimes& times,
                             const Memory& memory) {
  StageForecast f{.stage = stage,
                  .compute_s = times.compute_s,
                  .communication_s = times.communication_s,
                  .exposed_communication_s = times.exposed_communication_s,
                  .bubble_s = times.bubble_s,
                  .memory = memory};
  const RankLayout& layout = step.layout();
  for (int64_t c = 0; c < layout.pipeline.chunks; ++c)
    f.layers += layout.parts[static_cast<size_t>(part_number(layout.pipeline, stage, c))].count;
  for (const ModelPart* part : step.parts_of(stage)) {
    f.forward_s += part->load.forward_s;
    f.backward_s += part->load.backward_s;
    f.optimizer_s += part->optimizer_s;
    f.gradient_copies_s += part->copies_s;
    f.slowed_s += part->slowed_s;
  }
  return f;
}

/// The parts of the step, as the slowest stage has them. Time that slow ranks add to its copies
/// stays with the backward pass.
void add_parts(Forecast& f, ParallelForecast& p, const StageTimes& times) {
  const StageForecast& stage = p.stages[static_cast<size_t>(p.slowest_stage)];
  p.communication_s = times.communication_s;
  p.exposed_communication_s = times.exposed_communication_s;
  p.bubble_s = times.bubble_s;
  p.gradient_copies_s = stage.gradient_copies_s;
  p.slowed_s = stage.slowed_s;
  f.forward_s = times.forward_s;
  f.optimizer_s = times.optimizer_s;
  f.backward_s = times.compute_s - f.forward_s - f.optimizer_s - p.gradient_copies_s - p.slowed_s;
}

void add_stages(Forecast& f, const ParallelStep& step, const StepTimes& times,
                const PassSetup& setup) {
  ParallelForecast p;
  const RankLayout& layout = step.layout();
  p.cluster = layout.cluster.id;
  p.cluster_name = layout.cluster.name;
  p.nodes = layout.cluster.nodes;
  p.ranks = layout.ranks();
  p.micro_batch_size = layout.micro_batch;
  p.microbatches = layout.pipeline.microbatches;
  p.virtual_stages = layout.pipeline.chunks;
  p.simulated_ranks = times.simulated_replicas * layout.pp;
  for (int64_t s = 0; s < layout.pp; ++s) {
    const StageTimes& stage = times.stages[static_cast<size_t>(s)];
    const PassMemory memory = rank_memory(step.parts_of(s), s, setup, layout);
    if (s == 0 || memory.peak_bytes > f.memory.peak_bytes) f.memory = memory;
    p.stages.push_back(describe_stage(step, s, stage, memory));
    const auto slowest = static_cast<size_t>(p.slowest_stage);
    if (stage.compute_s > times.stages[slowest].compute_s) p.slowest_stage = s;
  }
  add_parts(f, p, times.stages[static_cast<size_t>(p.slowest_stage)]);
  f.parallel = std::move(p);
}

/// The time of a step in which a rank of the stage waits for its host.
double host_wait_s(const ParallelStep& step, int64_t stage) {
  double wait_s = 0;
  for (const ModelPart* part : step.parts_of(stage)) {
    double passes_s = part->load.forward_s + part->load.backward_s, optimizer_s = part->optimizer_s;
    for (const Event& event : part->pass.timeline.events) {
      const bool once =
          part->pass.program().launches[event.launch].node->phase == Phase::kOptimizer;
      (once ? optimizer_s : passes_s) -= event.duration_s * static_cast<double>(event.count);
    }
    wait_s += static_cast<double>(step.layout().pipeline.microbatches) * std::max(0.0, passes_s) +
              std::max(0.0, optimizer_s) + std::max(0.0, part->copies_s - part->copy_kernels_s);
  }
  return wait_s;
}

/// The mean of the stages: one of them may exchange little.
double mean_exposed_s(const ParallelForecast& p) {
  double sum = 0;
  for (const StageForecast& stage : p.stages) sum += stage.exposed_communication_s;
  return sum / static_cast<double>(p.stages.size());
}

/// Warnings as on one GPU, of all parts by their time, and warnings of the links.
void add_warnings(Forecast& f, const ParallelStep& step, const PassSetup& setup,
                  const TimingSetup& timing) {
  std::vector<CountedTimeline> timelines;
  std::optional<Warning> experts;
  for (const auto& [part, count] : uses_of(step)) {
    const TimedPass& pass = part->pass;
    timelines.push_back(
        {pass.timeline, pass.program(), runs_of(Phase::kForward, count, step), count});
    std::optional<Warning> slower =
        slower_experts("", pass.graph(), pass.program(), pass.times, timing.predictor, setup.device,
                       timing.conditions);
    if (slower && (!experts || slower->share > experts->share)) experts = std::move(slower);
  }
  std::vector<Warning>& warnings = f.warnings;
  add_messages(warnings, WarningCode::kModelFile, setup.model.name, unmapped_operators(timelines));
  add_warning(warnings, unmeasured_operators(timelines));
  add_warning(warnings, std::move(experts));
  add_warning(warnings, extrapolation_warning("", f.kernels));
  add_warning(warnings, no_model_warning("", f.kernels));
  add_warning(warnings, host_wait_warning("", f.host_wait_s, f.latency_s));
  const LinkOrigins links{
      .unmeasured = step.costs().extrapolated(),
      .one_server = step.costs().over_pcie() && !is_path(setup.request.parallel.cluster)};
  const double share = f.latency_s > 0 ? mean_exposed_s(*f.parallel) / f.latency_s : 0;
  for (Warning& warning : link_warnings(step.layout().cluster, step.layout().ranks(), links, share))
    warnings.push_back(std::move(warning));
}

std::string_view stream_name(StepStream stream) {
  switch (stream) {
    case StepStream::kCompute:
      return "compute";
    case StepStream::kCollectives:
      return "collectives";
    case StepStream::kActivations:
      return "activations received";
    case StepStream::kGradients:
      return "gradients received";
  }
  return "";
}

}  // namespace

void forecast_parallel(Forecast& f, const PassSetup& setup, const TimingSetup& timing) {
  const ModelModules modules = rank_modules(setup, rank_share(setup.model, setup.request));
  describe_modules(f, modules.graph, setup);
  f.parameters = modules.parameters;
  const ParallelStep step(setup, timing, modules);
  const StepTimes times = simulate_step(step.step(), Folding::kSymmetric);
  f.latency_s.value = times.seconds;
  const auto parts = add_interval(f, step, timing.predictor.laws().intervals);
  add_rows(f, step, setup);
  add_stages(f, step, times, setup);
  f.parallel->interval_parts = parts;
  if (modules.vocabulary) {
    f.parallel->vocab_size = modules.vocabulary->rows;
    f.parallel->padded_vocab_size = modules.vocabulary->padded;
  }
  for (int64_t s = 0; s < step.layout().pp; ++s)
    f.host_wait_s = std::max(f.host_wait_s, host_wait_s(step, s));
  add_warnings(f, step, setup, timing);
}

std::vector<StepOperation> parallel_operations(const PassSetup& setup, const TimingSetup& timing) {
  const ModelModules modules = rank_modules(setup, rank_share(setup.model, setup.request));
  const ParallelStep step(setup, timing, modules);
  const RankLayout& layout = step.layout();
  const std::vector<StageWatts> watts = stage_watts(step.parts(), layout.pipeline, timing.power());
  std::vector<StepOperation> operations;
  for (StepEvent& event : simulate_step(step.step(), Folding::kSymmetric, Events::kAll).events) {
    std::optional<double> power_w, idle_w;
    if (!watts.empty() && event.stream == StepStream::kCompute) {
      const StageWatts& of_stage = watts[static_cast<size_t>(event.stage)];
      power_w = of_stage.of(event.name);
      if (power_w) idle_w = of_stage.idle_w;
    }
    operations.push_back({.name = std::move(event.name),
                          .stream = std::string(stream_name(event.stream)),
                          .communication = event.stream != StepStream::kCompute,
                          .rank = (event.stage * layout.dp + event.replica) * layout.width(),
                          .start_s = event.start_s,
                          .duration_s = event.duration_s,
                          .critical = event.critical,
                          .power_w = power_w,
                          .idle_w = idle_w});
  }
  return operations;
}

}  // namespace tilecast
