// The search for the best training step: bounds and memory of all candidates, then simulations of
// those that can still be among the first.

#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "base/monotone.h"
#include "base/text.h"
#include "ops/op_def.h"
#include "plan/stated_cap.h"
#include "plan/training_ranking.h"
#include "plan/training_space.h"
#include "scenario/extrapolated.h"
#include "scenario/internal.h"
#include "scenario/memory_total.h"
#include "tilecast/error.h"
#include "tilecast/forecast.h"

namespace tilecast {
namespace {

/// Experts of the layers with most experts; 0: there are none.
int64_t expert_count(const Graph& modules) {
  int64_t most = 0;
  const OpId experts = require_op("experts");
  for (const Node& node : modules.nodes) {
    if (node.op == experts) most = std::max(most, modules.tensor(node.inputs[1]).shape[0]);
  }
  return most;
}

bool searches_contexts(const TrainingSpace& space) {
  return space.cp.empty() ||
         std::any_of(space.cp.begin(), space.cp.end(), [](int64_t cp) { return cp > 1; });
}

/// The dtypes that the search tries by default.
std::vector<std::string> dtypes_of(const TrainingQuery& query, TrainingFacts& facts) {
  std::vector<std::string> names = query.space.dtypes;
  const bool given = !names.empty();
  if (!given) {
    const auto has = [&](DType dtype) { return facts.device.matmul_peak(dtype) > 0; };
    if (has(DType::kBf16))
      names = {"bf16", "amp"};
    else if (has(DType::kFp16))
      names = {"fp16", "amp-fp16"};
    else
      names = {"fp32"};
  }
  std::vector<std::string> used;
  for (const std::string& name : names) {
    Request request = facts.shared;
    request.execution.dtype = name;
    try {
      facts.precisions.emplace(
          name, resolve_precision(facts.model, facts.device, precision_request(request)));
      used.push_back(name);
    } catch (const Error&) {
      if (given) throw;
    }
  }
  return used;
}

Cluster cluster_of_query(const TrainingQuery& query, const Device& device) {
  const Parallel& p = query.request.parallel;
  if (query.gpus == 0) {
    const Cluster cluster = p.cluster.empty() ? node_of(device) : find_cluster(p.cluster);
    return with_nodes(cluster, p.nodes.value_or(1));
  }
  // The nodes on which `forecast` places so many ranks.
  Request request = query.request;
  request.execution.dp = query.gpus;
  Cluster cluster = cluster_of(device, request);
  if (cluster.name.empty()) cluster.name = device.name;
  return with_gpus_per_node(cluster, query.gpus / cluster.nodes);
}

/// The search of one cluster: facts of the model, the plan to fill in, and its candidates.
class TrainingPlanner {
 public:
  TrainingPlanner(const Forecaster& forecaster, const ModelRef& model, const GpuRef& gpu,
                  const TrainingQuery& query)
      : forecaster_(forecaster), model_(model), gpu_(gpu), query_(query) {
    const Model& m = model.content->model;
    const Device& device = gpu.content->device;
    if (!m.has_modules)
      throw Error(ErrorKind::kUnsupported,
                  m.name + ": a graph file states no layers that ranks divide; use a config");
    if (!query_.request.teacher.empty())
      throw Error(ErrorKind::kUnsupported,
                  "`teacher`: plans search no layouts of distillation; use forecast");
    const CpCommType exchange = query_.request.parallel.cp_comm_type;
    set_candidate(query_.request, TrainingCandidate{});
    if (!searches_contexts(query_.space)) query_.request.parallel.cp_comm_type = exchange;
    query_.request = checked_pass(m, device, query_.request).request;
    query_.request.parallel.cp_comm_type = exchange;  // of candidates with `cp` above 1
    modules_ = m.build(
        {.batch = 1, .seq = *query_.request.seq, .dtype = DType::kFp32, .single_layers = true});
    facts_ = std::make_unique<TrainingFacts>(
        TrainingFacts{.model = m,
                      .device = device,
                      .predictor = forecaster.impl().predictor(query_.request.execution.predictor),
                      .shared = query_.request,
                      .cluster = cluster_of_query(query_, device),
                      .precisions = {},
                      .layers = layer_count(modules_)});
    dtypes_ = dtypes_of(query_, *facts_);
  }

