#include "scenario/parallel/parallel_step.h"

#include <map>
#include <optional>

#include "base/checked.h"

namespace tilecast {
namespace {

/// What a part of the model receives from the part before; the gradient that goes back has the
/// same size.
Exchange receive(const std::vector<const ModelPart*>& parts, size_t number,
                 const RankLayout& layout) {
  const std::optional<StageLinks> links = layout.links_before(static_cast<int64_t>(number));
  if (!links) return {};
  const std::map<StageLinks, Exchange>& receives = parts[number]->receives;
  const auto found = receives.find(*links);
  return found == receives.end() ? Exchange{} : found->second;
}

StageLoad stage_load(const std::vector<const ModelPart*>& parts, int64_t stage,
                     const PassSetup& setup, const RankLayout& layout,
                     const CollectiveCosts& costs) {
  StageLoad load;
  const Parallel& p = setup.request.parallel;
  int64_t weights = 0, experts = 0;
  for (int64_t c = 0; c < layout.pipeline.chunks; ++c) {
    const auto number = static_cast<size_t>(part_number(layout.pipeline, stage, c));
    const ModelPart& part = *parts[number];
    load.parts.push_back(part.load);
    PartLoad& own = load.parts.back();
    if (splits_backward(layout.pipeline.schedule))
      own.weight_gradients_s = part.weight_gradients_share * part.load.backward_s;
    const Exchange back = receive(parts, number, layout);
    own.send_backward_s = back.seconds;
    own.send_backward_transfer = back.transfer;
    if (number + 1 < parts.size()) {
      const Exchange forward = receive(parts, number + 1, layout);
      own.send_forward_s = forward.seconds;
      own.send_forward_transfer = forward.transfer;
    }
    load.optimizer_s += part.optimizer_s;
    weights = checked_add(weights, part.trained_bytes);
    if (layout.ep > 1) experts = checked_add(experts, part.trained_expert_bytes);
    if (part.load.buckets.empty() && part.load.units.empty()) {
      load.reduce_rest_s += part.reduce.seconds;
      load.reduce_rest_transfer += part.reduce.transfer;
    }
  }
  const bool gathers = p.zero == Zero::kOptimizer || p.zero == Zero::kGradients;
  if (gathers && setup.request.optimizer.value_or(Optimizer::kNone) != Optimizer::kNone) {
    Exchange gather =
        costs.all_gather(weights - experts, setup.precision.dtype, layout.data_group());
    if (experts > 0)
      gather += costs.all_gather(experts, setup.precision.dtype, layout.expert_data_group());
    load.gather_parameters_s = gather.seconds;
    load.gather_parameters_transfer = gather.transfer;
  }
  return load;
}

}  // namespace

TrainingStep training_step(const std::vector<const ModelPart*>& parts, const PassSetup& setup,
                           const RankLayout& layout, const CollectiveCosts& costs) {
  TrainingStep step;
  step.pipeline = layout.pipeline;
  step.replicas = layout.dp;
  step.width = layout.width();
  step.slow = layout.slow;
  for (int64_t s = 0; s < layout.pp; ++s)
    step.stages.push_back(stage_load(parts, s, setup, layout, costs));
  // Copies of tied embeddings on one rank add their gradients without an exchange.
  const PipelineShape& shape = layout.pipeline;
  if (layout.pp == 1 || stage_of_part(shape, shape.parts() - 1) == 0) return step;
  const Graph &first = parts.front()->pass.graph(), &last = parts.back()->pass.graph();
  int64_t shared = 0;
  DType dtype = DType::kFp32;
  for (const TensorId id : shared_weights(first, last)) {
    shared = checked_add(shared, tensor_bytes(first.tensor(id)));
    dtype = first.tensor(id).dtype;
  }
  const Exchange sharing = costs.all_reduce(shared, dtype, layout.first_and_last());
  step.share_embeddings_s = sharing.seconds;
  step.share_embeddings_transfer = sharing.transfer;
  return step;
}

}  // namespace tilecast
