#pragma once

// What a simulated server does, for those who want to look at it step by step.

#include <cstdint>
#include <functional>
#include <span>

namespace tilecast {

struct ServingBatch;

/// Steps of one server that are alike and follow each other.
struct ServedSteps {
  double start_s = 0;
  double first_stage_s = 0;  ///< in which the first stage of the pipeline computes, from the start
  int64_t steps = 1;
  bool begins_counting = false;         ///< the steps before these are of the warm-up
  std::span<const ServingBatch> ranks;  ///< what each data-parallel rank computes in each step
};

using WatchSteps = std::function<void(const ServedSteps&)>;

}  // namespace tilecast
