#pragma once

#include <cstdint>
#include <string_view>

#include "placement/problem.h"

namespace tilecast {

struct SearchOptions {
  uint64_t seed = 1;
  int64_t rounds = 0;  ///< of removing and inserting again; 0: by the size of the problem
};

/// A fast placement. First every table as a whole, the most expensive first, each on the rank where
/// it delays least (longest processing time first, Graham 1969); then tables of the slowest ranks
/// are moved, exchanged and divided as long as that helps; then again and again some tables are
/// removed and inserted in the way and on the ranks where they delay least (ruin and recreate,
/// Schrimpf et al. 2000). A result that is slightly slower than the best one is also followed, ever
/// less so (record-to-record travel, Dueck 1993).
/// If the tables do not fit, the cost of the result says how much is missing.
/// The same arguments give the same placement.
TablePlacement search_placement(const ShardProblem& problem, const SearchOptions& options = {});

/// The quantity that simple rules balance over the ranks: they place whole tables, the largest
/// first, each on the rank with the least so far. Tables that fit on no rank are divided row-wise
/// over all.
enum class Rule : uint8_t { kSize, kLookups, kCost };
constexpr std::string_view kRuleWords[] = {"size", "lookups", "cost"};
TablePlacement place_by_rule(const ShardProblem& problem, Rule rule);

}  // namespace tilecast
