#pragma once

// A layout of servers under several loads, for `tilecast plan`: what does not depend on the load is
// computed once.

#include <memory>
#include <optional>

#include "scenario/generation/offered_load.h"
#include "scenario/generation/server.h"

namespace tilecast {

class ServedLayout {
 public:
  /// `request`: for servers; its concurrency is not read. `known`: of layouts that differ in the
  /// number of their servers only. Forecaster and `known` must outlive this object. Throws what
  /// forecast_generation throws.
  ServedLayout(const Forecaster& forecaster, const ModelRef& model, const GpuRef& gpu,
               const Request& request, KnownServer& known);

  /// Memory and `serving` as forecast_generation gives them with so many clients of each replica,
  /// bit for bit. All else is left out: results of single requests, intervals, warnings. `serving`
  /// is empty where the longest request does not fit, or the requests are sure to miss
  /// `stop_beyond`. `watch` sees the steps of the first server.
  GenerationForecast under(int64_t concurrency, const std::optional<TimeLimits>& stop_beyond,
                           const WatchSteps& watch = nullptr) const;

  /// As forecast_generation states it under the load that gives `serving`.
  std::optional<PowerForecast> power(const GenerationForecast::Serving& serving) const;

  const ServedModel& served() const { return served_; }

  /// Whether the server would start with a lower limit of the length only.
  bool needs_limit() const { return server_.needs_limit(); }
  /// Tokens of the longest request.
  int64_t longest() const { return longest_request(whole_); }

 private:
  OtherPools others() const { return {.prefill = workers_.get(), .encode = encoders_.get()}; }

  ModelRef model_;
  GpuRef gpu_;
  Request whole_;    ///< with the tokens of images
  Request typical_;  ///< with the lengths of one typical request
  ServedModel served_;
  std::unique_ptr<PrefillWorkers> workers_;
  std::unique_ptr<EncodeWorkers> encoders_;
  Server server_;
};

}  // namespace tilecast
