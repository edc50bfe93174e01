#include "scenario/parallel/rank_memory.h"

#include <algorithm>

#include "base/checked.h"
#include "scenario/generation/cache_pool.h"

namespace tilecast {
namespace {

/// One rank's share of bytes that the data-parallel ranks divide. `experts`: the part of the bytes
/// in experts, which `ep` times fewer ranks have.
int64_t share(int64_t bytes, int64_t experts, bool divided, const ParallelPlan& plan) {
  if (!divided) return bytes;
  return ceil_divide(checked_add(bytes, checked_multiply(experts, plan.ep - 1)), plan.data_ranks());
}

}  // namespace

bool is_plain(const Request& request, const ParallelPlan& plan) {
  return plan.pipeline.chunks == 1 && plan.pipeline.microbatches == 1 &&
         request.parallel.zero == Zero::kNone && !request.parallel.has_fp32_copies();
}

MemoryForecast rank_memory(const std::vector<const ModelPart*>& parts, int64_t stage,
                           const PassSetup& setup, const ParallelPlan& plan) {
  const Parallel& p = setup.request.parallel;
  MemoryForecast memory =
      forecast_memory(parts.front()->pass.graph(), parts.front()->pass.work->memory, setup);
  const bool plain = parts.size() == 1 && is_plain(setup.request, plan);
  const std::vector<int64_t> in_flight = most_in_flight(plan.pipeline, stage);
  int64_t expert_weights = 0, expert_gradients = 0;
  int64_t weights = 0, gradients = 0, optimizer = 0, inputs = 0, saved = 0, working = 0,
          gathered = 0, stepping = 0;
  for (size_t i = 0; i < parts.size(); ++i) {
    const PartMemory& own = parts[i]->memory;
    weights = checked_add(weights, own.weights_bytes);
    gradients = checked_add(gradients, own.gradients_bytes);
    expert_weights = checked_add(expert_weights, own.expert_weights_bytes);
    expert_gradients = checked_add(expert_gradients, own.expert_gradients_bytes);
    optimizer = checked_add(optimizer, own.optimizer_bytes);
    inputs = std::max(inputs, own.inputs_bytes);
    saved = checked_add(saved, checked_multiply(in_flight[i], own.saved_bytes));
    working = std::max(working, own.working_bytes);
    gathered = std::max(gathered, own.gathered_bytes);
    stepping = checked_add(stepping, own.optimizer_temporaries_bytes);
  }
  // DistributedDataParallel's buckets are as large as the gradients; Megatron's gradients are views
  // of its buffer.
  const bool buckets = plan.data_ranks() > 1 && !p.has_fp32_copies() && p.zero == Zero::kNone;
  memory.weights_bytes = share(weights, expert_weights, p.zero == Zero::kParameters, plan);
  memory.gradients_bytes = share(gradients, expert_gradients, p.zero >= Zero::kGradients, plan);
  memory.optimizer_bytes = optimizer;  // the optimizer step was divided already
  memory.activations_bytes = saved + working + inputs;
  memory.optimizer_temporaries_bytes = stepping;
  int64_t peak = checked_add(memory.workspace_bytes, memory.framework_bytes);
  if (plain) {
    peak = memory.peak_bytes;
  } else {
    // When the optimizer steps, nothing is saved for a backward pass, and no parameters are
    // gathered.
    const int64_t passing = working + (p.zero == Zero::kParameters ? gathered : 0);
    const bool in_step = stepping > saved + passing;
    const int64_t computed = in_step ? stepping : saved + passing;
    for (const int64_t bytes :
         {memory.weights_bytes, memory.gradients_bytes, memory.optimizer_bytes, computed, inputs})
      peak = checked_add(peak, bytes);
    memory.at_peak = {.weights_bytes = memory.weights_bytes,
                      .gradients_bytes = memory.gradients_bytes,
                      .optimizer_bytes = memory.optimizer_bytes,
                      .activations_bytes = in_step ? 0 : saved,
                      .temporaries_bytes = in_step ? stepping : passing,
                      .inputs_bytes = inputs};
    memory.peak_phase = in_step ? "optimizer" : "backward";
    memory.peak_node = "";
  }
  if (buckets) {
    peak = checked_add(peak, gradients);
    memory.gradient_buckets_bytes = gradients;
    memory.at_peak.gradients_bytes = checked_add(memory.at_peak.gradients_bytes, gradients);
  }
  memory.peak_bytes = peak;
  memory.margin_bytes = visible_bytes(setup.device) - peak;
  memory.fits = memory.margin_bytes >= 0;
  return memory;
}

}  // namespace tilecast
