// The search for the best way to serve a model. Every layout is simulated, with rising load until a
// limit is missed; the simulation of a load that misses one ends as soon as that is certain.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <mutex>
#include <numeric>

#include "base/monotone.h"
#include "base/threads.h"
#include "devices/cluster.h"
#include "ops/op_def.h"
#include "plan/reasons.h"
#include "plan/serving_intervals.h"
#include "plan/serving_ranking.h"
#include "plan/serving_simulation.h"
#include "plan/serving_sizing.h"
#include "plan/stated_cap.h"
#include "plan/values.h"
#include "predict/power.h"
#include "request/access.h"
#include "scenario/generation/cache_pool.h"
#include "scenario/generation/offered_load.h"
#include "scenario/generation/served_layout.h"
#include "scenario/internal.h"
#include "scenario/memory_total.h"
#include "tilecast/error.h"
#include "tilecast/search.h"

namespace tilecast {
namespace {

/// What layouts that share the times of their steps give.
struct Found {
  std::vector<ServingCandidate> candidates;
  ReasonCounts impossible, failures;
};

/// The loads of one layout.
class LoadSearch {
 public:
  LoadSearch(const ServingQuery& query, const ServingPlan& plan, Found& found)
      : query_(query), plan_(plan), found_(found) {}

  /// With more clients: while the limits are met, the cache has room, and throughput grows.
  void run(ServingCandidate c, const ServedLayout& layout) {
    std::vector<int64_t> loads = query_.space.concurrency;
    if (loads.empty()) {
      for (int64_t n = 1; n <= ServingPlan::kMostClients; n *= 2) loads.push_back(n);
    }
    std::sort(loads.begin(), loads.end());
    int64_t last = 0, missed = 0;  // the most clients that meet the limits, the fewest that do not
    bool over = false;
    double best = 0;
    for (const int64_t clients : loads) {
      c.concurrency = clients;
      if (over) {
        found_.candidates.push_back(c);
        continue;
      }
      simulate(c, layout, last);
      found_.candidates.push_back(c);
      if (!c.fits) return;
      // A step with more sequences takes longer, so more load misses the limit too. And the end is
      // where more clients write less than 1 % more.
      over = c.excess > 1 || c.gpu_tokens_per_s < 1.01 * best;
      (c.excess > 1 ? missed : last) = clients;
      best = std::max(best, c.gpu_tokens_per_s);
      if (over) forget_results(c);
    }
    if (query_.space.concurrency.empty() && last > 0 && missed > 0) refine(c, layout, last, missed);
  }

 private:
  /// The most clients that meet the limits, to a tenth.
  void refine(ServingCandidate c, const ServedLayout& layout, int64_t meets, int64_t misses) {
    const auto keeps_limits = [&](int64_t clients) {
      c.concurrency = clients;
      simulate(c, layout, meets);
      found_.candidates.push_back(c);
      if (c.excess > 1) return false;
      meets = clients;
      return true;
    };
    narrow({meets, misses}, keeps_limits, std::mem_fn(&Bracket::middle),
           [](const Bracket& b) { return b.fails - b.holds <= b.holds / 10; });
  }

  /// The limits beyond which nobody asks for more than that they are missed: where less load keeps
  /// them, the candidate cannot be the nearest of all.
  std::optional<TimeLimits> stop_beyond(int64_t meets) const {
    if (query_.full_search || meets == 0 || !plan_.limited()) return {};
    return time_limits(plan_);
  }

  /// `meets`: the most clients of the layout that keep the limits; 0: none are known.
  void simulate(ServingCandidate& c, const ServedLayout& layout, int64_t meets) const {
    simulate_candidate(plan_, c, layout, stop_beyond(meets));
  }

  const ServingQuery& query_;
  const ServingPlan& plan_;
  Found& found_;
};

class ServingSearch {
 public:
  ServingSearch(const Forecaster& forecaster, const ModelRef& model, const ServingQuery& query,
                ServingPlan& plan)
      : forecaster_(forecaster), model_(model), query_(query), plan_(plan) {}

