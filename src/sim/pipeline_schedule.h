#pragma once

// In which order a stage of a pipeline runs the passes of its micro-batches.

#include <cstdint>
#include <span>
#include <vector>

#include "tilecast/choices.h"

namespace tilecast {

struct PipelineShape {
  PipelineSchedule schedule = PipelineSchedule::k1F1B;
  int64_t stages = 1;
  int64_t chunks = 1;  ///< parts of the model on each stage; above 1 if interleaved, 2 with ZB-V
  int64_t microbatches = 1;

  int64_t parts() const { return stages * chunks; }
};

/// Parts are numbered in the order of the model. Part c of stage s is number c · stages + s; ZB-V
/// goes back through the stages, so that the first stage also has the last part.
int64_t part_number(const PipelineShape& shape, int64_t stage, int64_t chunk);
int64_t stage_of_part(const PipelineShape& shape, int64_t number);

/// What a pass computes. Some schedules divide the backward pass: the gradients of inputs, which
/// the part before waits for, and the gradients of weights, which nothing but the optimizer needs.
enum class PassKind : uint8_t { kForward, kBackward, kInputGradients, kWeightGradients };

const char* pass_name(PassKind kind);

/// One pass of one micro-batch through one part of a stage.
struct PipelinePass {
  PassKind kind = PassKind::kForward;
  int64_t chunk = 0;
  int64_t microbatch = 0;

  /// Whether it hands gradients to the part before.
  bool returns() const { return kind == PassKind::kBackward || kind == PassKind::kInputGradients; }
  /// Whether it completes gradients of weights.
  bool completes() const {
    return kind == PassKind::kBackward || kind == PassKind::kWeightGradients;
  }
  bool operator==(const PipelinePass&) const = default;
};

/// The passes of a stage in their order. Sources: GPipe (Huang et al. 2019); 1F1B and interleaved:
/// Megatron-LM, megatron/core/pipeline_parallel/schedules.py; zero bubble: Qi et al. 2023, ZB-H1
/// and ZB-V, in the order of torch.distributed.pipelining (ScheduleInterleavedZeroBubble with one
/// part on each stage, ScheduleZBVZeroBubble). The interleaved schedule needs a number of
/// micro-batches that the stages divide.
std::vector<PipelinePass> pipeline_order(const PipelineShape& shape, int64_t stage);

/// Forward passes of a stage before its first backward pass, but for one that stands next to it.
/// Not for ZB-V.
int64_t forward_ahead(const PipelineShape& shape, int64_t stage);
/// How many of the first `passes` forward passes of a stage are of each of its parts.
std::vector<int64_t> forward_passes(const PipelineShape& shape, int64_t passes);

/// Bytes of a micro-batch in memory, by part of the stage: from its forward to its backward pass,
/// and, where gradients of weights are passes of their own, from the backward pass to these.
struct PassBytes {
  int64_t saved = 0, kept = 0;
};
/// The most bytes that micro-batches keep on a stage at a time.
int64_t most_bytes_in_flight(const PipelineShape& shape, int64_t stage,
                             std::span<const PassBytes> parts);

}  // namespace tilecast
