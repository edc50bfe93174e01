#include "api/llm_memory.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <utility>

#include "api/cache_pool.h"
#include "api/fit.h"
#include "api/llm_load.h"
#include "base/check.h"
#include "base/checked.h"
#include "memory/plan.h"
#include "memory/stack.h"
#include "tilecast/error.h"

namespace tilecast {
namespace {

int64_t usable_bytes(const LlmSteps& steps) {
  constexpr double kUsual = 0.9;
  return static_cast<int64_t>(steps.asked().execution.gpu_memory_utilization.value_or(kUsual) *
                              static_cast<double>(visible_bytes(steps.device())));
}

/// Only the weights and activations of a step's plan are used; cache sizes are computed for whole
/// sequences. The vision tower runs before the step, with the images of `prompts` prompts.
MemoryPlan step_memory(const LlmSteps& steps, std::vector<LlmSteps::Group> groups,
                       int64_t prompts) {
  MemoryPlan plan = plan_memory(steps.graph(std::move(groups)));
  if (const TowerSteps* tower = steps.tower()) {
    plan.weights_bytes = checked_add(plan.weights_bytes, tower->weights_bytes());
    plan.activations_bytes = std::max(plan.activations_bytes, tower->activations_bytes(prompts));
  }
  return plan;
}

int64_t peak_bytes(const MemoryPlan& step, int64_t cache_bytes) {
  return checked_add(
      checked_add(step.weights_bytes, cache_bytes),
      checked_add(step.activations_bytes, serving_workspace_bytes() + serving_framework_bytes()));
}

void add_totals(LlmForecast& f, const LlmSteps& steps, const MemoryPlan& step) {
  f.weights_bytes = step.weights_bytes;
  f.activations_bytes = step.activations_bytes;
  f.workspace_bytes = serving_workspace_bytes();
  f.framework_bytes = serving_framework_bytes();
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
          steps_, {{sequences, std::min(r.prompt, r.execution.max_num_batched_tokens), 0}},
          sequences);
    return plan->second;
  }

 private:
  const LlmSteps& steps_;
  std::map<int64_t, MemoryPlan> plans_;
};

/// A step of a server that is as full as it gets: the most sequences; one of them has all remaining
/// tokens.
MemoryPlan full_step(const LlmSteps& steps, const PoolLimits& limits) {
  const int64_t sequences = std::min(limits.max_num_seqs, limits.max_num_batched_tokens);
  std::vector<LlmSteps::Group> groups = {{1, limits.max_num_batched_tokens - sequences + 1, 0}};
  if (sequences > 1) groups.push_back({sequences - 1, 1, 1});
  return step_memory(steps, std::move(groups), sequences);
}

/// Whether what was asked for fits with other ranks or another precision.
bool would_fit(const LlmSteps& steps, const Request& changed) {
  try {
    const LlmSteps other(steps, changed);
    const int64_t longest = longest_request(changed);
    if (changed.kind == RequestKind::kGenerate) {
      PrefillPlans plans(other);
      return peak_bytes(plans.of(changed.batch), batch_cache_bytes(other, changed.batch)) <=
             usable_bytes(other);
    }
    const PoolLimits limits = pool_limits(changed);
    const MemoryPlan step = full_step(other, limits);
    const std::optional<CachePool> pool =
        plan_pool(other, limits, step.weights_bytes, step.activations_bytes);
    return pool && pool->cache_bytes >= other.cache_bytes(1, longest, changed.execution.tp);
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::kInternal) throw;
    return false;  // does not divide the heads, or the device lacks the precision
  }
}

