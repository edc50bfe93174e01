#pragma once

// One step of a recommendation model, training or (without all backward times) inference, simulated
// over the compute and communication streams of all ranks. Order of a rank's kernels: tables,
// bottom MLP, interaction and top MLP, their backward passes in reverse, tables. Sums of tables are
// exchanged while the bottom MLP computes, their gradients while its backward pass does; gradients
// of the MLPs are reduced in buckets. In training, ids of the next batch go to the ranks with their
// tables after the exchange of sums, beside whatever is computed (torchrec's
// TrainPipelineSparseDist): they delay other exchanges alone.

#include <cstdint>
#include <vector>

#include "sim/training_step.h"

namespace tilecast {

struct RecommendationStep {
  /// Times of each rank's tables.
  std::vector<double> tables_forward_s, tables_backward_s;
  double bottom_forward_s = 0, top_forward_s = 0;
  double top_backward_s = 0, bottom_backward_s = 0;
  double optimizer_s = 0;
  double exchange_s = 0;                ///< of sums
  double exchange_gradients_s = 0;      ///< of the gradients of sums
  double exchange_ids_s = 0;            ///< of the next batch
  double reduce_tables_s = 0;           ///< gradients of replicated tables
  std::vector<GradientBucket> buckets;  ///< of the MLPs; ready from the start of top_backward
};

/// A part of the step on all ranks.
struct RecommendationPart {
  const char* name = "";
  bool on_links = false;  ///< else on the GPU
  double seconds = 0;     ///< of the rank where it takes longest; of all its collectives
  double start_s = 0, end_s = 0;
};

struct RecommendationTimes {
  double seconds = 0;
  double forward_s = 0;   ///< until the last rank has the logits
  double backward_s = 0;  ///< from there until all gradients and tables are done
  double optimizer_s = 0;
  double compute_s = 0;                   ///< of the rank that computes most
  double communication_s = 0;             ///< of one rank
  double exposed_s = 0;                   ///< of the rank that computes most: the rest of the step
  std::vector<RecommendationPart> parts;  ///< that take time, by their start
};

RecommendationTimes simulate_recommendation(const RecommendationStep& step);

}  // namespace tilecast
