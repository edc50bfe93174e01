#include "plan/serving_simulation.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "tilecast/error.h"

namespace tilecast {
namespace {

/// Replicas that share nothing are simulated once, unless requests come for all of them.
bool simulates_all(const ServingPlan& plan, const ServingCandidate& c) {
  return c.prefill_workers > 0 || plan.sized();
}

double at_percentile(const Distribution& d, Percentile percentile) {
  return percentile == Percentile::kMean     ? d.mean.value
         : percentile == Percentile::kMedian ? d.median.value
                                             : d.p99.value;
}

void refuse_unless_it_starts(const GenerationForecast& f) {
  const bool starts = std::none_of(f.warnings.begin(), f.warnings.end(), [](const Warning& w) {
    return w.code == WarningCode::kDoesNotStart;
  });
  if (!starts)
    throw Error(ErrorKind::kInput,
                fmt::format("`max-model-len` {}: the servers do not start, as their caches hold "
                            "fewer tokens",
                            f.pool->max_model_len));
}

void fill(const ServingPlan& plan, ServingCandidate& c, const ServerMetrics& part) {
  c.ttft_s = at_percentile(part.ttft, plan.percentile);
  c.tpot_s = at_percentile(part.tpot, plan.percentile);
  c.mean_ttft_s = part.ttft.mean.value;
  c.mean_tpot_s = part.tpot.mean.value;
  c.mean_request_s = part.e2e.mean.value;
  const double replicas = simulates_all(plan, c) ? 1 : static_cast<double>(c.replicas);
  c.tokens_per_s = part.output_tokens_per_s * replicas;
  c.requests_per_s = part.requests_per_s * replicas;
  c.user_tokens_per_s = c.mean_tpot_s > 0 ? 1 / c.mean_tpot_s : 0;
  c.gpu_tokens_per_s = c.tokens_per_s / static_cast<double>(plan.paid_gpus(c));
  c.excess = std::max(plan.ttft_s ? c.ttft_s / *plan.ttft_s : 0,
                      plan.tpot_s ? c.tpot_s / *plan.tpot_s : 0);
}

void add_energy(ServingCandidate& c, const std::optional<PowerForecast>& power) {
  if (!power) return;
  c.power_w = power->power_w.value;
  c.power_interval = power->power_w;
  c.energy_per_token_j = power->energy_per_token_j;
}

}  // namespace

TimeLimits time_limits(const ServingPlan& plan) {
  TimeLimits limits{.ttft_s = plan.ttft_s, .tpot_s = plan.tpot_s, .share = {}};
  if (plan.percentile == Percentile::kMedian) limits.share = 0.5;
  if (plan.percentile == Percentile::kP99) limits.share = 0.99;
  return limits;
}

void forget_results(ServingCandidate& c) {
  c.simulated = c.pruned = c.meets = false;
  c.keeps_up = true;
  c.excess = c.ttft_s = c.tpot_s = c.mean_ttft_s = c.mean_tpot_s = c.mean_request_s = 0;
  c.tokens_per_s = c.requests_per_s = c.user_tokens_per_s = c.gpu_tokens_per_s = 0;
  c.power_w = c.energy_per_token_j = std::nullopt;
  c.power_interval = {};
}

int64_t simulate_candidate(const ServingPlan& plan, ServingCandidate& c, const ServedLayout& layout,
                           const std::optional<TimeLimits>& stop_beyond) {
  forget_results(c);
  const GenerationForecast f = layout.under(c.concurrency, stop_beyond);
  const Memory& m = f.memory;
  c.fits = m.fits;
  c.peak_bytes = m.peak_bytes;
  // A server that fits takes all that it may use.
  c.margin_bytes = m.fits ? std::max<int64_t>(0, plan.device_bytes[c.hardware] - m.peak_bytes)
                          : std::min<int64_t>(-1, m.margin_bytes());
  if (!c.fits) return 0;
  refuse_unless_it_starts(f);
  c.simulated = f.serving.has_value();
  c.pruned = !c.simulated;
  if (c.pruned) {
    c.excess = std::numeric_limits<double>::infinity();
    return 0;
  }
  fill(plan, c, f.serving->steady_or_all());
  // Clients wait for their answers, so their queue never grows.
  c.keeps_up = c.concurrency > 0 || (f.serving->keeps_up && f.serving->steady);
  c.meets = c.excess <= 1 && c.keeps_up;
  if (plan.ranks_by_energy() && c.meets) add_energy(c, layout.power(*f.serving));
  return f.serving->most_in_flight;
}

Request request_of(const ServingPlan& plan, const ServingCandidate& c) {
  Request r = plan.used;
  r.parallel.cluster = plan.clusters[c.hardware];
  r.execution.tp = c.tp;
  r.execution.pp = c.pp;
  r.execution.dp = c.dp;
  r.parallel.ep = c.ep;
  r.execution.dtype = c.dtype;
  r.execution.kv_dtype = c.kv_dtype;
  if (c.max_model_len) r.execution.max_model_len = c.max_model_len;
  r.load.concurrency = c.concurrency;
  if (c.requests > 0) r.load.requests = c.requests;
  r.deployment.all2all = c.all2all;
  if (simulates_all(plan, c)) r.deployment.replicas = c.replicas;
  if (c.prefill_workers > 0)
    r.deployment.prefill = {
        .workers = c.prefill_workers, .tp = c.tp, .pp = c.pp, .dp = c.dp, .ep = c.ep};
  return r;
}

}  // namespace tilecast
