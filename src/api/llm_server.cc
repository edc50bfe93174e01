#include "api/llm_server.h"

#include <algorithm>
#include <deque>
#include <span>

#include "api/llm_load.h"
#include "api/step_costs.h"
#include "base/checked.h"

namespace tilecast {
namespace {

/// Intervals have the same relative width as those of a single request. Queues increase the
/// uncertainty; this is not modelled.
Estimate like(double seconds, const Estimate& alone) {
  if (alone.seconds <= 0) return {seconds, seconds, seconds};
  return {seconds, seconds * alone.low_s / alone.seconds, seconds * alone.high_s / alone.seconds};
}

Distribution distribution(const LatencySummary& s, const Estimate& alone) {
  return {like(s.mean_s, alone), like(s.median_s, alone), like(s.p99_s, alone)};
}

ServedPart part(const RequestSummary& s, const LlmForecast& alone) {
  return {.requests = s.requests,
          .ttft = distribution(s.ttft, alone.ttft),
          .tpot = distribution(s.tpot, alone.tpot),
          .e2e = distribution(s.e2e, alone.request),
          .requests_per_s = s.requests_per_s,
          .output_tokens_per_s = s.output_tokens_per_s,
          .total_tokens_per_s = s.total_tokens_per_s};
}

/// Sizes of frequent steps, which are not interpolated.
std::vector<int64_t> usual_sizes(const Request& r, const ServerLimits& limits) {
  std::vector<int64_t> sizes = {limits.max_num_batched_tokens, limits.max_num_seqs};
  if (r.load.max_prompt <= r.prompt && r.load.trace.empty()) sizes.push_back(r.prompt);
  const int64_t batches = checked_multiply(r.execution.dp, r.execution.pp);
  if (r.load.concurrency > 0)
    sizes.push_back(std::min(ceil_divide(r.load.concurrency, batches), limits.max_num_seqs));
  return sizes;
}

/// The times of steps on all stages of a server.
class ServerCosts {
 public:
  ServerCosts(const LlmSteps& steps, const ServerLimits& limits) : steps_(steps) {
    const std::vector<int64_t> sizes = usual_sizes(steps.asked(), limits);
    for (size_t part = 0; part < steps.parts().size(); ++part)
      costs_.emplace_back(steps, part, sizes);
  }

  std::vector<double> seconds(std::span<const ServingBatch> ranks) {
    std::vector<double> stages;
    for (size_t part = 0; part < costs_.size(); ++part)
      stages.insert(stages.end(), static_cast<size_t>(steps_.parts()[part].stages),
                    costs_[part].seconds(ranks));
    return stages;
  }

 private:
  const LlmSteps& steps_;
  std::deque<StepCosts> costs_;  ///< their functions point into them
};

}  // namespace

ServerLimits server_limits(const LlmSteps& steps) {
  ServerLimits limits = make_limits(steps.asked());
  limits.dp = steps.plan().dp;
  limits.pp = steps.plan().pp;
  return limits;
}

LlmForecast::Serving forecast_server(const LlmSteps& steps, const ServingLoad& load,
                                     const ServerLimits& limits, const LlmForecast& alone) {
  const Request& request = steps.asked();
  const Load& asked = request.load;
  ServerCosts costs(steps, limits);
  Fleet fleet;
  fleet.pool = {
      .servers = request.deployment.replicas,
      .limits = limits,
      .step_s = [&](std::span<const ServingBatch> ranks) { return costs.seconds(ranks); }};
  fleet.router = request.deployment.router;
  const ServingResult s = simulate_fleet(load, fleet);
  LlmForecast::Serving result;
  result.rate = asked.rate;
  result.concurrency = asked.concurrency;
  result.trace = !asked.trace.empty();
  result.max_num_seqs = limits.max_num_seqs;
  result.max_num_batched_tokens = limits.max_num_batched_tokens;
  // Of one server, over its data-parallel ranks.
  result.cache_tokens = checked_product({limits.cache_blocks, limits.block_tokens, limits.dp});
  result.most_sequences =
      std::min(checked_multiply(limits.max_num_seqs, limits.dp), alone.largest_batch);
  result.most_in_flight = s.most_in_flight;
  result.all = part(s.all, alone);
  if (s.steady) result.steady = part(*s.steady, alone);
  result.ttft_limit_s = asked.ttft_s;
  result.tpot_limit_s = asked.tpot_s;
  if (asked.ttft_s || asked.tpot_s)
    result.goodput_requests_per_s = goodput(s, asked.ttft_s, asked.tpot_s);
  result.mean_batch = s.mean_batch;
  result.busy_share = s.busy_share;
  result.cache_use = s.cache_use;
  result.preemptions = s.preemptions;
  result.keeps_up = s.keeps_up;
  result.gpus = all_gpus(request);
  return result;
}

}  // namespace tilecast
