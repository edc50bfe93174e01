#pragma once

#include <cstdint>
#include <deque>
#include <limits>
#include <optional>
#include <unordered_map>
#include <vector>

#include "sim/engine.h"
#include "sim/least.h"
#include "sim/prefix_pieces.h"
#include "sim/scheduler.h"
#include "software/software.h"

namespace tilecast {

/// The servers of one pool.
struct PoolState {
  /// `images`: the load, where the servers run its vision tower.
  PoolState(const ServerPool& pool, const ServingLoad& load, std::vector<RequestTimes>& times,
            int64_t& work, bool shares_prefix, const ServingLoad* images)
      : requests(served_requests(load, pool.limits)),
        pool(pool),
        next_s(static_cast<size_t>(pool.servers), std::numeric_limits<double>::infinity()),
        in_flight(static_cast<size_t>(pool.servers), 0) {
    const int64_t prefix = shares_prefix ? shared_blocks(load, pool.limits) : 0;
    const PrefixRule* rule = nullptr;
    if (shares_prefix && pool.limits.prefix_caching && !load.parts.empty()) {
      rule = &software_def(pool.limits.software).prefix_cache;
      pieces = PrefixPieces(load, pool.limits.block_tokens);
      for (size_t i = 0; i < requests.size(); ++i) requests[i].pieces = pieces.of(i);
    }
    keeps_prefixes = rule != nullptr;
    for (int64_t i = 0; i < pool.servers; ++i)
      engines.emplace_back(
          pool, EngineShared{requests, times, work, rule, images, i == 0 && pool.watch}, prefix);
  }

  std::optional<PrefixUse> prefix_use(const ServingLoad& load,
                                      const std::vector<bool>& counts) const {
    if (!keeps_prefixes) return std::nullopt;
    PrefixUse use;
    use.most_hits = most_hit_tokens(load, pieces, pool.limits.block_tokens, counts);
    for (const Engine& engine : engines) engine.add_prefix_use(use);
    return use;
  }

  double busy_s() const {
    double all = 0;
    for (const Engine& engine : engines) all += engine.busy_s();
    return all;
  }

  void note(size_t index) {
    next_s.set(index, engines[index].next_s());
    in_flight.set(index, engines[index].in_flight());
  }

  std::vector<ServedRequest> requests;
  PrefixPieces pieces;
  bool keeps_prefixes = false;
  const ServerPool& pool;
  std::deque<Engine> engines;                      ///< which point into themselves
  Least<double> next_s;                            ///< of each server, when it does something next
  Least<int64_t> in_flight;                        ///< of each server
  size_t next = 0;                                 ///< round robin
  std::unordered_map<int64_t, size_t> of_session;  ///< which server had its last turn
};

}  // namespace tilecast
