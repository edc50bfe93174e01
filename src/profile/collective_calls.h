#pragma once

// Collectives of a trace, as the models of collectives know them.

#include <optional>

#include "collectives/collective.h"
#include "profile/trace.h"
#include "tilecast/result.h"

namespace tilecast {

/// A collective with its bytes as `collective_time` counts them.
struct KnownCollective {
  CollectiveKind kind{};
  DType dtype{};
  int64_t bytes = 0;
};

/// nullopt: a kind or dtype that has no model, or no size.
std::optional<KnownCollective> known_collective(const TracedCollective& traced);

/// Where the ranks of a group are on a cluster that the job's ranks fill in their order.
/// `world_size`: ranks of the job; 0: not known. nullopt: the trace does not state the ranks.
std::optional<CommGroup> group_on(const TracedCollective& traced, int64_t world_size,
                                  const Cluster& cluster);

/// Its time on a cluster, which has as many nodes as it takes. nullopt: there is no model, or the
/// trace does not state what it needs. Throws Error{kInput} for ranks that the cluster cannot hold.
std::optional<Interval> collective_there(const TracedCollective& traced, int64_t world_size,
                                         const Cluster& cluster);

/// "2,873,320 elements, 8 ranks".
std::string sizes_of(const TracedCollective& traced);

}  // namespace tilecast
