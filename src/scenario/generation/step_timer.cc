#include "scenario/generation/step_timer.h"

#include <algorithm>
#include <span>

#include "devices/vendor.h"
#include "scenario/generation/served_adapters.h"
#include "scenario/hidden_latency.h"

namespace tilecast {
namespace {

/// Whether a step writes tokens only: a draft's at most.
bool decodes(const ServedModel& served, const std::vector<StepGroup>& groups) {
  const int64_t most = 1 + served.asked.deployment.speculation.tokens;
  return std::all_of(groups.begin(), groups.end(),
                     [&](const StepGroup& g) { return g.past > 0 && g.tokens <= most; });
}

/// The energies of kernels, and their times at the clock that the board holds.
void add_step_power(const ServedModel& served, const Program& program,
                    std::span<const double> counts, std::vector<KernelTime>& times) {
  const PowerTerms power = served.power();
  const std::optional<BoardPower> board = power.board();
  if (!board) return;
  add_energies(*board, program.kernels, served.conditions(), power.clock_share(), times);
  if (power.holds()) hold_power(*board, {program.kernels, counts}, times);
}

/// The times of the kernels of a step of the model. Collectives take the time of the plan's groups;
/// with tensor parallelism alone, of GPUs joined as on a node.
/// `counts`: how often each kernel runs.
std::vector<KernelTime> kernel_times(const ServedModel& served, const Graph& graph,
                                     const Program& program, std::span<const double> counts,
                                     bool decode) {
  std::vector<KernelTime> times(program.kernels.size());
  const Conditions conditions = served.conditions();
  served.predictor().predict(program.kernels, served.device, conditions, times);
  const RankLayout& plan = served.plan;
  const bool has_groups = !served.asked.parallel.cluster.empty() || plan.dp > 1 || plan.pp > 1;
  if (has_groups)
    price_collectives(plan, graph, program,
                      decode ? ExpertKernels::kLowLatency : ExpertKernels::kNormal,
                      conditions.software, times);
  add_step_power(served, program, counts, times);
  return times;
}

std::vector<bool> hidden_in(const ServedModel& served, const Program& program) {
  return served.asked.execution.predictor == PredictorKind::kLearned
             ? hidden_kernels(program, served.plan, served.device, served.conditions().software)
             : std::vector<bool>(program.kernels.size(), false);
}

/// `host_launch_s`: for each kernel; 0: the step is a graph.
void run_step(TimedStep& s, double host_launch_s) {
  s.timeline = run_program(s.program, s.times, host_launch_s);
  s.totals = totals_of(s.timeline, s.program.kernel_counts(), s.times);
}

void add_seconds(Totals& totals, double more_s) {
  Interval& seconds = totals.seconds;
  seconds = {seconds.value + more_s, seconds.low + more_s, seconds.high + more_s};
}

/// `adapters` as in step_graph.
TimedStep time_share(const ServedModel& served, const ServedStage& layers,
                     std::vector<StepGroup> groups, StepLaunch launch, int64_t adapters) {
  const bool decode = decodes(served, groups);
  double tokens = 0;
  for (const StepGroup& group : groups)
    tokens += static_cast<double>(group.sequences) * static_cast<double>(group.tokens);
  TimedStep s;
  s.graph = step_graph(served, layers, std::move(groups), adapters);
  s.program = lower(s.graph);
  s.times = kernel_times(served, s.graph, s.program, s.program.kernel_counts(), decode);
  const std::vector<bool> hides = hidden_in(served, s.program);
  for (size_t i = 0; i < hides.size(); ++i) {
    if (hides[i]) hide_latency(s.program.kernels[i], served.device, s.times[i]);
  }
  const StepLaunches launches = count_launches(s.program);
  if (launch == StepLaunch::kCudaGraph) {
    run_step(s, 0);
    add_seconds(s.totals, graph_launches_s(served, launches.all));
  } else {
    run_step(s, launching_s(served, launches, tokens, false) / std::max(1.0, launches.all));
  }
  return s;
}

}  // namespace

StepLaunches count_launches(const Program& program) {
  StepLaunches counts;
  bool in_attention = false;
  for (const Launch& launch : program.launches) {
    const auto count = static_cast<double>(program.count(launch));
    const bool is_attention = launch.node->role == Role::kGroup;
    counts.all += count;
    if (is_attention) counts.pieces += count;
    // Each call ends a graph, and another one follows.
    if (is_attention && !in_attention) {
      counts.pieces += count;
      counts.attention += count;
    }
    in_attention = is_attention;
  }
  return counts;
}

double launching_s(const ServedModel& served, const StepLaunches& launches, double tokens,
                   bool mixed) {
  const Execution& e = served.asked.execution;
  const ServerDefaults& server = software_def(served.conditions().software).server;
  const CudaGraphMode mode = e.cudagraph_mode.value_or(
      server.captures_pieces ? CudaGraphMode::kFullAndPiecewise : CudaGraphMode::kFullDecodeOnly);
  const auto captured =
      static_cast<double>(e.max_cudagraph_capture_size.value_or(server.captured_tokens));
  const bool pieces =
      e.cuda_graphs && mode == CudaGraphMode::kFullAndPiecewise && tokens <= captured;
  const double kernels =
      (pieces ? launches.pieces : launches.all) + (mixed ? launches.attention : 0);
  return kernels * *e.host_launch_s;
}

TimedStep time_step(const ServedModel& served, std::vector<StepGroup> groups, StepLaunch launch,
                    size_t stage, std::optional<int64_t> adapters) {
  int64_t sequences = 0;
  for (const StepGroup& group : groups) sequences += group.sequences;
  const ServedStage& layers = served.stages[stage];
  TimedStep s = time_share(served, layers, std::move(groups), launch,
                           adapters ? *adapters : most_adapters(served.asked, sequences));
  if (!layers.layers.has_end) {
    s.send_s = send_s(served.plan, s.graph, layers.links, served.conditions().software);
    add_seconds(s.totals, s.send_s);
  }
  add_seconds(s.totals, step_overhead_s(served, stage, static_cast<double>(sequences)));
  return s;
}

TimedStep time_layers(const ServedModel& served, const ServedStage& layers,
                      std::vector<StepGroup> groups) {
  return time_share(served, layers, std::move(groups), StepLaunch::kCudaGraph, 0);
}

TimedStep time_graph(const ServedModel& served, Graph graph, StepLaunch launch) {
  TimedStep s;
  s.graph = std::move(graph);
  s.program = lower(s.graph);
  s.times.resize(s.program.kernels.size());
  served.predictor().predict(s.program.kernels, served.device, served.conditions(), s.times);
  add_step_power(served, s.program, s.program.kernel_counts(), s.times);
  run_step(s, launch == StepLaunch::kHost ? *served.asked.execution.host_launch_s : 0);
  return s;
}

TimedStep time_tower(const ServedModel& served, const TowerSteps& tower, int64_t images) {
  return time_graph(served, tower.graph(images), StepLaunch::kHost);
}

StepKernels step_kernels(const ServedModel& served, std::vector<StepGroup> groups, size_t stage,
                         std::optional<int64_t> adapters) {
  StepKernels step{.graph = step_graph(served, std::move(groups), stage, adapters), .program = {}};
  step.program = lower(step.graph);
  return step;
}

double kernel_seconds(const ServedModel& served, const StepKernels& step,
                      const KernelSelection& selection) {
  const Program& program = step.program;
  std::vector<double> counts(program.kernels.size(), 0);
  for (const Launch& launch : program.launches) {
    if (selection.wanted(launch))
      counts[launch.kernel] += static_cast<double>(program.count(launch));
  }
  // Only the kernels that are wanted, with their launches.
  std::vector<size_t> now(counts.size(), 0);
  std::vector<double> wanted_counts;
  Program wanted;
  for (size_t i = 0; i < counts.size(); ++i) {
    if (counts[i] == 0) continue;
    now[i] = wanted.kernels.size();
    wanted.kernels.push_back(program.kernels[i]);
    wanted_counts.push_back(counts[i]);
  }
  for (Launch launch : program.launches) {
    if (counts[launch.kernel] == 0) continue;
    launch.kernel = now[launch.kernel];
    wanted.launches.push_back(launch);
  }
  std::vector<KernelTime> times =
      kernel_times(served, step.graph, wanted, wanted_counts, selection.decode);
  const std::vector<bool> hides = hidden_in(served, program);
  double seconds = 0;
  for (size_t i = 0; i < counts.size(); ++i) {
    if (counts[i] == 0) continue;
    KernelTime& time = times[now[i]];
    if (hides[i]) hide_latency(program.kernels[i], served.device, time);
    seconds += counts[i] * time.seconds;
  }
  return seconds;
}

double step_overhead_s(const ServedModel& served, size_t stage, double sequences) {
  if (!served.stages[stage].layers.has_end) return 0;
  const Execution& e = served.asked.execution;
  return e.step_overhead_s.value_or(0) + sequences * e.sequence_overhead_s.value_or(0);
}

double graph_launches_s(const ServedModel& served, double kernels) {
  const Gpu* gpu = served.device.as_gpu();
  if (gpu == nullptr || !is_amd(gpu->architecture)) return 0;
  return kernels * host_costs(served.asked.execution).hip_graph_launch_s;
}

double send_seconds(const ServedModel& served, int64_t tokens, size_t stage) {
  if (served.stages[stage].layers.has_end) return 0;
  return send_s(served.plan, step_graph(served, {{1, tokens, 1}}, stage),
                served.stages[stage].links, served.conditions().software);
}

}  // namespace tilecast
