// Times of a training step's passes, and the ends of the interval of all times.

#include <algorithm>

#include "sim/training_step.h"

namespace tilecast {
namespace {

/// A collective at an end of its interval, and its links with it.
void move(double& seconds, Transfer& transfer, int end) {
  const double moved =
      end < 0 ? std::max(0.0, seconds - transfer.less_s) : seconds + transfer.more_s;
  const double factor = seconds > 0 ? moved / seconds : 1;
  transfer.node_s *= factor;
  transfer.network_s *= factor;
  transfer.both_s *= factor;
  seconds = moved;
}

}  // namespace

double PartLoad::pass_s(PassKind kind, bool last) const {
  const double backward = last ? last_backward_s : backward_s;
  const double inputs_s = backward_s - weight_gradients_s;
  switch (kind) {
    case PassKind::kForward:
      return forward_s;
    case PassKind::kInputGradients:
      return inputs_s;
    case PassKind::kWeightGradients:
      return backward - inputs_s;
    default:
      return backward;
  }
}

void scale_kernels(PartLoad& part, double factor) {
  for (double* seconds :
       {&part.forward_s, &part.backward_s, &part.last_backward_s, &part.weight_gradients_s,
        &part.forward_communication_s, &part.backward_communication_s,
        &part.forward_transfer.node_s, &part.forward_transfer.network_s,
        &part.forward_transfer.both_s, &part.backward_transfer.node_s,
        &part.backward_transfer.network_s, &part.backward_transfer.both_s})
    *seconds *= factor;
  for (GradientBucket& bucket : part.buckets) {
    bucket.ready_s *= factor;
    bucket.copy_out_s *= factor;
  }
  for (GatheredUnit& unit : part.units) {
    unit.forward_s *= factor;
    unit.backward_s *= factor;
  }
}

TrainingStep with_exchanges_at(TrainingStep step, int end) {
  for (StageLoad& stage : step.stages) {
    for (PartLoad& part : stage.parts) {
      move(part.send_forward_s, part.send_forward_transfer, end);
      move(part.send_backward_s, part.send_backward_transfer, end);
      for (GradientBucket& bucket : part.buckets) move(bucket.reduce_s, bucket.transfer, end);
      for (GatheredUnit& unit : part.units) {
        move(unit.gather_s, unit.gather_transfer, end);
        move(unit.reduce_s, unit.reduce_transfer, end);
      }
    }
    move(stage.reduce_rest_s, stage.reduce_rest_transfer, end);
    move(stage.gather_parameters_s, stage.gather_parameters_transfer, end);
  }
  move(step.share_embeddings_s, step.share_embeddings_transfer, end);
  return step;
}

}  // namespace tilecast
