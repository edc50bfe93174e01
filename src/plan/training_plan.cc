// The search for the best training step: bounds and memory of all candidates, then simulations of
// those that can still be among the first.

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <list>
#include <numeric>

#include "base/text.h"
#include "ops/op_def.h"
#include "plan/group_cache.h"
#include "plan/training_space.h"
#include "request/access.h"
#include "scenario/extrapolated.h"
#include "scenario/generation/cache_pool.h"
#include "scenario/internal.h"
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

class Search {
 public:
  Search(const TrainingFacts& facts, const TrainingQuery& query, TrainingPlan& plan)
      : facts_(facts), query_(query), plan_(plan) {}

  void run(const std::vector<CandidateGroup>& groups) {
    for (const CandidateGroup& group : groups) judge(group);
    if (plan_.candidates.empty()) refuse_empty();
    std::stable_sort(plan_.candidates.begin(), plan_.candidates.end(),
                     [](const TrainingCandidate& a, const TrainingCandidate& b) {
                       if (a.fits() != b.fits()) return a.fits();
                       return a.fits() ? a.bound_s < b.bound_s : a.margin_bytes > b.margin_bytes;
                     });
    plan_.fitting =
        static_cast<size_t>(std::count_if(plan_.candidates.begin(), plan_.candidates.end(),
                                          [](const TrainingCandidate& c) { return c.fits(); }));
    if (plan_.fitting == 0) return;
    if (query_.objective == PlanObjective::kMemory) order_by_memory();
    rank();
    find_alternatives();
    plan_.simulated = static_cast<size_t>(
        std::count_if(plan_.candidates.begin(), plan_.candidates.end(),
                      [](const TrainingCandidate& c) { return c.latency_s.has_value(); }));
  }

 private:
  void judge(const CandidateGroup& group) {
    GroupCache cache(facts_, group.candidates.front());
    for (TrainingCandidate c : group.candidates) {
      try {
        cache.judge(c);
      } catch (const Error& error) {
        if (error.kind() == ErrorKind::kInternal) throw;
        plan_.impossible[error.what()] += 1;
        continue;
      }
      plan_.candidates.push_back(std::move(c));
    }
  }

  [[noreturn]] void refuse_empty() const {
    std::string why;
    for (const auto& [reason, count] : plan_.impossible) {
      why += fmt::format("; {}", reason);
      if (why.size() > 300) break;
    }
    throw Error(
        ErrorKind::kInput,
        fmt::format("no configuration of {} GPUs is possible with a batch of {}{}", plan_.ranks,
                    plan_.batch,
                    why.empty() ? "; use a batch that the GPUs divide, or other degrees" : why));
  }

  void simulate(TrainingCandidate& c) {
    if (c.latency_s) return;
    // Neighbours in the order of bounds are often of a few groups.
    constexpr size_t kGroups = 8;
    const auto same = [&](const TrainingCandidate& o) {
      return o.tp == c.tp && o.cp == c.cp && o.ep == c.ep && o.dtype == c.dtype &&
             o.micro_batch_size == c.micro_batch_size && o.checkpointing == c.checkpointing &&
             o.sequence_parallel == c.sequence_parallel;
    };
    auto found = std::find_if(groups_.begin(), groups_.end(),
                              [&](const auto& entry) { return same(entry.first); });
    if (found == groups_.end()) {
      if (groups_.size() == kGroups) groups_.pop_back();
      groups_.emplace_front(c, std::make_unique<GroupCache>(facts_, c));
      found = groups_.begin();
    }
    found->second->simulate(c);
  }

  static bool earlier(const TrainingCandidate& a, const TrainingCandidate& b) {
    return a.latency_s.value_or(a.bound_s) < b.latency_s.value_or(b.bound_s);
  }

