#include "scenario/generation/server.h"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <span>

#include "base/checked.h"
#include "request/load.h"
#include "scenario/fit.h"
#include "scenario/generation/drafts.h"
#include "scenario/generation/generation_memory.h"
#include "scenario/generation/host_memory.h"
#include "scenario/generation/offered_load.h"
#include "scenario/generation/served_adapters.h"
#include "scenario/generation/single_request.h"
#include "scenario/generation/step_costs.h"
#include "software/server_start.h"

namespace tilecast {
namespace {

Distribution distribution(const LatencySummary& s, const Interval& alone,
                          const LoadSpread& spread) {
  return {under_load(alone, s.mean_s, spread), under_load(alone, s.median_s, spread),
          under_load(alone, s.p99_s, spread)};
}

ServerMetrics part(const RequestSummary& s, const GenerationForecast& alone,
                   const Forecaster& forecaster) {
  const LoadSpread tokens = tpot_spread(forecaster);
  return {.requests = s.requests,
          .ttft = distribution(s.ttft, alone.ttft, ttft_spread(forecaster)),
          .tpot = distribution(s.tpot, alone.tpot, tokens),
          .e2e = distribution(s.e2e, alone.request, tokens),
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
  ServerCosts(const ServedModel& served, const std::vector<int64_t>& sizes, KnownTimes& known)
      : served_(served) {
    for (size_t part = 0; part < served.stages.size(); ++part)
      costs_.emplace_back(served, part, sizes, known);
  }

  void add_seconds(std::span<const ServingBatch> ranks, std::vector<double>& stage_s) {
    for (size_t part = 0; part < costs_.size(); ++part)
      stage_s.insert(stage_s.end(), static_cast<size_t>(served_.stages[part].count),
                     costs_[part].seconds(ranks));
  }

 private:
  const ServedModel& served_;
  std::deque<StepCosts> costs_;  ///< their functions point into them
};

/// The limits of a server but the number of its cache blocks.
ServerLimits server_limits(const ServedModel& served) {
  ServerLimits limits = make_limits(served.asked);
  // States of recurrent layers are not kept: their prefix cache is off by default.
  limits.keeps_preempted = served.decoder().recurrent_layers == 0;
  limits.prefix_caching = limits.prefix_caching && served.decoder().recurrent_layers == 0;
  if (served.asked.load.kv_offloading_bytes > 0 && limits.prefix_caching)
    add_host_memory(limits, served);
  add_adapters(limits, served);
  limits.dp = served.plan.dp;
  limits.pp = served.plan.pp;
  limits.tokens_per_step = tokens_per_step(served.asked.deployment.speculation);
  return limits;
}

/// The request of one typical request, with the load that was asked for.
Request with_load(const ServedModel& served, const Request& asked) {
  Request typical = served.asked;
  typical.load.concurrency = asked.load.concurrency;
  return typical;
}

/// A server that keeps up answers what is offered. What it does in the steady part differs from
/// that by chance: some of the work belongs to requests that came before or come later.
ServerMetrics at_offered_rate(ServerMetrics part, double rate,
                              const std::vector<RequestTimes>& requests) {
  double prompts = 0, outputs = 0;
  for (const RequestTimes& r : requests) {
    prompts += static_cast<double>(r.prompt);
    outputs += static_cast<double>(r.output);
  }
  const double seconds = static_cast<double>(requests.size()) / rate;
  part.requests_per_s = rate;
  part.output_tokens_per_s = outputs / seconds;
  part.total_tokens_per_s = (prompts + outputs) / seconds;
  return part;
}

PrefixCacheForecast describe(const PrefixUse& use, const ServerLimits& limits,
                             const ServedModel& served) {
  const auto share = [&](int64_t tokens) {
    return static_cast<double>(tokens) / static_cast<double>(use.prompts);
  };
  return {
      .hit_ratio = share(use.hits),
      .host_hit_ratio = share(use.host_hits),
      .most_hit_ratio = share(use.most_hits),
      .hit_tokens = use.hits,
      .host_hit_tokens = use.host_hits,
      .evicted_tokens = use.evicted,
      .cached_tokens = use.cached,
      .host_capacity_tokens = checked_product({limits.host_blocks, limits.block_tokens, limits.dp}),
      .host_cached_tokens = use.host_cached,
      .host_bytes_per_s = limits.host_blocks > 0 ? host_bytes_per_s(served) : 0};
}

GenerationForecast::Serving describe(const ServingResult& s, const ServingLoad& load,
                                     const Request& request, const ServerLimits& limits,
                                     const GenerationForecast& alone,
                                     const Forecaster& forecaster) {
  const Load& asked = request.load;
  GenerationForecast::Serving result;
  result.rate = asked.rate;
  result.concurrency = asked.concurrency;
  result.trace = !asked.trace.empty();
  if (result.trace) {
    for (const RequestTimes& r : s.requests)
      result.traced.push_back({r.sent_s, r.first_s, r.last_s});
  }
  result.max_num_seqs = limits.max_num_seqs;
  result.max_num_batched_tokens = limits.max_num_batched_tokens;
  // One server, over its data-parallel ranks.
  result.cache_tokens = checked_product({limits.cache_blocks, limits.block_tokens, limits.dp});
  result.most_sequences =
      std::min(checked_multiply(limits.max_num_seqs, limits.dp), *alone.memory.largest_batch);
  result.most_in_flight = s.most_in_flight;
  result.warmup_requests = s.warmup_requests;
  result.all = part(s.all, alone, forecaster);
  if (s.steady) result.steady = part(*s.steady, alone, forecaster);
  // Later turns of conversations come bit by bit: at first the rate is far below the offered one.
  const bool has_turns = std::any_of(load.requests.begin(), load.requests.end(),
                                     [](const RequestSpec& r) { return r.follows; });
  if (result.steady && asked.rate > 0 && !has_turns && s.keeps_up && s.queue_is_short)
    result.steady = at_offered_rate(*result.steady, asked.rate, s.requests);
  result.ttft_limit_s = asked.ttft_s;
  result.tpot_limit_s = asked.tpot_s;
  if (asked.ttft_s || asked.tpot_s)
    result.goodput_requests_per_s = goodput(s, asked.ttft_s, asked.tpot_s);
  if (s.itl.mean_s > 0) result.itl = distribution(s.itl, alone.tpot, itl_spread(forecaster));
  result.mean_batch = s.mean_batch;
  result.busy_share = s.busy_share;
  result.cache_use = s.cache_use;
  result.preemptions = s.preemptions;
  if (request.lora_rank > 0) {
    result.adapter_loads = s.adapter_loads;
    result.mean_adapters = s.mean_adapters;
  }
  result.keeps_up = s.keeps_up;
  result.gpus = all_gpus(request);
  result.replicas = request.deployment.replicas;
  return result;
}

PrefillPoolForecast describe(const ServingResult& s, const PrefillWorkers& workers,
                             const Request& request, const ServerLimits& limits) {
  const PrefillPool& pool = request.deployment.prefill;
  return {.workers = pool.workers,
          .tp = pool.tp,
          .pp = pool.pp,
          .dp = pool.dp,
          .ep = pool.ep,
          .gpus = prefill_worker_gpus(request),
          .cache_tokens = checked_product({limits.cache_blocks, limits.block_tokens, limits.dp}),
          .busy_share = s.prefill_busy_share,
          .transfer_s = workers.after_prefill_s(request.prompt),
          .mean_transfer_s = s.mean_transfer_s};
}

EncodePoolForecast describe(const EncodeUse& use, const EncodeWorkers& workers,
                            const Request& request) {
  const EncodePool& pool = request.deployment.encode;
  return {.workers = pool.workers,
          .tp = pool.tp,
          .gpus = pool.tp,
          .images_together = workers.tower().most_together(),
          .mean_images = use.mean_images,
          .busy_share = use.busy_share,
          .transfer_s = workers.transfer_s(workers.largest_share()),
          .mean_encode_s = use.mean_s};
}

/// Numbers of images that runs of the tower often have.
std::shared_ptr<const GridKnots> encoder_knots(const EncodeWorkers& workers) {
  return std::make_shared<const GridKnots>(
      std::vector<int64_t>{workers.largest_share(), workers.tower().most_together()});
}

}  // namespace

/// A load, and the limits of the servers under it.
struct Server::Under {
  ServingLoad load;
  Request typical;
  ServerLimits limits, worker_limits;
  int64_t worker_bytes = 0, encoder_bytes = 0;
};

Server::Server(const ServedModel& served, const OtherPools& others, KnownServer& known)
    : served_(served),
      workers_(others.prefill),
      encoders_(others.encode),
      known_(known),
      memory_(known.memory_of(known.server_memory, served)),
      worker_memory_(workers_ == nullptr
                         ? nullptr
                         : &known.memory_of(known.worker_memory, workers_->served())) {}

const ServerMemory& KnownServer::memory_of(std::optional<ServerMemory>& known,
                                           const ServedModel& served) {
  if (!known) known = tilecast::server_memory(served);
  return *known;
}

void Server::add_memory(GenerationForecast& f, Under& under, Advice advice) const {
  under.limits = server_limits(served_);
  const int64_t needed = add_server_memory(f, served_, memory_, under.load, under.limits);
  if (advice == Advice::kGive) warn_of_memory(f, served_, needed);
  if (encoders_ != nullptr) add_encoder_memory(f, under, advice);
  if (workers_ == nullptr) return;
  const ServedModel& served = workers_->served();
  under.worker_limits = server_limits(served);
  GenerationForecast worker{.continuous = true, .parameters = f.parameters};
  const int64_t worker_needed = add_server_memory(worker, served, *worker_memory_,
                                                  prompts_only(under.load), under.worker_limits);
  if (advice == Advice::kGive) tilecast::warn_of_memory(worker, served, worker_needed);
  under.worker_bytes = worker.memory.peak_bytes;
  f.memory.fits = f.memory.fits && worker.memory.fits;
  for (Warning& warning : worker.warnings) {
    warning.facts.push_back({"prefill", int64_t{1}});
    f.warnings.push_back(std::move(warning));
  }
}

void Server::add_encoder_memory(GenerationForecast& f, Under& under, Advice advice) const {
  const Memory memory = encoders_->memory();
  under.encoder_bytes = memory.peak_bytes;
  f.memory.fits = f.memory.fits && memory.fits;
  if (memory.fits || advice == Advice::kNone) return;
  Warning warning = does_not_fit({.needed_bytes = memory.peak_bytes,
                                  .usable_bytes = memory.usable_bytes,
                                  .largest_batch = std::nullopt},
                                 served_.device);
  warning.facts.push_back({"encode", int64_t{1}});
  if (const std::optional<int64_t> tp = encoders_->tp_that_fits())
    warning.facts.push_back({"ways_that_fit", fmt::format("--encode-tp {}", *tp)});
  f.warnings.push_back(std::move(warning));
}

std::optional<GenerationForecast::Serving> Server::simulate(const Under& under,
                                                            const GenerationForecast& alone,
                                                            const WatchSteps& watch) const {
  const Request& request = under.typical;
  ServerCosts costs(served_, usual_sizes(request, under.limits), known_.server_times);
  Fleet fleet;
  fleet.pool = {.servers = request.deployment.replicas,
                .limits = under.limits,
                .step_s = [&](auto ranks, auto& stage_s) { costs.add_seconds(ranks, stage_s); },
                .watch = watch};
  fleet.router = request.deployment.router;
  std::optional<ServerCosts> prompt_costs;
  std::optional<LazyGrid<1>> transfers;
  if (workers_ != nullptr) {
    prompt_costs.emplace(workers_->served(),
                         usual_sizes(with_load(workers_->served(), request), under.worker_limits),
                         known_.worker_times);
    transfers.emplace(std::make_shared<const GridKnots>(usual_sizes(request, under.limits)),
                      [&](const auto& x) { return workers_->after_prefill_s(x[0]); });
    fleet.prefill = {
        .servers = request.deployment.prefill.workers,
        .limits = under.worker_limits,
        .step_s = [&](auto ranks, auto& stage_s) { prompt_costs->add_seconds(ranks, stage_s); }};
    fleet.transfer_s = [&](int64_t prompt) { return transfers->at({static_cast<double>(prompt)}); };
  }
  std::optional<LazyGrid<1>> encode_times;
  if (encoders_ != nullptr) {
    encode_times.emplace(encoder_knots(*encoders_),
                         [&](const auto& x) { return encoders_->run_s(x[0]); });
    fleet.encoders = {
        .workers = request.deployment.encode.workers,
        .together = encoders_->tower().most_together(),
        .encode_s = [&](int64_t n) { return encode_times->at({static_cast<double>(n)}); },
        .transfer_s = [each = encoders_->transfer_s(1), more = encoders_->transfer_s(2)](
                          int64_t n) { return each + (more - each) * static_cast<double>(n - 1); }};
  }
  const ServingResult s = simulate_fleet(under.load, fleet);
  if (s.stopped) return std::nullopt;
  GenerationForecast::Serving result =
      describe(s, under.load, request, under.limits, alone, served_.forecaster);
  if (workers_ != nullptr) {
    result.prefill_pool = describe(s, *workers_, request, under.worker_limits);
    result.prefill_pool->peak_bytes = under.worker_bytes;
  }
  if (encoders_ != nullptr) {
    result.encode_pool = describe(*s.encode, *encoders_, request);
    result.encode_pool->peak_bytes = under.encoder_bytes;
  }
  if (s.prefix)
    result.prefix_cache = workers_ == nullptr
                              ? describe(*s.prefix, under.limits, served_)
                              : describe(*s.prefix, under.worker_limits, workers_->served());
  return result;
}

bool Server::starts() const {
  const ServerDefaults& server = software_def(*served_.asked.execution.software).server;
  return server_starts(server, memory_.pool.tokens, memory_.pool.concurrency);
}

void Server::add_serving(GenerationForecast& f, const Request& asked, Advice advice,
                         const std::optional<TimeLimits>& stop_beyond,
                         const WatchSteps& watch) const {
  const std::optional<VisionTower::Image> image = image_of(served_.model, asked);
  Under under{.load = make_load(asked, image ? image->tokens : 0),
              .typical = with_load(served_, asked)};
  under.load.stop_beyond = stop_beyond;
  add_memory(f, under, advice);
  if (!f.memory.fits) return;
  if (!starts()) {
    f.warnings.push_back({WarningCode::kDoesNotStart,
                          "",
                          0,
                          {{"max_model_len", f.pool->max_model_len},
                           {"tokens_that_fit", std::max<int64_t>(0, f.pool->tokens)}}});
    return;
  }
  f.serving = simulate(under, f, watch);
  if (!f.serving) return;
  f.used.load.requests = f.serving->all.requests;
  f.used.load.max_num_seqs = under.limits.max_num_seqs;
  if (!asked.load.trace.empty() && asked.load.lengths_given)
    f.warnings.push_back({WarningCode::kLengthsIgnored, "trace", 0, {}});
  const int64_t requests = f.serving->all.requests, clients = client_count(asked);
  if (clients > requests)
    f.warnings.push_back({WarningCode::kIdleClients,
                          "concurrency",
                          0,
                          {{"clients", clients}, {"requests", requests}}});
}

}  // namespace tilecast
