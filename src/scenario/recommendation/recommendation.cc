#include "scenario/recommendation/recommendation.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "base/checked.h"
#include "base/file.h"
#include "collectives/paths.h"
#include "placement/costs.h"
#include "placement/search.h"
#include "scenario/memory_total.h"
#include "scenario/parallel/rank_layout.h"
#include "scenario/pass/model_facts.h"
#include "scenario/recommendation/table_kernels.h"
#include "scenario/timing.h"
#include "scenario/warnings.h"
#include "sim/gradient_times.h"
#include "sim/recommendation_step.h"
#include "tilecast/error.h"

namespace tilecast {
namespace {

void check_degrees(const Request& request) {
  const Execution& e = request.execution;
  const Parallel& p = request.parallel;
  const std::pair<const char*, bool> refused[] = {
      {"tp", e.tp != 1},
      {"pp", e.pp != 1},
      {"cp", p.cp != 1},
      {"ep", p.ep != 1},
      {"microbatches", e.microbatches != 1},
      {"micro-batch-size", p.micro_batch_size.has_value()},
      {"zero", p.zero != Zero::kNone},
      {"main-params-dtype", p.has_fp32_copies()},
      {"slow-ranks", !p.slow_ranks.empty()}};
  for (const auto& [name, given] : refused) {
    if (given)
      throw Error(ErrorKind::kUnsupported,
                  fmt::format("`{}`: recommendation models are divided by `dp` only: ranks have "
                              "different tables and share the batch",
                              name));
  }
}

/// The MLPs and the interaction on one rank, with the sums of the tables as an input.
TimedPass dense_pass(const PassSetup& setup, const RankLayout& plan, const TimingSetup& timing) {
  Request share = setup.request;
  share.batch = plan.micro_batch;
  Graph graph = setup.model.recommendation->build_dense(graph_request(share, setup.precision));
  graph.name = setup.model.name;
  graph = complete_graph(std::move(graph), setup.model, share, setup.precision);
  return time_pass(std::make_shared<const PassWork>(
                       std::move(graph), LifetimeOptions{.zero_grad = setup.request.zero_grad}),
                   timing);
}

class RecommendationPass {
 public:
  RecommendationPass(const PassSetup& setup, const TimingSetup& timing, int64_t layers)
      : setup_(setup),
        timing_(timing),
        plan_(lay_out_ranks(setup.model, cluster_of(setup.device, setup.request), layers,
                            setup.request)),
        dense_(dense_pass(setup, plan_, timing)),
        memory_(forecast_memory(dense_.graph(), dense_.work->memory, setup)),
        placing_{.tables = setup.model.recommendation->tables,
                 .cluster = plan_.cluster,
                 .ranks = plan_.ranks(),
                 .batch = setup.request.batch,
                 .dtype = setup.precision.autocast ? DType::kFp32 : setup.precision.dtype,
                 .mode = setup.request.mode} {
    placing_.bytes_per_rank = std::max<int64_t>(
        0, visible_bytes(setup.device) - memory_.peak_bytes - mean_buffer_bytes());
    problem_ = placement_problem(placing_);
    placement_ = search_placement(problem_);
    loads_ = rank_loads(problem_, placement_);
    for (size_t r = 0; r < loads_.size(); ++r)
      tables_.push_back(table_kernels(placing_, problem_, placement_, r, timing));
  }

  void fill(Forecast& f) {
    const RecommendationTimes times = simulate_recommendation(step());
    f.latency_s.value = times.seconds;
    f.forward_s = times.forward_s;
    f.backward_s = times.backward_s;
    f.optimizer_s = times.optimizer_s;
    f.host_wait_s = dense_.totals.host_wait_s;
    add_rows(f);
    add_interval(f);
    add_memory(f);
    add_parallel(f, times);
  }

  LinkOrigins links() const {
    return {.unmeasured = links_extrapolated_,
            .one_server = uses_pcie(plan_.data_group(), plan_.cluster) &&
                          !is_path(setup_.request.parallel.cluster)};
  }
  /// The rows are of one rank, so are these.
  void warn(Forecast& f) const {
    std::vector<Warning>& warnings = f.warnings;
    add_warning(warnings, unmeasured_operators({{dense_.timeline, dense_.program()}}));
    add_warning(warnings, extrapolation_warning("", f.kernels));
    add_warning(warnings, no_model_warning("", f.kernels));
    add_warning(warnings, host_wait_warning("", f.host_wait_s, f.latency_s));
    const double share = f.latency_s > 0 ? f.parallel->exposed_communication_s / f.latency_s : 0;
    for (Warning& warning : link_warnings(plan_.cluster, plan_.ranks(), links(), share))
      warnings.push_back(std::move(warning));
  }

 private:
  /// Ids, sums that are sent, and in training their gradients: of the mean rank.
  int64_t mean_buffer_bytes() const {
    double columns = 0, lookups = 0;
    for (const EmbeddingTable& table : placing_.tables.tables) {
      columns += static_cast<double>(table.dim);
      lookups += static_cast<double>(lookups_of(table, placing_.batch));
    }
    return buffer_bytes(columns, lookups) / placing_.ranks;
  }