  /// Candidates in the order of their bounds are simulated until the next bound is above the time
  /// of the last one that is asked for.
  void rank() {
    const auto begin = plan_.candidates.begin(), end = begin + static_cast<int64_t>(plan_.fitting);
    const size_t wanted = std::min(std::max<size_t>(1, query_.top), plan_.fitting);
    if (query_.objective == PlanObjective::kMemory) {
      for (size_t i = 0; i < wanted; ++i) simulate(plan_.candidates[i]);
      plan_.ranked = wanted;
      return;
    }
    std::vector<double> best;  // the times of the first ones, sorted
    for (auto c = begin; c != end; ++c) {
      const bool full = best.size() == wanted;
      if (query_.pruning == Pruning::kOn && full && c->bound_s > best.back()) break;
      simulate(*c);
      best.insert(std::upper_bound(best.begin(), best.end(), *c->latency_s), *c->latency_s);
      if (best.size() > wanted) best.pop_back();
    }
    // All candidates that were not simulated are slower than all of `best`.
    std::stable_sort(begin, end, [](const TrainingCandidate& a, const TrainingCandidate& b) {
      if (a.latency_s.has_value() != b.latency_s.has_value()) return a.latency_s.has_value();
      return earlier(a, b);
    });
    plan_.ranked = wanted;
  }

  void order_by_memory() {
    std::stable_sort(
        plan_.candidates.begin(), plan_.candidates.begin() + static_cast<int64_t>(plan_.fitting),
        [](const TrainingCandidate& a, const TrainingCandidate& b) {
          return std::pair(a.peak_bytes, a.bound_s) < std::pair(b.peak_bytes, b.bound_s);
        });
  }

  /// For each option the best candidates with its other values.
  void find_alternatives();

  const TrainingFacts& facts_;
  const TrainingQuery& query_;
  TrainingPlan& plan_;
  std::list<std::pair<TrainingCandidate, std::unique_ptr<GroupCache>>> groups_;
};

struct ShownOption {
  const char* name;
  std::string (*value)(const TrainingCandidate& c);
};
constexpr ShownOption kShown[] = {
    {"tp", [](const TrainingCandidate& c) { return std::to_string(c.tp); }},
    {"pp", [](const TrainingCandidate& c) { return std::to_string(c.pp); }},
    {"dp", [](const TrainingCandidate& c) { return std::to_string(c.dp); }},
    {"cp", [](const TrainingCandidate& c) { return std::to_string(c.cp); }},
    {"ep", [](const TrainingCandidate& c) { return std::to_string(c.ep); }},
    {"micro-batch-size",
     [](const TrainingCandidate& c) { return std::to_string(c.micro_batch_size); }},
    {"pipeline-schedule", [](const TrainingCandidate& c) { return choice_name(c.schedule); }},
    {"zero", [](const TrainingCandidate& c) { return choice_name(c.zero); }},
    {"checkpointing", [](const TrainingCandidate& c) { return choice_name(c.checkpointing); }},
    {"sequence-parallel",
     [](const TrainingCandidate& c) { return std::string(c.sequence_parallel ? "on" : "off"); }},
    {"dtype", [](const TrainingCandidate& c) { return c.dtype; }},
};

void Search::find_alternatives() {
  std::vector<TrainingCandidate>& all = plan_.candidates;
  for (const ShownOption& option : kShown) {
    const std::string own = option.value(all.front());
    std::map<std::string, size_t> best;  // by value
    for (size_t i = 0; i < all.size(); ++i) {
      TrainingCandidate& c = all[i];
      const std::string value = option.value(c);
      if (value == own) continue;
      const auto [known, fresh] = best.try_emplace(value, i);
      if (fresh) {
        if (c.fits()) simulate(c);
        continue;
      }
      TrainingCandidate& now = all[known->second];
      if (!c.fits() || query_.objective == PlanObjective::kMemory) continue;
      if (c.latency_s.value_or(c.bound_s) >= *now.latency_s) continue;
      simulate(c);
      if (*c.latency_s < *now.latency_s) known->second = i;
    }
    const size_t first = plan_.alternatives.size();
    for (const auto& [value, index] : best)
      plan_.alternatives.push_back({option.name, value, index});
    // The best first; what does not fit, and so has no time, last.
    constexpr double kNever = std::numeric_limits<double>::infinity();
    std::stable_sort(plan_.alternatives.begin() + static_cast<int64_t>(first),
                     plan_.alternatives.end(),
                     [&](const PlanAlternative& a, const PlanAlternative& b) {
                       return all[a.candidate].latency_s.value_or(kNever) <
                              all[b.candidate].latency_s.value_or(kNever);
                     });
  }
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

Cluster cluster_of_query(const Request& request, const Device& device) {
  const Cluster cluster =
      request.parallel.cluster.empty() ? node_of(device) : find_cluster(request.parallel.cluster);
  return with_nodes(cluster, request.parallel.nodes.value_or(1));
}

}  // namespace