  TrainingPlan run() {
    set_nodes(facts_->cluster.nodes);
    TrainingPlan plan = empty_plan();
    TrainingSearch search(*facts_, query_, plan);
    search.judge(groups(query_, plan.impossible));
    if (plan.fitting == 0) {
      plan.nodes_that_fit = nodes_that_fit(plan);
      return plan;
    }
    if (query_.objective == PlanObjective::kMemory)
      rank_by_memory(search, query_, plan);
    else
      rank_by_time(
          search, query_,
          [&](const TrainingCandidate& c) { return forecast_of(plan, c).latency_s.high; }, plan);
    if (plan.ranked == 0) search.refuse_empty();
    if (ranks_by_energy()) rank_by_energy(plan);
    find_alternatives(search, query_, plan);
    plan.simulated = static_cast<size_t>(
        std::count_if(plan.candidates.begin(), plan.candidates.end(),
                      [](const TrainingCandidate& c) { return c.latency_s.has_value(); }));
    add_intervals(plan);
    return plan;
  }

 private:
  void set_nodes(int64_t nodes) {
    facts_->cluster = with_nodes(facts_->cluster, nodes);
    facts_->shared.parallel.nodes = nodes;
  }

  TrainingPlan empty_plan() const {
    const Request& r = query_.request;
    TrainingPlan plan{.model = facts_->model.name,
                      .gpu = facts_->device.id,
                      .gpu_name = facts_->device.name,
                      .cluster = facts_->cluster.id,
                      .cluster_name = facts_->cluster.name,
                      .nodes = facts_->cluster.nodes,
                      .ranks = facts_->cluster.gpus(),
                      .batch = r.batch,
                      .seq = *r.seq,
                      .counts_tokens = !facts_->model.fixed_seq,
                      .is_decoder = facts_->model.decoder.has_value(),
                      .gpus_per_node = facts_->cluster.gpus_per_node,
                      .has_network = facts_->cluster.network.has_value(),
                      .parameters = modules_.parameter_count(),
                      .device_bytes = visible_bytes(facts_->device),
                      .memory_reserve = query_.memory_reserve,
                      .price_per_gpu_hour = query_.price_per_gpu_hour,
                      .gpu_price = query_.gpu_price,
                      .objective = query_.objective};
    plan.used = facts_->shared;
    return plan;
  }

  std::vector<CandidateGroup> groups(const TrainingQuery& query,
                                     std::map<std::string, int64_t>& impossible) const {
    const Execution& e = query.request.execution;
    return candidate_groups(
        query,
        {.cluster = facts_->cluster,
         .layers = facts_->layers,
         .experts = expert_count(modules_),
         .flash = e.attention == AttentionKind::kFlash,
         .scores = e.attention == AttentionKind::kEager && has_scores(modules_, {.training = true}),
         .divides_layers = !modules_.splits.empty()},
        dtypes_, impossible);
  }