  /// FBGEMM sorts ids with the bag of each into copies of both.
  int64_t buffer_bytes(double columns, double lookups) const {
    const bool trains = placing_.mode == Mode::kTraining;
    constexpr double kIdBytes = 8;
    const double sorted_bytes = trains ? 2 * (8 + 4) : 0;
    const double sums = (trains ? 2 : 1) * columns * static_cast<double>(placing_.batch) *
                        static_cast<double>(dtype_bits(placing_.dtype)) / 8;
    return static_cast<int64_t>(sums + lookups * (kIdBytes + sorted_bytes));
  }

  RecommendationStep step() {
    RecommendationStep step;
    double columns = 0;
    for (size_t r = 0; r < tables_.size(); ++r) {
      step.tables_forward_s.push_back(tables_[r].forward_s);
      step.tables_backward_s.push_back(tables_[r].backward_s);
      columns = std::max(columns, loads_[r].columns);
    }
    step.exchange_s = exchange_s(placing_, columns);
    if (placing_.mode == Mode::kInference) {
      split_dense(step);
      return step;
    }
    step.exchange_gradients_s = step.exchange_s;
    step.exchange_ids_s = ids_s();
    step.reduce_tables_s = cost_of(problem_, placement_).reduce_s;
    split_dense(step);
    add_buckets(step);
    return step;
  }

  /// The ids of the rank that gets most, as lookups of its parts of tables. Ids of replicated
  /// tables stay with their samples.
  double ids_s() const {
    std::vector<RankLoad> sent(loads_.size());
    for (size_t t = 0; t < placement_.size(); ++t) {
      const ShardChoice& choice = problem_.tables[t].choices[placement_[t].choice];
      if (choice.way == ShardWay::kReplicated) continue;
      for (const int32_t rank : placement_[t].ranks)
        sent[static_cast<size_t>(rank)].add(choice.part);
    }
    double seconds = 0;
    for (const RankLoad& load : sent)
      seconds = std::max(seconds, exchange_ids_s(placing_, load.lookups, load.parts));
    return seconds;
  }

  /// The bottom MLP and the rest.
  void split_dense(RecommendationStep& step) const {
    const Program& program = dense_.program();
    for (const Event& event : dense_.timeline.events) {
      const Node& node = *program.launches[event.launch].node;
      const double seconds =
          std::max(event.duration_s, timing_.host_launch_s()) * static_cast<double>(event.count);
      const bool bottom = node.role == Role::kBottomMlp;
      if (node.phase == Phase::kForward)
        (bottom ? step.bottom_forward_s : step.top_forward_s) += seconds;
      if (node.phase == Phase::kBackward)
        (bottom ? step.bottom_backward_s : step.top_backward_s) += seconds;
    }
    step.optimizer_s = dense_.timeline.phase_s(Phase::kOptimizer);
  }

  void add_buckets(RecommendationStep& step) {
    if (plan_.ranks() == 1) return;
    constexpr double kFirstBucket = 1 << 20;  // PyTorch's kDefaultFirstBucketBytes
    std::vector<double> seconds;
    for (const KernelTime& time : dense_.times) seconds.push_back(time.seconds);
    const std::vector<ReadyGradient> gradients =
        run_last_pass(dense_.graph(), dense_.program(), seconds, timing_.host_launch_s()).gradients;
    const Parallel& p = setup_.request.parallel;
    const double end = step.top_backward_s + step.bottom_backward_s;
    int64_t open = 0;
    for (size_t i = 0; i < gradients.size(); ++i) {
      open = checked_add(open, gradients[i].bytes);
      const double limit =
          step.buckets.empty() ? std::min(kFirstBucket, p.bucket_bytes) : p.bucket_bytes;
      const bool last = i + 1 == gradients.size();
      if (!last && (static_cast<double>(open) < limit || !p.overlap_grad_reduce)) continue;
      const CollectiveTime time = collective_time(CollectiveKind::kAllReduce, open, placing_.dtype,
                                                  plan_.data_group(), plan_.cluster);
      links_extrapolated_ = links_extrapolated_ || time.extrapolated;
      step.buckets.push_back(
          {p.overlap_grad_reduce ? std::min(gradients[i].ready_s, end) : end, time.seconds});
      open = 0;
    }
  }

  /// The rank whose tables take longest.
  size_t slowest() const {
    size_t most = 0;
    for (size_t r = 1; r < tables_.size(); ++r) {
      if (tables_[r].forward_s + tables_[r].backward_s >
          tables_[most].forward_s + tables_[most].backward_s)
        most = r;
    }
    return most;
  }

