#pragma once

// Results of a training step over several ranks.

#include <cstdint>
#include <string>
#include <vector>

#include "tilecast/memory.h"

namespace tilecast {

/// One rank of one pipeline stage. Times are those of the whole step, in seconds: compute, exposed
/// communication and bubble sum up to the latency. Compute: all passes without the collectives
/// inside, copies of gradients, what slows kernels down, and the optimizer.
struct StageForecast {
  int64_t stage = 0;
  int64_t layers = 0;
  double forward_s = 0;  ///< of one micro-batch, also the next
  double backward_s = 0;
  double optimizer_s = 0;
  /// What reductions beside the backward pass add: copies of gradients into their buckets and back,
  /// and kernels that are slower while collectives run.
  double gradient_copies_s = 0, slowed_s = 0;
  double compute_s = 0;
  double communication_s = 0;          ///< all collectives and messages, hidden or not
  double exposed_communication_s = 0;  ///< while nothing is computed
  double bubble_s = 0;                 ///< waiting for other stages
  int64_t weights_bytes = 0, gradients_bytes = 0, optimizer_bytes = 0;
  int64_t activations_bytes = 0;  ///< at most, of all micro-batches in flight
  int64_t peak_bytes = 0;
};

/// The embedding tables of one rank of a recommendation model.
struct RankTables {
  int64_t rank = 0;
  int64_t parts = 0;   ///< tables and parts of tables
  int64_t bytes = 0;   ///< of their rows and optimizer states
  double lookups = 0;  ///< of a batch
  double forward_s = 0;
  double backward_s = 0;  ///< with the sparse optimizer
  double sent_bytes = 0;  ///< sums that the rank sends, those to itself included
};

struct ParallelForecast {
  std::string cluster;  ///< id
  std::string cluster_name;
  int64_t nodes = 1;
  int64_t ranks = 1;
  int64_t micro_batch_size = 1, microbatches = 1;
  int64_t virtual_stages = 1;  ///< parts of the model on each pipeline stage
  int64_t slowest_stage = 0;   ///< that computes longest; the next five are its times
  double communication_s = 0, exposed_communication_s = 0, bubble_s = 0;
  /// What it computes beside passes and optimizer.
  double gradient_copies_s = 0, slowed_s = 0;
  int64_t simulated_ranks = 1;  ///< the others do the same at the same time
  std::vector<StageForecast> stages;
  std::vector<RankTables> rank_tables;  ///< of a recommendation model; else empty
};

/// One operation of a training step over several ranks.
struct StepOperation {
  std::string name;
  std::string stream;  ///< of the rank, which runs its operations one after the other
  bool communication = false;
  int64_t rank = 0;
  double start_s = 0, duration_s = 0;
  bool critical = false;  ///< it is on the critical path
};

}  // namespace tilecast
