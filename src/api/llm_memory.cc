#include "api/llm_memory.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <utility>

#include "api/fit.h"
#include "api/llm_load.h"
#include "base/checked.h"
#include "memory/plan.h"

namespace tilecast {
namespace {

int64_t usable_bytes(const LlmSteps& steps) {
  return static_cast<int64_t>(steps.asked().execution.gpu_memory_utilization *
                              static_cast<double>(steps.device().memory_bytes));
}

/// Only the weights and activations of a step's plan are used; cache sizes are computed for whole
/// sequences.
MemoryPlan step_memory(const LlmSteps& steps, std::vector<LlmSteps::Group> groups) {
  return plan_memory(steps.graph(std::move(groups)));
}

int64_t peak_bytes(const MemoryPlan& step, int64_t cache_bytes) {
  return checked_add(checked_add(step.weights_bytes, cache_bytes),
                     checked_add(step.activations_bytes, kWorkspaceBytes + kFrameworkBytes));
}

void add_totals(LlmForecast& f, const LlmSteps& steps, const MemoryPlan& step) {
  f.weights_bytes = step.weights_bytes;
  f.activations_bytes = step.activations_bytes;
  f.workspace_bytes = kWorkspaceBytes;
  f.framework_bytes = kFrameworkBytes;
  f.overhead_bytes = f.workspace_bytes + f.framework_bytes;
  f.peak_bytes = peak_bytes(step, f.cache_bytes);
  f.device_bytes = steps.device().memory_bytes;
  f.usable_bytes = usable_bytes(steps);
  f.fits = f.peak_bytes <= f.usable_bytes;
}

int64_t batch_cache_bytes(const LlmSteps& steps, int64_t batch) {
  const Request& r = steps.asked();
  return steps.cache_bytes(batch, r.prompt + r.output, r.execution.tp);
}

/// The largest prefill step of a static batch. All batches that fill the step completely share one
/// plan.
class PrefillPlans {
 public:
  explicit PrefillPlans(const LlmSteps& steps) : steps_(steps) {}
  const MemoryPlan& of(int64_t batch) {
    const Request& r = steps_.asked();
    const int64_t sequences = prefill_sequences(r, batch);
    const auto [plan, fresh] = plans_.try_emplace(sequences);
    if (fresh)
      plan->second = step_memory(
          steps_, {{sequences, std::min(r.prompt, r.execution.max_num_batched_tokens), 0}});
    return plan->second;
  }

 private:
  const LlmSteps& steps_;
  std::map<int64_t, MemoryPlan> plans_;
};

void warn(LlmForecast& f, const LlmSteps& steps) {
  if (f.fits) return;
  Warning warning = does_not_fit({.needed_bytes = f.peak_bytes,
                                  .usable_bytes = f.usable_bytes,
                                  .largest_batch = f.largest_batch},
                                 steps.device());
  warning.facts.push_back({"ranks", steps.asked().execution.tp});
  warning.facts.push_back({"utilization", steps.asked().execution.gpu_memory_utilization});
  f.warnings.push_back(std::move(warning));
}

}  // namespace

void add_batch_memory(LlmForecast& f, const LlmSteps& steps) {
  const int64_t batch = steps.asked().batch;
  PrefillPlans plans(steps);
  f.cache_bytes = batch_cache_bytes(steps, batch);
  add_totals(f, steps, plans.of(batch));
  std::optional<BatchBytes> too_many;
  if (!f.fits) too_many = {batch, f.peak_bytes};
  f.largest_batch = largest_within(
      f.usable_bytes,
      [&](int64_t b) { return peak_bytes(plans.of(b), batch_cache_bytes(steps, b)); }, too_many);
  warn(f, steps);
}

void add_server_memory(LlmForecast& f, const LlmSteps& steps, const ServingLoad& load,
                       ServerLimits& limits) {
  // A full step: the maximum number of sequences; one of them has all remaining tokens.
  const int64_t sequences = std::min(limits.max_num_seqs, limits.max_num_batched_tokens);
  std::vector<LlmSteps::Group> groups = {{1, limits.max_num_batched_tokens - sequences + 1, 0}};
  if (sequences > 1) groups.push_back({sequences - 1, 1, 1});
  const MemoryPlan step = step_memory(steps, std::move(groups));
  add_totals(f, steps, step);
  // Layers with a sliding window store less of long sequences. Bytes per token are those of the
  // longest request.
  const int64_t longest = longest_request(steps.asked());
  const int64_t per_sequence = steps.cache_bytes(1, longest, steps.asked().execution.tp);
  const double block_bytes = static_cast<double>(per_sequence) / static_cast<double>(longest) *
                             static_cast<double>(limits.block_tokens);
  const auto room = static_cast<double>(std::max<int64_t>(0, f.usable_bytes - f.peak_bytes));
  limits.cache_blocks = static_cast<int64_t>(room / std::max(1.0, block_bytes));
  const int64_t needed = blocks_needed(load, limits);
  f.largest_batch = needed > limits.cache_blocks
                        ? 0
                        : std::max<int64_t>(1, static_cast<int64_t>(room) / per_sequence);
  f.cache_bytes = static_cast<int64_t>(
      std::ceil(static_cast<double>(std::max(needed, limits.cache_blocks)) * block_bytes));
  add_totals(f, steps, step);
  f.fits = needed <= limits.cache_blocks;
  warn(f, steps);
}

}  // namespace tilecast
