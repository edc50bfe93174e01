#pragma once

#include <tuple>

#include "tilecast/search.h"

namespace tilecast {

/// All of a candidate but its load: what a single request depends on.
inline auto layout_of(const ServingCandidate& c) {
  return std::tuple(c.hardware, c.tp, c.pp, c.dp, c.ep, c.all2all, c.replicas, c.prefill_workers,
                    c.dtype, c.kv_dtype, c.max_model_len);
}

/// Sorts the candidates and fills in their numbers, the Pareto front and the alternatives.
void rank_servings(ServingPlan& plan);

}  // namespace tilecast
