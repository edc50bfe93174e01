#pragma once

// The memory that serving software gives to its cache at the start.

#include <optional>
#include <string>

#include "scenario/generation/served_model.h"
#include "software/software.h"

namespace tilecast {

struct PoolLimits {
  int64_t max_num_seqs = 256;
  int64_t max_num_batched_tokens = 8192;
};

PoolLimits pool_limits(const Request& request);

/// Bytes that a rank of a stage needs beside the cache.
struct RankBytes {
  int64_t weights = 0;
  int64_t activations = 0;  ///< peak of the largest step
  size_t part = 0;          ///< the stage, see ServedModel::stages
};

/// The option of the software that limits its memory, and its value; "": it has none.
struct PoolRule {
  std::string option;
  double fraction = 1;
};
PoolRule pool_rule(const ServedModel& served);

/// Buffers of collectives among its bytes outside of PyTorch.
int64_t communication_bytes(const CachePool& pool, const SoftwareStack& stack);

/// Bytes that the server takes beside the rule's budget: CUDA context, captured graphs, and for
/// SGLang activations.
int64_t beside_budget_bytes(const CachePool& pool, const SoftwareStack& stack);

/// nullopt for software that does not serve.
std::optional<CachePool> make_pool(const ServedModel& served, const PoolLimits& limits,
                                   const RankBytes& rank);

}  // namespace tilecast
