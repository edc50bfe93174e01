#pragma once

// Decode steps of one batch in which no sequence starts or ends. Goals: a step costs the same for
// any number of sequences; the results equal steps that look at each request, to the bit. Requests
// are updated once, when the run ends.

#include <span>
#include <vector>

#include "sim/scheduler.h"

namespace tilecast {

class DecodeRun {
 public:
  /// Steps before the one in which the first request ends; 0: there is no run.
  int64_t left() const { return left_; }
  /// Begins a run after a step in which all sequences of `ranks` decoded. Nothing happens if the
  /// scheduler may do anything else than before, or the caches lack room for all steps.
  void begin(std::span<ServerState> ranks, const ServerLimits& limits);
  /// The work of the next steps: one batch for each rank.
  void describe(std::vector<ServingBatch>& batches) const;
  /// Whether the caches have room for the next step: other batches may have taken it.
  bool has_room(std::span<const ServerState> ranks) const;
  /// Takes so many steps, fewer than `left`.
  void take(std::span<ServerState> ranks, int64_t steps);
  /// Ends the run.
  void end(std::span<ServerState> ranks);

 private:
  struct Rank {
    int64_t sequences = 0, computed = 0;  ///< tokens in the caches of all, at the start
    /// Sequences that need a block, by step (modulo the tokens of a block).
    std::vector<int64_t> blocks;
  };
  bool begin(const ServerState& state, Rank& rank);

  std::vector<Rank> ranks_;
  int64_t left_ = 0, taken_ = 0;
  size_t phase_ = 0;  ///< taken_ modulo the tokens of a block
};

}  // namespace tilecast
