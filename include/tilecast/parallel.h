#pragma once

// Results of a training step over several ranks.

#include <cstdint>
#include <string>
#include <vector>

#include "tilecast/memory.h"

namespace tilecast {

/// One rank of one pipeline stage. Times are sums over the whole step, in seconds: compute, exposed
/// communication and bubble sum up to the latency. Compute: all passes without the collectives
/// inside, copies of gradients, what slows kernels down, and the optimizer.
struct StageForecast {
  int64_t stage = 0;
  int64_t layers = 0;
  double forward_s = 0;  ///< of one micro-batch, also the next
  double backward_s = 0;
  double optimizer_s = 0;
  /// Time that reductions beside the backward pass add: copies of gradients into their buckets and
  /// back, and kernels that are slower while collectives run.
  double gradient_copies_s = 0, slowed_s = 0;
  double compute_s = 0;
  double communication_s = 0;          ///< all collectives and messages, hidden or not
  double exposed_communication_s = 0;  ///< while nothing is computed
  double bubble_s = 0;                 ///< waiting for other stages
  int64_t weights_bytes = 0, gradients_bytes = 0, optimizer_bytes = 0;
  int64_t activations_bytes = 0;  ///< at most, of all micro-batches in flight
  int64_t peak_bytes = 0;

  template <typename Fields>
  static void fields(Fields& field) {
    field.is("Stage",
             "One rank of one pipeline stage. Compute, exposed communication and bubble sum up to "
             "the latency.");
    field("stage", "", "number of the stage", &StageForecast::stage);
    field("layers", "", "layers of the model on the stage", &StageForecast::layers);
    field("forward_s", "s", "of one micro-batch, with the collectives inside",
          &StageForecast::forward_s);
    field("backward_s", "s", "of one micro-batch, with the collectives inside",
          &StageForecast::backward_s);
    field("optimizer_s", "s", "the optimizer step", &StageForecast::optimizer_s);
    field("gradient_copies_s", "s",
          "copies of gradients into the buckets that are reduced, and back",
          &StageForecast::gradient_copies_s);
    field("slowed_s", "s", "what reductions that occupy multiprocessors add to the backward pass",
          &StageForecast::slowed_s);
    field("compute_s", "s",
          "all passes without the collectives inside, copies of gradients, what slows kernels "
          "down, and the optimizer",
          &StageForecast::compute_s);
    field("communication_s", "s", "all collectives and messages, hidden or not",
          &StageForecast::communication_s);
    field("exposed_communication_s", "s", "communication while nothing is computed",
          &StageForecast::exposed_communication_s);
    field("bubble_s", "s", "waiting for other stages", &StageForecast::bubble_s);
    field("weights_bytes", "bytes", "parameters and buffers", &StageForecast::weights_bytes);
    field("gradients_bytes", "bytes", "gradients of the parameters",
          &StageForecast::gradients_bytes);
    field("optimizer_bytes", "bytes", "optimizer states", &StageForecast::optimizer_bytes);
    field("activations_bytes", "bytes", "at most, of all micro-batches in flight",
          &StageForecast::activations_bytes);
    field("peak_bytes", "bytes", "the largest sum over time", &StageForecast::peak_bytes);
  }
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

  template <typename Fields>
  static void fields(Fields& field) {
    field.is("RankTables", "The embedding tables of one rank of a recommendation model.");
    field("rank", "", "number of the rank", &RankTables::rank);
    field("parts", "", "tables and parts of tables", &RankTables::parts);
    field("bytes", "bytes", "of their rows and optimizer states", &RankTables::bytes);
    field("lookups", "", "of a batch", &RankTables::lookups);
    field("forward_s", "s", "time of the lookups", &RankTables::forward_s);
    field("backward_s", "s", "with the sparse optimizer", &RankTables::backward_s);
    field("sent_bytes", "bytes", "sums that the rank sends, those to itself included",
          &RankTables::sent_bytes);
  }
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
  /// Computing time beside passes and optimizer.
  double gradient_copies_s = 0, slowed_s = 0;
  int64_t simulated_ranks = 1;  ///< the others do the same at the same time
  std::vector<StageForecast> stages;
  std::vector<RankTables> rank_tables;  ///< of a recommendation model; else empty

  template <typename Fields>
  static void fields(Fields& field) {
    field.is("Parallel", "A step over several ranks or micro-batches.");
    field("cluster", "", "id of the cluster", &ParallelForecast::cluster);
    field("nodes", "", "nodes of the cluster that take part", &ParallelForecast::nodes);
    field("ranks", "", "GPUs that take part", &ParallelForecast::ranks);
    field("micro_batch_size", "", "sequences of a micro-batch",
          &ParallelForecast::micro_batch_size);
    field("microbatches", "", "of each data-parallel rank", &ParallelForecast::microbatches);
    field("virtual_stages", "", "parts of the model on each pipeline stage",
          &ParallelForecast::virtual_stages);
    field("slowest_stage", "",
          "the stage that computes longest: the next five are its times, as are forward_s, "
          "backward_s and optimizer_s",
          &ParallelForecast::slowest_stage);
    field("communication_s", "s", "collectives and messages, hidden or not, of the slowest stage",
          &ParallelForecast::communication_s);
    field("exposed_communication_s", "s",
          "communication while nothing is computed, of the slowest stage",
          &ParallelForecast::exposed_communication_s);
    field("bubble_s", "s", "waiting for other stages, of the slowest stage",
          &ParallelForecast::bubble_s);
    field("gradient_copies_s", "s",
          "copies of gradients into the buckets that are reduced, and back, part of the compute "
          "time of the slowest stage",
          &ParallelForecast::gradient_copies_s);
    field("slowed_s", "s",
          "what reductions that occupy multiprocessors add to the backward pass, part of the "
          "compute time of the slowest stage",
          &ParallelForecast::slowed_s);
    field("simulated_ranks", "",
          "ranks that were simulated; the others do the same at the same time",
          &ParallelForecast::simulated_ranks);
    field("stages", "", "one rank of each pipeline stage", &ParallelForecast::stages);
    field.if_set(
        "rank_tables", "",
        "the embedding tables of each rank of a recommendation model; other models have no such "
        "key",
        [](const ParallelForecast& p) { return p.rank_tables.empty() ? nullptr : &p.rank_tables; });
  }
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
