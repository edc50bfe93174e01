#pragma once

// What vLLM's profiling run holds at its peak, beside the activations of a step.

#include <cstdint>

#include "lower/program.h"
#include "scenario/generation/cache_pool.h"
#include "scenario/generation/served_model.h"

namespace tilecast {

/// The sampler after the largest step: its logits, and the hidden states that they are made of.
int64_t sampler_bytes(const ServedModel& served, const PoolLimits& limits);

/// Tensors that stay from the first step on: tables of rotary embedding, and the workspaces of
/// experts. `step`: that of the rank's stage, of any size.
int64_t held_bytes(const ServedModel& served, const PoolLimits& limits, const Program& step);

}  // namespace tilecast