  void run() {
    for (size_t h = 0; h < query_.hardware.size(); ++h) add_layouts(h);
    simulate_layouts();
    if (plan_.candidates.empty()) refuse_empty();
    rank_servings(plan_);
  }

 private:
  [[noreturn]] void refuse_empty() const {
    std::string why;
    for (const auto* reasons : {&plan_.impossible, &plan_.failures}) {
      for (const auto& [reason, count] : *reasons) why += "; " + reason;
    }
    throw Error(plan_.failures.empty() ? ErrorKind::kInput : ErrorKind::kInternal,
                fmt::format("no layout of {} GPUs is possible{}", plan_.gpus, why.substr(0, 400)));
  }

  int64_t expert_count() const {
    const Model& model = model_.content->model;
    const Graph modules = model.build({.batch = 1, .seq = 16, .dtype = DType::kFp32});
    const OpId experts = require_op("experts");
    int64_t most = 0;
    for (const Node& node : modules.nodes) {
      if (node.op == experts) most = std::max(most, modules.tensor(node.inputs[1]).shape[0]);
    }
    return most;
  }

  void add_layouts(size_t h) {
    const ServingHardware& hardware = query_.hardware[h];
    const Device& device = hardware.gpu.content->device;
    const int64_t node =
        (hardware.cluster.empty() ? node_of(device) : find_cluster(hardware.cluster)).gpus_per_node;
    const bool experts = expert_count() > 0;
    const int64_t layers = model_.content->model.decoder->layers;
    const ServingSpace& s = query_.space;
    for (const int64_t tp : given_or(s.tp, divisors(plan_.gpus, node))) {
      // Stages and data-parallel attention serve models that one node cannot hold, or that have
      // experts to share.
      for (const int64_t pp :
           given_or(s.pp, divisors(plan_.gpus / std::min(tp, plan_.gpus),
                                   std::clamp<int64_t>(plan_.gpus / node, 1, layers)))) {
        const int64_t rest = std::max<int64_t>(1, plan_.gpus / (tp * pp));
        for (const int64_t dp : given_or(s.dp, divisors(rest, experts ? rest : 1))) {
          std::vector<int64_t> shared = {1};
          if (experts && tp * dp > 1) shared.push_back(tp * dp);
          for (const int64_t ep : given_or(s.ep, shared))
            add_exchanges({.hardware = h, .tp = tp, .pp = pp, .dp = dp, .ep = ep});
        }
      }
    }
  }

  void add_exchanges(ServingCandidate c) {
    add_precisions(c);
    // DeepEP's kernels send the tokens of a rank to ranks with whole experts.
    if (c.tp != 1 || c.dp == 1 || c.ep != c.dp) return;
    c.all2all = All2All::kDeepEp;
    add_precisions(c);
  }

  void add_precisions(ServingCandidate c) {
    c.replicas = plan_.gpus / (c.tp * c.pp * c.dp);
    if (plan_.used.load.rate > 0) c.concurrency = 0;
    if (c.replicas == 0) {
      plan_.impossible[fmt::format("`tp` {} × `pp` {} × `dp` {} are more than {} GPUs", c.tp, c.pp,
                                   c.dp, plan_.gpus)] += 1;
      return;
    }
    const int64_t servers = c.replicas;
    for (const std::string& dtype : given_or(query_.space.dtypes, dtypes_of(c.hardware))) {
      for (const std::string& kv : given_or(query_.space.kv_dtypes, {std::string()})) {
        std::vector<ServingCandidate> layouts;  // that differ in the number of servers
        // The power of prefill workers is not forecast, so they have no place in a plan by energy.
        const int64_t pools = plan_.ranks_by_energy() ? 1 : servers;
        for (const int64_t workers : given_or(query_.space.prefill_workers, pools_of(pools))) {
          if (workers >= servers && workers > 0) {
            plan_.impossible[fmt::format(
                "`prefill-workers` {} takes {} servers or more; {} GPUs hold fewer of the layout",
                workers, workers + 1, plan_.gpus)] += 1;
            continue;
          }
          // The number of servers is searched by multiples of the smallest of each ratio.
          const int64_t alike = plan_.sized() ? std::gcd(servers, workers) : 1;
          c.dtype = dtype;
          c.kv_dtype = kv;
          c.prefill_workers = workers / alike;
          c.replicas = (servers - workers) / alike;
          const auto same = [&](const ServingCandidate& o) { return layout_of(o) == layout_of(c); };
          if (std::none_of(layouts.begin(), layouts.end(), same)) layouts.push_back(c);
        }
        if (!layouts.empty()) layouts_.push_back(std::move(layouts));
      }
    }
  }