  /// The fewest nodes on which a configuration with least memory fits: one micro-batch of one
  /// sequence, all states sharded, all activations computed again, unless lists exclude that.
  std::optional<int64_t> nodes_that_fit(const TrainingPlan& plan) {
    if (!plan.has_network || query_.gpus > 0) return std::nullopt;
    TrainingQuery least = query_;
    const auto only = [](auto& list, auto value) {
      if (list.empty()) list = {value};
    };
    only(least.space.zero, Zero::kParameters);
    only(least.space.schedules, PipelineSchedule::k1F1B);
    only(least.space.checkpointing,
         facts_->layers > 0 ? Checkpointing::kFull : Checkpointing::kNone);
    only(least.space.micro_batch_sizes, int64_t{1});
    const auto lacks = [&](int64_t nodes) {
      set_nodes(nodes);
      TrainingPlan other = empty_plan();
      try {
        return !TrainingSearch(*facts_, least, other).any_fits(groups(least, other.impossible));
      } catch (const Error&) {
        return true;  // the cluster has no such size
      }
    };
    constexpr int64_t kMost = 64;  // times the nodes that were asked for
    Bracket bracket{plan.nodes, 2 * plan.nodes};
    while (lacks(bracket.fails)) {
      if (bracket.fails >= kMost * plan.nodes) return std::nullopt;
      bracket = {bracket.fails, 2 * bracket.fails};
    }
    return narrow(bracket, lacks).fails;
  }

  Forecast forecast_of(const TrainingPlan& plan, const TrainingCandidate& c) const {
    return std::get<Forecast>(
        ask(forecaster_, model_, gpu_, request_of(plan, c), Detail::kNumbers));
  }

  /// Time and GPUs alone say nothing of energy. Where it has no price, cost follows time.
  bool ranks_by_energy() const {
    return query_.objective == PlanObjective::kEnergy ||
           (query_.objective == PlanObjective::kCost && query_.request.energy.price_per_kwh);
  }

  /// Orders the ranked candidates, the fastest of each layout, by what their steps take of energy
  /// or money.
  void rank_by_energy(TrainingPlan& plan) const {
    for (size_t i = 0; i < plan.ranked; ++i) {
      const Forecast f = forecast_of(plan, plan.candidates[i]);
      if (!f.power)
        throw Error(ErrorKind::kUnsupported,
                    fmt::format("`objective` {}: the power of {} is not forecast",
                                choice_word(query_.objective), plan.gpu));
      plan.candidates[i].energy_j = f.power->energy_j.value;
    }
    const auto worth = [&](const TrainingCandidate& c) {
      return query_.objective == PlanObjective::kCost ? plan.cost_of_step(c) : *c.energy_j;
    };
    std::stable_sort(plan.candidates.begin(),
                     plan.candidates.begin() + static_cast<std::ptrdiff_t>(plan.ranked),
                     [&](const TrainingCandidate& a, const TrainingCandidate& b) {
                       return worth(a) < worth(b);
                     });
    // Steps of candidates that tie are of their times.
    plan.fastest.reset();
    for (size_t i = 0; i < plan.ranked; ++i) plan.candidates[i].step = 0;
  }

  /// The intervals of ranked candidates, and what is shown of the winner.
  void add_intervals(TrainingPlan& plan) const {
    for (size_t i = 0; i < plan.ranked; ++i) {
      TrainingCandidate& c = plan.candidates[i];
      const Forecast f = forecast_of(plan, c);
      c.ranked_s = f.latency_s;
      c.extrapolated = is_extrapolated(f.warnings);
      if (f.power) {
        c.power_w = f.power->power_w.value;
        c.energy_j = f.power->energy_j.value;
      }
      if (i > 0) continue;
      plan.winner_mfu_ratio = f.mfu_ratio;
      plan.winner_utilization_ratio = f.utilization_ratio;
      plan.warnings = f.warnings;
    }
  }

  const Forecaster& forecaster_;
  const ModelRef& model_;
  const GpuRef& gpu_;
  TrainingQuery query_;
  Graph modules_;
  std::unique_ptr<TrainingFacts> facts_;
  std::vector<std::string> dtypes_;
};

}  // namespace

TrainingPlan plan_training(const Forecaster& forecaster, const ModelRef& model, const GpuRef& gpu,
                           const TrainingQuery& query) {
  require_stated_cap(query.request.energy);
  return TrainingPlanner(forecaster, model, gpu, query).run();
}

Request request_of(const TrainingPlan& plan, const TrainingCandidate& candidate) {
  Request request = plan.used;
  set_candidate(request, candidate);
  return request;
}

}  // namespace tilecast
