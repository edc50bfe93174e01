#include "api/llm_memory.h"

#include <algorithm>
#include <cmath>

#include "api/fit.h"
#include "api/llm_load.h"
#include "base/checked.h"
#include "memory/plan.h"

namespace tilecast {
namespace {

constexpr const char* kAdvice =
    "more ranks (--tp), fewer bits (--dtype, --kv-dtype) or shorter sequences take less of each "
    "GPU";

int64_t usable_bytes(const LlmSteps& steps) {
  return static_cast<int64_t>(steps.options().gpu_memory_utilization *
                              static_cast<double>(steps.device().memory_bytes));
}

/// Weights and activations of a step; its caches are not counted.
void add_step_memory(LlmForecast& f, const LlmSteps& steps, std::vector<LlmSteps::Group> groups) {
  const MemoryPlan plan = plan_memory(steps.graph(std::move(groups), steps.options().tp));
  f.weights_bytes = plan.weights_bytes;
  f.activations_bytes = plan.activations_bytes;
}

/// The prompts of a static batch that one step takes, whole or in part.
LlmSteps::Group prefill_group(const LlmOptions& o, int64_t batch) {
  return {prefill_sequences(o, batch), std::min(o.prompt, o.max_num_batched_tokens), 0};
}

void add_totals(LlmForecast& f, const LlmSteps& steps) {
  f.workspace_bytes = kWorkspaceBytes;
  f.framework_bytes = kFrameworkBytes;
  f.overhead_bytes = f.workspace_bytes + f.framework_bytes;
  f.peak_bytes = checked_add(checked_add(f.weights_bytes, f.cache_bytes),
                             checked_add(f.activations_bytes, f.overhead_bytes));
  f.device_bytes = steps.device().memory_bytes;
  f.usable_bytes = usable_bytes(steps);
  f.fits = f.peak_bytes <= f.usable_bytes;
}

LlmForecast batch_memory(const LlmSteps& steps, int64_t batch) {
  const LlmOptions& o = steps.options();
  LlmForecast f;
  add_step_memory(f, steps, {prefill_group(o, batch)});
  f.cache_bytes = steps.cache_bytes(batch, o.prompt + o.output, o.tp);
  add_totals(f, steps);
  return f;
}

/// The cache is what grows with the batch; activations do until a step is full.
int64_t largest_batch(const LlmSteps& steps) {
  const LlmOptions& o = steps.options();
  const auto fits = [&](int64_t batch) { return batch_memory(steps, batch).fits; };
  if (!fits(1)) return 0;
  const int64_t per_sequence = steps.cache_bytes(1, o.prompt + o.output, o.tp);
  int64_t low = 1;
  int64_t high = std::max<int64_t>(2, usable_bytes(steps) / std::max<int64_t>(1, per_sequence) + 1);
  while (high - low > 1) {
    const int64_t middle = low + (high - low) / 2;
    (fits(middle) ? low : high) = middle;
  }
  return low;
}

void warn(LlmForecast& f, const LlmSteps& steps) {
  if (f.fits) return;
  f.warnings.push_back(does_not_fit({.needed_bytes = f.peak_bytes,
                                     .usable_bytes = f.usable_bytes,
                                     .utilization = steps.options().gpu_memory_utilization,
                                     .ranks = steps.options().tp,
                                     .largest_batch = f.largest_batch},
                                    steps.device()) +
                       "; " + kAdvice);
}

}  // namespace

void add_batch_memory(LlmForecast& f, const LlmSteps& steps) {
  const LlmForecast m = batch_memory(steps, steps.options().batch);
  f.weights_bytes = m.weights_bytes;
  f.activations_bytes = m.activations_bytes;
  f.cache_bytes = m.cache_bytes;
  add_totals(f, steps);
  f.largest_batch = largest_batch(steps);
  warn(f, steps);
}

void add_server_memory(LlmForecast& f, const LlmSteps& steps, const ServingLoad& load,
                       ServerLimits& limits) {
  // A full step: as many sequences as may run, one of them with all other tokens.
  const int64_t sequences = std::min(limits.max_num_seqs, limits.max_num_batched_tokens);
  std::vector<LlmSteps::Group> groups = {{1, limits.max_num_batched_tokens - sequences + 1, 0}};
  if (sequences > 1) groups.push_back({sequences - 1, 1, 1});
  add_step_memory(f, steps, groups);
  add_totals(f, steps);
  // Layers with a window keep less of long sequences: a token's bytes are those of the longest.
  const int64_t longest = longest_request(steps.options());
  const int64_t per_sequence = steps.cache_bytes(1, longest, steps.options().tp);
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
  add_totals(f, steps);
  f.fits = needed <= limits.cache_blocks;
  warn(f, steps);
}

}  // namespace tilecast