  /// Servers that compute prompts only: none, or up to all but one.
  static std::vector<int64_t> pools_of(int64_t servers) {
    std::vector<int64_t> pools;
    for (int64_t workers = 0; workers < servers; ++workers) pools.push_back(workers);
    return pools;
  }

  /// 16 bits, and fp8 where the GPU multiplies it; "": the checkpoint's own, if it is quantized.
  std::vector<std::string> dtypes_of(size_t h) const {
    const Device& device = query_.hardware[h].gpu.content->device;
    const bool stored = !model_.content->model.checkpoint.quantization.empty();
    if (stored) return {""};
    std::vector<std::string> dtypes = {device.matmul_peak(DType::kBf16) > 0 ? "bf16" : "fp16"};
    if (device.matmul_peak(DType::kFp8) > 0) dtypes.push_back("fp8");
    return dtypes;
  }

  /// All layouts, on all cores; results are in their order.
  void simulate_layouts() {
    std::vector<Found> found(layouts_.size());
    std::mutex mutex;
    Progress progress{.done = 0, .total = layouts_.size(), .unit = "layouts", .note = ""};
    run_all(layouts_.size(), query_.threads, [&](size_t i) {
      simulate_servers(layouts_[i], found[i]);
      if (!query_.show_progress) return;
      const std::lock_guard lock(mutex);
      ++progress.done;
      query_.show_progress(progress);
    });
    for (Found& one : found) {
      std::move(one.candidates.begin(), one.candidates.end(), std::back_inserter(plan_.candidates));
      add_counts(plan_.impossible, one.impossible);
      add_counts(plan_.failures, one.failures);
    }
  }

  /// The limit of the length with which a server starts, where it needs one and none is asked for.
  /// `known`: of the same layouts as in simulate_servers, without that limit.
  std::optional<int64_t> needed_limit(const ServingCandidate& c, KnownServer& known) const {
    if (plan_.used.execution.max_model_len) return std::nullopt;
    const ServedLayout layout(forecaster_, model_, query_.hardware[c.hardware].gpu,
                              request_of(plan_, c), known);
    return layout.needs_limit() ? std::optional(layout.longest()) : std::nullopt;
  }

  /// Layouts that differ in the number of servers have the same steps.
  void simulate_servers(const std::vector<ServingCandidate>& layouts, Found& found) const {
    KnownServer unlimited, known;
    for (ServingCandidate c : layouts) {
      try {
        c.max_model_len = needed_limit(c, unlimited);
        const GpuRef& gpu = query_.hardware[c.hardware].gpu;
        if (plan_.sized()) {
          found.candidates.push_back(fewest_servers(forecaster_, model_, gpu, plan_, c, known));
          continue;
        }
        const ServedLayout layout(forecaster_, model_, gpu, request_of(plan_, c), known);
        LoadSearch(query_, plan_, found).run(c, layout);
      } catch (const Error& error) {
        count_error(error, found.impossible, found.failures);
      }
    }
  }

