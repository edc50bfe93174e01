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
#include "tilecast/plan.h"

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

struct ServingPlan;
/// The options of a candidate, as the command line has them.
std::string options_text(const ServingPlan& plan, const ServingCandidate& candidate);
/// Warnings of each kind of GPU, with its id where there are several.
std::vector<std::string> plan_warning_texts(const ServingPlan& plan);

/// A candidate with what follows from its plan.
struct ServingCandidateRow;
/// One kind of GPU of a plan.
struct ServingHardwareRow;

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
  std::vector<PlanAlternative> alternatives;
  std::map<std::string, int64_t> impossible;  ///< by reason
  /// Warnings of the best candidate's forecast, for each kind of GPU; empty: none of it was
  /// simulated.
  std::vector<std::vector<Warning>> warnings;
  Request used;

  static constexpr size_t kListed = 10;

  std::vector<ServingCandidateRow> rows() const;
  std::vector<ServingHardwareRow> hardware() const;
  /// The options of the first candidate; nullopt: none meets the limits.
  std::optional<std::string> winner() const;

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

  template <typename Fields>
  static void fields(Fields& field) {
    field.is("ServingPlan", "The best ways to serve a model on a number of GPUs.");
    field("schema_version", "", "of this schema", [](const ServingPlan&) { return 1; });
    field("kind", "", "serving", [](const ServingPlan&) { return std::string_view("serving"); },
          {"serving"});
    field("model", "", "name of the model", &ServingPlan::model);
    field("hardware", "", "kinds of GPUs", &ServingPlan::hardware);
    field("gpus", "", "of each kind", &ServingPlan::gpus);
    field("prompt", "tokens", "mean length", &ServingPlan::prompt);
    field("output", "tokens", "mean length", &ServingPlan::output);
    field("software", "", "whose kernels and scheduler", &ServingPlan::software);
    field("ttft_s", "s", "limit; null: none", &ServingPlan::ttft_s);
    field("tpot_s", "s", "limit; null: none", &ServingPlan::tpot_s);
    field("percentile", "", "of requests that the limits apply to", &ServingPlan::percentile);
    field("winner", "", "options of tilecast forecast; null: none meets the limits",
          &ServingPlan::winner);
    field("warnings", "", "sentences that readers of the numbers should know",
          [](const ServingPlan& x) { return plan_warning_texts(x); });
    field("meeting", "", "candidates that meet the limits", &ServingPlan::meeting);
    field("simulated", "", "to their end", &ServingPlan::simulated);
    field("pruned", "", "simulated until they were sure to miss a limit; with --full-search none",
          &ServingPlan::pruned);
    field("fitting", "", "candidates that fit", &ServingPlan::fitting);
    field("candidates", "",
          "those that meet the limits, the best first; those that miss them, the nearest first; "
          "the others",
          &ServingPlan::rows);
    field("front", "",
          "indices of the Pareto front of the candidates that meet the limits (of all that were "
          "simulated, if none does), by rising tokens/s of a user",
          &ServingPlan::front);
    field("alternatives", "", "the best candidates with another value of an option than the first",
          &ServingPlan::alternatives);
    field("impossible", "", "degrees that the model does not allow",
          [](const ServingPlan& x) { return impossible_degrees(x.impossible); });
    field("options", "",
          "options that all candidates share: values by the names of the command-line options "
          "(with _ for -), in their units; options without a value are omitted",
          [](const ServingPlan& x) { return option_values(x.used); });
  }
};

struct ServingHardwareRow {
  std::string gpu;  ///< id
  int64_t device_bytes = 0;
  std::optional<double> price_per_gpu_hour;

  template <typename Fields>
  static void fields(Fields& field) {
    field.is("ServingHardware", "One kind of GPU.");
    field("gpu", "", "id of the GPU", &ServingHardwareRow::gpu);
    field("device_bytes", "bytes", "what programs see of its memory",
          &ServingHardwareRow::device_bytes);
    field("price_per_gpu_hour", "", "null: not given", &ServingHardwareRow::price_per_gpu_hour);
  }
};

struct ServingCandidateRow {
  ServingCandidate candidate;
  std::string gpu;  ///< id
  bool pareto = false;
  std::optional<double> cost_of_million_tokens;
  std::optional<bool> limits_certain;

  /// `value` of a simulated candidate; else nullptr.
  template <typename T>
  const T* if_simulated(const T& value) const {
    return candidate.simulated ? &value : nullptr;
  }
  /// `value` of a candidate with intervals; else nullopt.
  template <typename Get>
  std::optional<double> interval(Get get) const {
    if (!candidate.simulated || !candidate.intervals) return std::nullopt;
    return get(*candidate.intervals);
  }