TrainingPlan plan_training(const Forecaster& forecaster, const ModelRef& model_ref,
                           const GpuRef& gpu, const TrainingQuery& query) {
  const Model& model = model_ref.content->model;
  const Device& device = gpu.content->device;
  if (!model.has_modules)
    throw Error(ErrorKind::kUnsupported,
                model.name + ": a graph file states no layers that ranks divide; use a config");
  Request asked = query.request;
  set_candidate(asked, TrainingCandidate{});
  asked.execution.attention = query.attention.value_or(
      model.has_fused_attention ? AttentionKind::kFlash : AttentionKind::kEager);
  const CheckedPass checked = checked_pass(model, device, asked);
  TrainingFacts facts{.model = model,
                      .device = device,
                      .predictor = forecaster.impl().predictor(checked.request.execution.predictor),
                      .shared = checked.request,
                      .cluster = cluster_of_query(checked.request, device),
                      .precisions = {}};
  const Graph modules =
      model.build({.batch = 1, .seq = *checked.request.seq, .dtype = DType::kFp32});
  facts.layers = layer_count(modules);
  TrainingPlan plan{.model = model.name,
                    .gpu = device.id,
                    .gpu_name = device.name,
                    .cluster = facts.cluster.id,
                    .cluster_name = facts.cluster.name,
                    .nodes = facts.cluster.nodes,
                    .ranks = facts.cluster.gpus(),
                    .batch = checked.request.batch,
                    .seq = *checked.request.seq,
                    .has_network = facts.cluster.network.has_value(),
                    .parameters = modules.parameter_count(),
                    .device_bytes = visible_bytes(device),
                    .price_per_gpu_hour = query.price_per_gpu_hour,
                    .objective = query.objective};
  plan.used = checked.request;
  plan.used.parallel.nodes = facts.cluster.nodes;
  facts.shared.parallel.nodes = facts.cluster.nodes;
  const std::vector<std::string> dtypes = dtypes_of(query, facts);
  TrainingQuery filled = query;
  filled.request = checked.request;
  const std::vector<CandidateGroup> groups =
      candidate_groups(filled,
                       {.cluster = facts.cluster,
                        .layers = facts.layers,
                        .experts = expert_count(modules),
                        .flash = checked.request.execution.attention == AttentionKind::kFlash},
                       dtypes, plan.impossible);
  Search(facts, filled, plan).run(groups);
  if (plan.fitting == 0) return plan;
  for (size_t i = 0; i < plan.ranked; ++i) {
    TrainingCandidate& c = plan.candidates[i];
    const auto f =
        std::get<Forecast>(ask(forecaster, model_ref, gpu, request_of(plan, c), Detail::kNumbers));
    c.latency_low_s = f.latency_low_s;
    c.latency_high_s = f.latency_high_s;
    c.extrapolated = is_extrapolated(f.warnings);
    if (i > 0) continue;
    plan.winner_utilization_ratio = f.utilization_ratio;
    plan.warnings = f.warnings;
  }
  return plan;
}

Request request_of(const TrainingPlan& plan, const TrainingCandidate& candidate) {
  Request request = plan.used;
  set_candidate(request, candidate);
  return request;
}

}  // namespace tilecast