  const Forecaster& forecaster_;
  const ModelRef& model_;
  const ServingQuery& query_;
  ServingPlan& plan_;
  std::vector<std::vector<ServingCandidate>> layouts_;
};

/// What the search cannot rank by.
void check_objective(const ServingQuery& query) {
  const auto refuse = [](const std::string& why) {
    throw Error(ErrorKind::kInput, fmt::format("`objective` {}", why));
  };
  if (query.objective == PlanObjective::kMemory)
    refuse("memory applies to training: a server takes all memory that it may use");
  if (query.objective == PlanObjective::kCost && !query.has_prices)
    refuse("cost needs prices: give `price-per-gpu-hour`");
  for (const ServingHardware& hardware : query.hardware) {
    if (query.objective == PlanObjective::kCost && hardware.price.price_per_gpu_hour <= 0)
      refuse(fmt::format("cost: the price of {} is 0; give one above 0, or use `objective` time",
                         hardware.gpu.id()));
  }
  if (query.objective != PlanObjective::kEnergy) return;
  for (const int64_t workers : query.space.prefill_workers) {
    if (workers > 0)
      refuse("energy: the power of prefill workers is not forecast; omit `prefill-workers`");
  }
  for (const ServingHardware& hardware : query.hardware) {
    const Device& device = hardware.gpu.content->device;
    if (!board_power(device, bundled_laws().power))
      refuse(
          fmt::format("energy: the power of {} is not forecast: its file states no "
                      "board_power_w, or it is a part of a GPU",
                      device.id));
  }
}

std::optional<double> utilization_that_fits(const std::vector<Warning>& warnings) {
  for (const Warning& warning : warnings) {
    for (const WarningFact& fact : warning.facts) {
      if (fact.name == "utilization_that_fits") return std::get<double>(fact.value);
    }
  }
  return std::nullopt;
}

}  // namespace

ServingPlan plan_serving(const Forecaster& forecaster, const ModelRef& model,
                         const ServingQuery& query) {
  require_stated_cap(query.request.energy);
  check_objective(query);
  const Model& m = model.content->model;
  if (!m.decoder)
    throw Error(ErrorKind::kUnsupported,
                m.name + ": the model does not generate text; omit `prompt` to plan its training");
  if (query.request.deployment.encode.workers > 0)
    throw Error(ErrorKind::kUnsupported,
                "plans of servers do not search for `encode-workers`; leave the option out, and "
                "forecast the plan's layout with them");
  const Request typical = typical_request(query.request);
  ServingPlan plan{.model = m.name,
                   .objective = query.objective,
                   .prompt = typical.prompt,
                   .output = typical.output,
                   .ttft_s = query.ttft_s,
                   .tpot_s = query.tpot_s,
                   .percentile = query.percentile,
                   .clients = query.clients,
                   .used = query.request};
  for (const ServingHardware& hardware : query.hardware) {
    const Device& device = hardware.gpu.content->device;
    plan.gpu_ids.push_back(device.id);
    plan.gpu_names.push_back(device.name);
    plan.device_bytes.push_back(visible_bytes(device));
    plan.clusters.push_back(hardware.cluster);
    if (query.has_prices) plan.prices.push_back(hardware.price);
  }
  const ServingHardware& first = query.hardware.front();
  const int64_t node =
      (first.cluster.empty() ? node_of(first.gpu.content->device) : find_cluster(first.cluster))
          .gpus_per_node;
  const bool given = query.gpus > 0;
  plan.gpus = given ? query.gpus : query.nodes * node;
  if (plan.sized()) {
    plan.most_gpus = query.gpus;
    plan.gpus = std::min(plan.gpus, query.nodes * node);
  }
  ServingSearch(forecaster, model, query, plan).run();
  plan.warnings.resize(query.hardware.size());
  if (plan.fitting == 0) {
    const ServingCandidate& nearest = plan.candidates.front();
    plan.utilization_that_fits = utilization_that_fits(
        forecast_generation(forecaster, model, query.hardware[nearest.hardware].gpu,
                            request_of(plan, nearest))
            .warnings);
    return plan;
  }
  add_intervals(forecaster, model, query, plan);
  return plan;
}

}  // namespace tilecast