  template <typename Fields>
  static void fields(Fields& field) {
    field.is("ServingCandidate",
             "A layout under a load of `concurrency` clients for each replica.");
    field("gpu", "", "id of the GPU", &ServingCandidateRow::gpu);
    field("tp", "", "tensor-parallel ranks",
          [](const ServingCandidateRow& x) { return (x.candidate.tp); });
    field("pp", "", "pipeline stages",
          [](const ServingCandidateRow& x) { return (x.candidate.pp); });
    field("dp", "", "data-parallel ranks of attention",
          [](const ServingCandidateRow& x) { return (x.candidate.dp); });
    field("ep", "", "expert-parallel ranks",
          [](const ServingCandidateRow& x) { return (x.candidate.ep); });
    field("all2all_backend", "", "how tokens reach the ranks with their experts",
          [](const ServingCandidateRow& x) { return (x.candidate.all2all); });
    field("prefill_workers", "", "servers of the same layout that compute prompts only",
          [](const ServingCandidateRow& x) { return (x.candidate.prefill_workers); });
    field("replicas", "", "as many as the GPUs hold",
          [](const ServingCandidateRow& x) { return (x.candidate.replicas); });
    field("dtype", "", "empty: the checkpoint's own",
          [](const ServingCandidateRow& x) { return (x.candidate.dtype); });
    field("kv_dtype", "", "empty: that of the model",
          [](const ServingCandidateRow& x) { return (x.candidate.kv_dtype); });
    field("concurrency", "", "clients of each replica",
          [](const ServingCandidateRow& x) { return (x.candidate.concurrency); });
    field("fits", "", "whether the longest request does",
          [](const ServingCandidateRow& x) { return (x.candidate.fits); });
    field("peak_bytes", "bytes", "of one rank",
          [](const ServingCandidateRow& x) { return (x.candidate.peak_bytes); });
    field("margin_bytes", "bytes", "below 0: it does not fit",
          [](const ServingCandidateRow& x) { return (x.candidate.margin_bytes); });
    field("simulated", "",
          "false: it does not fit, or less load misses a limit already or writes as much (within 1 "
          "%), or it is pruned",
          [](const ServingCandidateRow& x) { return (x.candidate.simulated); });
    field("pruned", "",
          "its simulation ended as soon as it was sure to miss a limit that less load keeps",
          [](const ServingCandidateRow& x) { return (x.candidate.pruned); });
    field("meets_limits", "", "simulated, and within the limits, if there are any",
          [](const ServingCandidateRow& x) { return (x.candidate.meets); });
    field("pareto", "",
          "no other is better both for a user and for a GPU, of those that meet the limits if any "
          "does",
          &ServingCandidateRow::pareto);
    field.if_set("ttft_s", "s", "at the percentile, of the steady state, as the next",
                 [](const ServingCandidateRow& x) { return x.if_simulated(x.candidate.ttft_s); });
    field.if_set("tpot_s", "s", "time per output token",
                 [](const ServingCandidateRow& x) { return x.if_simulated(x.candidate.tpot_s); });
    field.if_set("mean_ttft_s", "s", "mean time to first token", [](const ServingCandidateRow& x) {
      return x.if_simulated(x.candidate.mean_ttft_s);
    });
    field.if_set(
        "mean_tpot_s", "s", "mean time per output token",
        [](const ServingCandidateRow& x) { return x.if_simulated(x.candidate.mean_tpot_s); });
    field.if_set(
        "tokens_per_s", "1/s", "written by all replicas",
        [](const ServingCandidateRow& x) { return x.if_simulated(x.candidate.tokens_per_s); });
    field.if_set("requests_per_s", "1/s", "of all replicas", [](const ServingCandidateRow& x) {
      return x.if_simulated(x.candidate.requests_per_s);
    });
    field.if_set("user_tokens_per_s", "1/s", "1 / mean_tpot_s", [](const ServingCandidateRow& x) {
      return x.if_simulated(x.candidate.user_tokens_per_s);
    });
    field.if_set(
        "gpu_tokens_per_s", "1/s", "tokens_per_s over all GPUs",
        [](const ServingCandidateRow& x) { return x.if_simulated(x.candidate.gpu_tokens_per_s); });
    field.if_set("cost_of_million_tokens", "", "in the unit of the price",
                 &ServingCandidateRow::cost_of_million_tokens);
    field.if_set("ttft_low_s", "s",
                 "80 % interval, as the next; only of the rows that tables list: the first ten, "
                 "the front, the alternatives, the best of each kind of GPU",
                 [](const ServingCandidateRow& x) {
                   return x.interval([](const ServingIntervals& i) { return i.ttft.low_s; });
                 });
    field.if_set("ttft_high_s", "s", "80 % interval", [](const ServingCandidateRow& x) {
      return x.interval([](const ServingIntervals& i) { return i.ttft.high_s; });
    });
    field.if_set("tpot_low_s", "s", "80 % interval", [](const ServingCandidateRow& x) {
      return x.interval([](const ServingIntervals& i) { return i.tpot.low_s; });
    });
    field.if_set("tpot_high_s", "s", "80 % interval", [](const ServingCandidateRow& x) {
      return x.interval([](const ServingIntervals& i) { return i.tpot.high_s; });
    });
    field.if_set("gpu_tokens_low_per_s", "1/s", "80 % interval", [](const ServingCandidateRow& x) {
      return x.interval([](const ServingIntervals& i) { return i.gpu_tokens_low_per_s; });
    });
    field.if_set("gpu_tokens_high_per_s", "1/s", "80 % interval", [](const ServingCandidateRow& x) {
      return x.interval([](const ServingIntervals& i) { return i.gpu_tokens_high_per_s; });
    });
    field.if_set("extrapolated", "",
                 "part of the time comes from no measurement of the GPU's class or links",
                 [](const ServingCandidateRow& x) {
                   return x.candidate.simulated && x.candidate.intervals
                              ? &x.candidate.intervals->extrapolated
                              : nullptr;
                 });
    field.if_set(
        "limits_certain", "",
        "with limits: the intervals cross none of them, or one is missed by all of its interval",
        &ServingCandidateRow::limits_certain);
  }
};

/// Throws Error for a model or options that cannot be forecast.
ServingPlan plan_serving(const Forecaster& forecaster, const ModelRef& model,
                         const ServingQuery& query);

/// The request that `forecast_llm` needs for a candidate.
Request request_of(const ServingPlan& plan, const ServingCandidate& candidate);

}  // namespace tilecast
