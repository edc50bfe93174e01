#pragma once

// One step of parallel training, simulated over the compute and communication streams of the ranks.
// Passes of a micro-batch through a part of a stage are single operations: the collectives of
// tensor and context parallelism stand inside them, in order. Gradients, parameters and activations
// between stages are operations of their own. Messages that a rank sends at the same time share its
// links.

#include <cstdint>
#include <string>
#include <vector>

#include "sim/pipeline_schedule.h"
#include "sim/transfer.h"

namespace tilecast {

/// Gradients that are reduced together.
struct GradientBucket {
  double ready_s = 0;   ///< from the start of the backward pass of the last micro-batch
  double reduce_s = 0;  ///< the collective
  Transfer transfer = {};
  double copy_out_s = 0;  ///< back into the gradients, after the collective and all passes
};

/// A part of the model whose parameters are gathered before each pass through it (FSDP).
struct GatheredUnit {
  double forward_s = 0, backward_s = 0;
  double gather_s = 0;  ///< before each of the two
  double reduce_s = 0;  ///< of the gradients, after the backward pass
  Transfer gather_transfer = {}, reduce_transfer = {};
};

/// A part of a stage and what communication it causes.
struct PartLoad {
  double forward_s = 0, backward_s = 0;
  double last_backward_s = 0;  ///< of the last micro-batch, which prepares the reductions
  /// The part of both backward passes in which gradients of weights are computed, where these are
  /// passes of their own. What prepares the reductions belongs to them too.
  double weight_gradients_s = 0;
  /// Collectives inside of them.
  double forward_communication_s = 0, backward_communication_s = 0;
  Transfer forward_transfer = {}, backward_transfer = {};
  double send_forward_s = 0;   ///< activations to the next part of the model
  double send_backward_s = 0;  ///< gradients to the part before
  Transfer send_forward_transfer = {}, send_backward_transfer = {};
  std::vector<GradientBucket> buckets;  ///< in order of readiness

  /// Of a pass, where parameters are not gathered. `last`: of the last micro-batch.
  double pass_s(PassKind kind, bool last) const;
  std::vector<GatheredUnit> units;  ///< empty: the parameters are there; not with passes that
                                    ///< compute gradients of weights alone
};

struct StageLoad {
  std::vector<PartLoad> parts;
  double reduce_rest_s = 0;  ///< gradients that are reduced after all backward passes
  double optimizer_s = 0;
  double gather_parameters_s = 0;  ///< after the optimizer (ZeRO 1 and 2)
  Transfer reduce_rest_transfer = {}, gather_parameters_transfer = {};
};

/// Stages × data-parallel replicas × ranks of one stage of one replica.
struct TrainingStep {
  PipelineShape pipeline;
  std::vector<StageLoad> stages;
  double share_embeddings_s = 0;  ///< gradients of tied embeddings, first and last stage
  Transfer share_embeddings_transfer = {};
  int64_t replicas = 1;
  int64_t width = 1;  ///< ranks that work on one stage together: tensor and context parallelism
  /// How much longer each rank computes, by (stage · replicas + replica) · width + rank; empty: 1.
  std::vector<double> slow;
};

/// A part whose passes take `factor` times as long.
void scale_kernels(PartLoad& part, double factor);
/// The step with every exchange beside the passes at an end of its interval: -1 the lower one, 1
/// the upper one.
TrainingStep with_exchanges_at(TrainingStep step, int end);

/// Whether equal replicas, and the ranks that work on one stage, are simulated once.
enum class Folding : uint8_t { kSymmetric, kNone };

/// Times of one rank: compute + exposed communication + bubble = the step.
struct StageTimes {
  double compute_s = 0;
  double forward_s = 0, optimizer_s = 0;  ///< parts of it; the forward passes without collectives
  double communication_s = 0;             ///< all, hidden or not
  double exposed_communication_s = 0;     ///< while nothing is computed
  double bubble_s = 0;                    ///< waiting for other stages, without communication
};

/// A stream of a rank, which runs its operations one after the other. Links are used in both
/// directions.
enum class StepStream : uint8_t { kCompute, kCollectives, kActivations, kGradients };

/// One operation, for traces.
struct StepEvent {
  std::string name;
  StepStream stream = StepStream::kCompute;
  int64_t stage = 0;
  int64_t replica = 0;
  double start_s = 0, duration_s = 0;
  bool critical = false;
};

struct StepTimes {
  double seconds = 0;
  std::vector<StageTimes> stages;  ///< of the slowest replica
  int64_t simulated_replicas = 0;
  std::vector<StepEvent> events;  ///< if asked for
};

enum class Events : uint8_t { kNone, kAll };

StepTimes simulate_step(const TrainingStep& step, Folding folding, Events events = Events::kNone);

}  // namespace tilecast
