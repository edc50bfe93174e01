#pragma once

// The best way to serve a model on a number of GPUs: a search over layouts, precisions and load,
// on one or several kinds of GPUs. Library: tilecast::plan.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "tilecast/forecast.h"
#include "tilecast/llm.h"

namespace tilecast {

/// Which value of each request's times a limit applies to.
enum class Percentile : uint8_t { kMean, kMedian, kP99 };
constexpr auto choice_words(Percentile) {
  return std::array<std::string_view, 3>{"mean", "median", "p99"};
}

/// GPUs of one kind.
struct ServingHardware {
  GpuRef gpu;
  std::string cluster;  ///< id, alias or file; "": nodes of the GPU
  double price_per_gpu_hour = 0;
};

/// The values that a search may use; an empty list: all that docs/explanation/plans.md names.
struct ServingSpace {
  std::vector<int64_t> tp, pp, dp, ep, prefill_workers, concurrency;
  std::vector<std::string> dtypes, kv_dtypes;
};

struct ServingQuery {
  /// The options that all candidates share: prompt, output, software, limits of Load, …
  Request request;
  std::vector<ServingHardware> hardware;  ///< one at least
  int64_t gpus = 0;                       ///< of each kind; 0: `nodes` nodes of the first
  int64_t nodes = 1;
  std::optional<double> ttft_s, tpot_s;
  Percentile percentile = Percentile::kP99;
  ServingSpace space;
  bool has_prices = false;
  /// All loads are simulated to their end.
  bool full_search = false;
};

/// 80 % intervals of a candidate, in which the measured values are expected.
struct ServingIntervals {
  Estimate ttft, tpot;  ///< at the percentile of the limits
  /// Clients send their next request when one is answered: throughput is inverse to the mean time
  /// of a request, which has the interval.
  double gpu_tokens_low_per_s = 0, gpu_tokens_high_per_s = 0;
  bool extrapolated = false;  ///< part of the time comes from no measurement
};

/// A layout under a load of `concurrency` clients for each replica.
struct ServingCandidate {
  size_t hardware = 0;  ///< index
  int64_t tp = 1, pp = 1, dp = 1, ep = 1;
  All2All all2all = All2All::kAllGather;
  int64_t replicas = 1;  ///< as many as the GPUs hold; GPUs that are left over are idle
  /// Servers of the same layout that compute prompts only; 0: replicas do so themselves.
  int64_t prefill_workers = 0;
  std::string dtype, kv_dtype;
  int64_t concurrency = 1;
  bool fits = true;
  int64_t peak_bytes = 0;
  int64_t margin_bytes = 0;  ///< below 0: the longest request does not fit
  /// false: it does not fit, or less load misses a limit already, or writes as much (within 1 %),
  /// or it is pruned
  bool simulated = false;
  /// Its simulation ended as soon as it was sure to miss a limit that less load keeps. So it cannot
  /// be among those that keep the limits, nor the nearest of those that miss them.
  bool pruned = false;
  /// Times of the steady state, at the percentile that limits apply to; and means.
  double ttft_s = 0, tpot_s = 0, mean_ttft_s = 0, mean_tpot_s = 0;
  double mean_request_s = 0;     ///< from sending to the last token
  double tokens_per_s = 0;       ///< written by all replicas
  double requests_per_s = 0;     ///< of all replicas
  double user_tokens_per_s = 0;  ///< 1 / mean_tpot_s
  double gpu_tokens_per_s = 0;   ///< tokens_per_s over all GPUs, idle ones too
  bool meets = false;            ///< simulated, and within the limits, if there are any
  /// The largest factor by which a limit is missed; 1 or less: it meets both.
  double excess = 0;
  /// Intervals of candidates that tables list: the first ones (ServingPlan::kListed), the front,
  /// the alternatives, and the best one of each kind of GPU; nullopt: all others.
  std::optional<ServingIntervals> intervals;

  int64_t gpus() const { return tp * pp * dp * (replicas + prefill_workers); }
};

struct ServingPlan {
  std::string model;
  std::vector<std::string> gpu_ids, gpu_names, clusters;  ///< of each kind of hardware
  std::vector<double> prices;                             ///< per hour; empty: not given
  std::vector<int64_t> device_bytes;
  int64_t gpus = 0;
  int64_t prompt = 0, output = 0;
  std::string software;
  std::optional<double> ttft_s, tpot_s;
  Percentile percentile = Percentile::kP99;
  /// Candidates in this order: first those that meet the limits, most tokens/s for each GPU (with
  /// prices of several kinds: for each unit of money) first; then those that miss them, the nearest
  /// first; then what was pruned or not simulated; then what does not fit, the nearest first.
  std::vector<ServingCandidate> candidates;
  size_t meeting = 0, simulated = 0, pruned = 0, fitting = 0;
  /// If none fits: a lower share of the memory for the server with which the nearest does.
  std::optional<double> utilization_that_fits;
  /// The Pareto front: indices of candidates that no other one beats both for a user and for a GPU,
  /// by rising tokens/s of a user. If any candidate keeps the limits, only such candidates compete.
  std::vector<size_t> front;
  /// The best layout of each kind with another value of one option than the winner: index.
  struct Alternative {
    std::string option, value;
    size_t candidate = 0;
  };
  std::vector<Alternative> alternatives;
  std::map<std::string, int64_t> impossible;  ///< by reason
  /// Warnings of the best candidate's forecast, for each kind of GPU; empty: none of it was
  /// simulated.
  std::vector<std::vector<Warning>> warnings;
  Request used;

  static constexpr size_t kListed = 10;

  static bool crosses(const Estimate& time, const std::optional<double>& limit) {
    return limit && time.low_s <= *limit && time.high_s > *limit;
  }
  /// Whether the intervals say that the candidate meets the limits, or that it misses one.
  bool limits_are_certain(const ServingIntervals& of) const {
    const bool misses = (ttft_s && of.ttft.low_s > *ttft_s) || (tpot_s && of.tpot.low_s > *tpot_s);
    return misses || !(crosses(of.ttft, ttft_s) || crosses(of.tpot, tpot_s));
  }
  bool limited() const { return ttft_s.has_value() || tpot_s.has_value(); }
  /// Whether the best candidates cost least; else they write most tokens for each GPU.
  bool ranks_by_cost() const {
    for (const double price : prices) {
      if (price <= 0) return false;
    }
    return !prices.empty();
  }
  double cost_of_million_tokens(const ServingCandidate& c) const {
    constexpr double kSecondsPerHour = 3600, kTokens = 1e6;
    return prices[c.hardware] * static_cast<double>(gpus) / kSecondsPerHour * kTokens /
           c.tokens_per_s;
  }
};

/// Throws Error for a model or options that cannot be forecast.
ServingPlan plan_serving(const Forecaster& forecaster, const ModelRef& model,
                         const ServingQuery& query);

/// The request that `forecast_llm` needs for a candidate.
Request request_of(const ServingPlan& plan, const ServingCandidate& candidate);

}  // namespace tilecast
