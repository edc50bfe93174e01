#pragma once

// The memory that serving software gives to its cache at the start.

#include <optional>

#include "api/llm_steps.h"

namespace tilecast {

struct PoolLimits {
  int64_t max_num_seqs = 256;
  int64_t max_num_batched_tokens = 8192;
};

PoolLimits pool_limits(const Request& request);

/// nullopt for software that does not serve. `activations_bytes`: peak of the largest step.
std::optional<CachePool> plan_pool(const LlmSteps& steps, const PoolLimits& limits,
                                   int64_t weights_bytes, int64_t activations_bytes);

/// Memory that programs see: without what the driver and error correction take.
int64_t visible_bytes(const Device& device);

}  // namespace tilecast