/// The smallest change of one option with which it fits.
void add_remedies(Warning& warning, const LlmSteps& steps) {
  const Request& asked = steps.asked();
  constexpr int64_t kMostRanks = 64;
  for (int64_t tp = 2 * asked.execution.tp; tp <= kMostRanks; tp *= 2) {
    Request changed = asked;
    changed.execution.tp = tp;
    if (!would_fit(steps, changed)) continue;
    warning.facts.push_back({"tp_that_fits", tp});
    break;
  }
  for (const char* dtype : {"fp8", "int8_wo", "fp4", "int4_wo"}) {
    Request changed = asked;
    changed.execution.dtype = dtype;
    const DType computes = compute_dtype(*find_scheme(dtype), DType::kBf16);
    if (steps.device().matmul_peak(computes) <= 0 || !would_fit(steps, changed)) continue;
    warning.facts.push_back({"dtype_that_fits", std::string(dtype)});
    break;
  }
  if (asked.execution.kv_dtype.empty() && steps.device().matmul_peak(DType::kFp8) > 0) {
    Request changed = asked;
    changed.execution.kv_dtype = "fp8";
    if (would_fit(steps, changed))
      warning.facts.push_back({"kv_dtype_that_fits", std::string("fp8")});
  }
}

void warn(LlmForecast& f, const LlmSteps& steps, int64_t needed_bytes) {
  if (f.fits) return;
  Warning warning = does_not_fit({.needed_bytes = needed_bytes,
                                  .usable_bytes = f.usable_bytes,
                                  .largest_batch = f.largest_batch},
                                 steps.device());
  warning.facts.push_back({"ranks", steps.asked().execution.tp});
  if (f.pool && f.continuous) {
    warning.facts.push_back({"rule", f.pool->rule});
    warning.facts.push_back({"utilization", f.pool->fraction});
    warning.facts.push_back({"tokens_that_fit", f.pool->tokens});
  } else {
    constexpr double kUsual = 0.9;
    warning.facts.push_back({"rule", std::string("gpu_memory_utilization")});
    warning.facts.push_back(
        {"utilization", steps.asked().execution.gpu_memory_utilization.value_or(kUsual)});
  }
  add_remedies(warning, steps);
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
  const PoolLimits limits = pool_limits(steps.asked());
  if (*steps.asked().execution.software != Software::kPyTorch) {
    const MemoryPlan step = full_step(steps, limits);
    f.pool = plan_pool(steps, limits, step.weights_bytes, step.activations_bytes);
  }
  warn(f, steps, f.peak_bytes);
}

void add_server_memory(LlmForecast& f, const LlmSteps& steps, const ServingLoad& load,
                       ServerLimits& limits) {
  MemoryPlan step = full_step(steps, pool_limits(steps.asked()));
  f.pool = plan_pool(steps, pool_limits(steps.asked()), step.weights_bytes, step.activations_bytes);
  TILECAST_CHECK(f.pool.has_value()) << "a server of software that does not serve";
  step.activations_bytes = f.pool->profile_bytes - serving_workspace_bytes();
  // Layers with a sliding window store less of long sequences. Bytes per token are those of the
  // longest request.
  const int64_t longest = longest_request(steps.asked());
  const int64_t per_sequence = steps.cache_bytes(1, longest, steps.asked().execution.tp);
  const double block_bytes = static_cast<double>(per_sequence) / static_cast<double>(longest) *
                             static_cast<double>(limits.block_tokens);
  const auto room = static_cast<double>(f.pool->cache_bytes);
  limits.cache_blocks = static_cast<int64_t>(room / std::max(1.0, block_bytes));
  const int64_t needed = blocks_needed(load, limits);
  f.fits = needed <= limits.cache_blocks;
  f.largest_batch = f.fits ? std::max<int64_t>(1, static_cast<int64_t>(room) / per_sequence) : 0;
  const auto bytes_of = [&](int64_t blocks) {
    return static_cast<int64_t>(std::ceil(static_cast<double>(blocks) * block_bytes));
  };
  f.cache_bytes = bytes_of(std::max(needed, limits.cache_blocks));
  const bool fits = f.fits;
  add_totals(f, steps, step);
  f.workspace_bytes = checked_add(f.workspace_bytes, f.pool->graphs_bytes);
  f.overhead_bytes = checked_add(f.overhead_bytes, f.pool->graphs_bytes);
  f.peak_bytes = checked_add(f.peak_bytes, f.pool->graphs_bytes);
  f.usable_bytes = f.pool->budget_bytes;
  f.fits = fits;
  warn(f, steps, checked_add(f.pool->fixed_bytes, bytes_of(needed)));
}

}  // namespace tilecast
