#include "scenario/parallel/rank_memory.h"

#include <algorithm>
#include <cmath>

#include "base/checked.h"
#include "scenario/memory_total.h"

namespace tilecast {
namespace {

/// One rank's share of bytes that the data-parallel ranks divide. `experts`: the part of the bytes
/// in experts, which fewer ranks have.
int64_t share(int64_t bytes, int64_t experts, bool divided, const RankLayout& layout) {
  if (!divided) return bytes;
  const double more = static_cast<double>(experts) * (layout.expert_share() - 1);
  return ceil_divide(checked_add(bytes, std::llround(more)), layout.data_ranks());
}

/// What the parts of a stage keep adds up; one of them computes at a time.
PartMemory all_parts(const std::vector<const ModelPart*>& parts, const PipelineShape& pipeline,
                     int64_t stage) {
  PartMemory all;
  std::vector<PassBytes> bytes;
  for (const ModelPart* part : parts) {
    const PartMemory& own = part->memory;
    all.weights_bytes = checked_add(all.weights_bytes, own.weights_bytes);
    all.gradients_bytes = checked_add(all.gradients_bytes, own.gradients_bytes);
    all.expert_weights_bytes = checked_add(all.expert_weights_bytes, own.expert_weights_bytes);
    all.expert_gradients_bytes =
        checked_add(all.expert_gradients_bytes, own.expert_gradients_bytes);
    all.optimizer_bytes = checked_add(all.optimizer_bytes, own.optimizer_bytes);
    all.host_bytes = checked_add(all.host_bytes, own.host_bytes);
    bytes.push_back({.saved = own.saved_bytes, .kept = own.kept_bytes});
    all.optimizer_temporaries_bytes =
        checked_add(all.optimizer_temporaries_bytes, own.optimizer_temporaries_bytes);
    all.inputs_bytes = std::max(all.inputs_bytes, own.inputs_bytes);
    all.working_bytes = std::max(all.working_bytes, own.working_bytes);
    all.gathered_bytes = std::max(all.gathered_bytes, own.gathered_bytes);
  }
  all.saved_bytes = most_bytes_in_flight(pipeline, stage, bytes);
  return all;
}

/// What several passes of a step hold at their peak. When the optimizer steps, nothing is saved for
/// a backward pass, and no parameters are gathered.
void set_step_peak(PassMemory& memory, const PartMemory& all, Zero zero) {
  const int64_t stepping = all.optimizer_temporaries_bytes;
  const int64_t passing = all.working_bytes + (zero == Zero::kParameters ? all.gathered_bytes : 0);
  const bool in_step = stepping > all.saved_bytes + passing;
  memory.at_peak = {.weights_bytes = memory.weights_bytes,
                    .gradients_bytes = memory.gradients_bytes,
                    .optimizer_bytes = memory.optimizer_bytes,
                    .activations_bytes = in_step ? 0 : all.saved_bytes,
                    .temporaries_bytes = in_step ? stepping : passing,
                    .inputs_bytes = all.inputs_bytes};
  memory.peak_phase = in_step ? "optimizer" : "backward";
  memory.peak_node = "";
}

}  // namespace

bool is_plain(const Request& request, const RankLayout& layout) {
  return layout.pipeline.chunks == 1 && layout.pipeline.microbatches == 1 &&
         !splits_backward(layout.pipeline.schedule) && request.parallel.zero == Zero::kNone &&
         !request.parallel.has_fp32_copies();
}

PassMemory rank_memory(const std::vector<const ModelPart*>& parts, int64_t stage,
                       const PassSetup& setup, const RankLayout& layout) {
  const Parallel& p = setup.request.parallel;
  PassMemory memory =
      forecast_memory(parts.front()->pass.graph(), parts.front()->pass.work->memory, setup);
  const PartMemory all = all_parts(parts, layout.pipeline, stage);
  memory.weights_bytes =
      share(all.weights_bytes, all.expert_weights_bytes, p.zero == Zero::kParameters, layout);
  memory.gradients_bytes =
      share(all.gradients_bytes, all.expert_gradients_bytes, p.zero >= Zero::kGradients, layout);
  memory.optimizer_bytes = all.optimizer_bytes;  // the optimizer step was divided already
  memory.host_optimizer_bytes = all.host_bytes;
  memory.activations_bytes = all.saved_bytes + all.working_bytes + all.inputs_bytes;
  memory.optimizer_temporaries_bytes = all.optimizer_temporaries_bytes;
  const bool plain = parts.size() == 1 && is_plain(setup.request, layout);
  if (!plain) set_step_peak(memory, all, p.zero);
  // DistributedDataParallel's buckets are as large as the gradients; Megatron's gradients are views
  // of its buffer.
  if (layout.data_ranks() > 1 && !p.has_fp32_copies() && p.zero == Zero::kNone) {
    memory.gradient_buckets_bytes = all.gradients_bytes;
    memory.at_peak.gradients_bytes =
        checked_add(memory.at_peak.gradients_bytes, all.gradients_bytes);
  }
  set_peak(memory);
  return memory;
}

}  // namespace tilecast
