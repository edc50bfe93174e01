#pragma once

// Content of a question for a plan, of training and of serving.

#include <string>
#include <vector>

#include "command/question.h"
#include "tilecast/search.h"

namespace tilecast {

struct PlanQuestion {
  ModelSource model;
  GpuSource gpu;
  std::vector<GpuSource> gpus;
  std::string cluster;
  int64_t nodes = 1;
  std::string prices;              ///< "": not given
  std::vector<GivenOption> words;  ///< of the request that all candidates share
  TrainingSpace training;          ///< tp, pp, ep and dtypes are for serving, too
  ServingSpace serving;
  PlanObjective objective = PlanObjective::kTime;
  size_t top = 10;
  double memory_reserve = TrainingQuery::kMemoryReserve;
  Percentile percentile = Percentile::kP99;
  int64_t num_gpus = 0;
  int64_t clients = 0;  ///< of all replicas; 0: not given
  bool full_search = false;
  ForecasterSource forecaster;

  /// The request of the words with these names, and of `more`.
  Request request(std::span<const char* const> names, std::vector<GivenOption> more) const;
  bool has_word(std::string_view name) const;
  /// Prices of an hour of these GPUs, or of the cluster's; empty: not given.
  std::vector<GpuPrice> prices_of(const std::vector<GpuRef>& gpus) const;
};

/// Options of a pass that all candidates of a plan of training share, as `forecast` has them.
std::span<const char* const> training_request_options();
/// How large models are trained today, in place of the option's default; nullptr: the default.
const char* assumed_value(std::string_view option);
Reply answer_training_plan(PlanQuestion&& asked, const Asking& asking);

/// Options of a server that all candidates of a plan of serving share.
std::span<const char* const> serving_request_options();
Reply answer_serving_plan(PlanQuestion&& asked, const Asking& asking);

}  // namespace tilecast