  void add_rows(Forecast& f) const {
    const auto names = std::make_shared<TextArena>();
    f.names = names;
    f.kernels = describe_events(dense_.timeline, dense_.program(), dense_.times, *names);
    const TableKernels& tables = tables_[slowest()];
    for (size_t i = 0; i < tables.kernels.size(); ++i) {
      KernelForecast row = describe(tables.kernels[i], tables.times[i]);
      row.name = names->add("embeddings");
      row.phase = phase_name(i == 0 ? Phase::kForward : Phase::kBackward);
      f.kernels.push_back(row);
    }
    add_sums(f);
    f.model_flops = f.flops;
  }

  /// That of the kernels of the slowest rank, as a share of their time.
  void add_interval(Forecast& f) const {
    const TableKernels& tables = tables_[slowest()];
    auto [seconds, low, high] = dense_.totals.seconds;
    for (const KernelTime& time : tables.times) {
      seconds += time.seconds;
      low += time.low_s;
      high += time.high_s;
    }
    if (seconds <= 0) return;
    f.latency_s.low = f.latency_s * low / seconds;
    f.latency_s.high = f.latency_s * high / seconds;
  }

  void add_memory(Forecast& f) const {
    f.memory = memory_;
    int64_t most = -1;
    for (size_t r = 0; r < loads_.size(); ++r) {
      const int64_t buffers = buffer_bytes(loads_[r].columns, loads_[r].lookups);
      const int64_t bytes = checked_add(loads_[r].bytes, buffers);
      if (bytes <= most) continue;
      most = bytes;
      const int64_t states = state_bytes(r);
      f.memory = memory_;
      PassMemory& m = f.memory;
      m.weights_bytes += loads_[r].bytes - states;
      m.optimizer_bytes += states;
      m.activations_bytes += buffers;
      m.at_peak.weights_bytes += loads_[r].bytes - states;
      m.at_peak.optimizer_bytes += states;
      m.at_peak.activations_bytes += buffers;
      set_peak(m, checked_add(memory_.peak_bytes - memory_.overhead_bytes(), bytes));
    }
  }

  int64_t state_bytes(size_t rank) const {
    int64_t bytes = 0;
    for (size_t t = 0; t < placement_.size(); ++t) {
      const auto& ranks = placement_[t].ranks;
      if (std::find(ranks.begin(), ranks.end(), static_cast<int32_t>(rank)) == ranks.end())
        continue;
      bytes +=
          shard_bytes(placing_, t, problem_.tables[t].choices[placement_[t].choice]).state_bytes;
    }
    return bytes;
  }

  void add_parallel(Forecast& f, const RecommendationTimes& times) const {
    ParallelForecast p;
    p.cluster = plan_.cluster.id;
    p.cluster_name = plan_.cluster.name;
    p.nodes = plan_.cluster.nodes;
    p.ranks = plan_.ranks();
    p.micro_batch_size = plan_.micro_batch;
    p.communication_s = times.communication_s;
    p.exposed_communication_s = times.exposed_s;
    p.simulated_ranks = plan_.ranks();
    p.stages = {{.forward_s = times.forward_s,
                 .backward_s = times.backward_s,
                 .optimizer_s = times.optimizer_s,
                 .compute_s = times.compute_s,
                 .communication_s = times.communication_s,
                 .exposed_communication_s = times.exposed_s,
                 .memory = f.memory}};
    for (const RecommendationPart& part : times.parts)
      p.step_parts.push_back({.name = part.name,
                              .runs_on = part.on_links ? "links" : "gpu",
                              .seconds = part.seconds,
                              .start_s = part.start_s,
                              .end_s = part.end_s});
    const double sum_bytes =
        static_cast<double>(placing_.batch) * static_cast<double>(dtype_bits(placing_.dtype)) / 8;
    for (size_t r = 0; r < loads_.size(); ++r)
      p.rank_tables.push_back({.rank = static_cast<int64_t>(r),
                               .parts = loads_[r].parts,
                               .bytes = loads_[r].bytes,
                               .lookups = loads_[r].lookups,
                               .forward_s = tables_[r].forward_s,
                               .backward_s = tables_[r].backward_s,
                               .sent_bytes = loads_[r].columns * sum_bytes});
    f.parallel = std::move(p);
  }

  const PassSetup& setup_;
  const TimingSetup& timing_;
  RankLayout plan_;
  TimedPass dense_;
  PassMemory memory_;
  PlacementSetup placing_;
  ShardProblem problem_;
  TablePlacement placement_;
  std::vector<RankLoad> loads_;
  std::vector<TableKernels> tables_;
  bool links_extrapolated_ = false;
};

}  // namespace

void forecast_recommendation(Forecast& forecast, const PassSetup& setup,
                             const TimingSetup& timing) {
  const ModelModules modules = build_modules(setup.model, setup.request, setup.precision);
  describe_modules(forecast, modules.graph, setup);
  check_degrees(setup.request);
  RecommendationPass pass(setup, timing, modules.layers);
  pass.fill(forecast);
  pass.warn(forecast);
}

}  // namespace tilecast
