#include "scenario/generation/llm_memory.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/checked.h"
#include "memory/plan.h"
#include "memory/stack.h"
#include "scenario/fit.h"
#include "scenario/generation/cache_pool.h"
#include "scenario/generation/llm_drafts.h"
#include "scenario/generation/llm_load.h"
#include "scenario/generation/served_cache.h"
#include "scenario/generation/step_graph.h"
#include "scenario/pass/pass.h"
#include "tilecast/error.h"

namespace tilecast {
namespace {

/// Only the weights and activations of a step's plan are used; cache sizes are computed for whole
/// sequences. The vision tower runs before the step on the first stage, with the images of
/// `prompts` prompts.
MemoryPlan step_memory(const ServedModel& served, std::vector<StepGroup> groups, int64_t prompts,
                       size_t part) {
  MemoryPlan plan = plan_memory(step_graph(served, std::move(groups), part));
  if (served.drafter != nullptr && served.stages[part].layers.has_end)
    plan.weights_bytes = checked_add(plan.weights_bytes, served.drafter->weights_bytes());
  const std::optional<TowerSteps>& tower = served.tower;
  if (tower && served.stages[part].layers.has_start) {
    plan.weights_bytes = checked_add(plan.weights_bytes, tower->weights_bytes());
    plan.activations_bytes = std::max(plan.activations_bytes, tower->activations_bytes(prompts));
  }
  return plan;
}

const SoftwareStack& stack_of(const ServedModel& served) {
  return software_def(*served.asked.execution.software).memory;
}

int64_t workspace_bytes(const ServedModel& served) {
  return tilecast::workspace_bytes(stack_of(served), has_large_workspace(served.device), false);
}

int64_t peak_bytes(const ServedModel& served, const MemoryPlan& step, int64_t cache_bytes) {
  return checked_add(
      checked_add(step.weights_bytes, cache_bytes),
      checked_add(step.activations_bytes,
                  workspace_bytes(served) + framework_bytes(stack_of(served), false)));
}

void add_totals(LlmForecast& f, const ServedModel& served, const MemoryPlan& step) {
  f.weights_bytes = step.weights_bytes;
  f.activations_bytes = step.activations_bytes;
  f.workspace_bytes = workspace_bytes(served);
  f.framework_bytes = framework_bytes(stack_of(served), false);
  f.overhead_bytes = f.workspace_bytes + f.framework_bytes;
  f.peak_bytes = peak_bytes(served, step, f.cache_bytes);
  f.device_bytes = served.device.memory_bytes;
}

/// Memory of a rank of a stage in the largest prefill step of a static batch.
struct StageMemory {
  MemoryPlan step;
  int64_t cache_bytes = 0, peak_bytes = 0;
  int64_t usable_bytes = 0;
  int64_t missing_bytes() const { return peak_bytes - usable_bytes; }
};

/// Bytes of the stage that needs most, by batch. All batches that fill the step completely share
/// one plan.
class PrefillPlans {
 public:
  explicit PrefillPlans(const ServedModel& served)
      : served_(served), plans_(served.stages.size()) {}
  StageMemory of(int64_t batch) {
    const Request& r = served_.asked;
    const int64_t own = served_.sequences_of_rank(batch);
    StageMemory most;
    for (size_t part = 0; part < plans_.size(); ++part) {
      StageMemory stage{.step = plan(own, part),
                        .cache_bytes = stage_cache_bytes(served_, own, r.prompt + r.output, part)};
      stage.peak_bytes = peak_bytes(served_, stage.step, stage.cache_bytes);
      stage.usable_bytes = usable_bytes(served_, {.weights = stage.step.weights_bytes,
                                                  .activations = stage.step.activations_bytes,
                                                  .part = part});
      if (part == 0 || stage.missing_bytes() > most.missing_bytes()) most = std::move(stage);
    }
    return most;
  }

 private:
  const MemoryPlan& plan(int64_t own, size_t part) {
    const Request& r = served_.asked;
    const int64_t sequences = prefill_sequences(r, own);
    const auto [plan, fresh] = plans_[part].try_emplace(sequences);
    if (fresh)
      plan->second = step_memory(
          served_, {{sequences, std::min(r.prompt, r.execution.max_num_batched_tokens), 0}},
          sequences, part);
    return plan->second;
  }

  const ServedModel& served_;
  std::vector<std::map<int64_t, MemoryPlan>> plans_;
};

/// A step of a server that is as full as it gets: the most sequences; one of them has all remaining
/// tokens.
MemoryPlan full_step(const ServedModel& served, const PoolLimits& limits, size_t part) {
  const int64_t sequences = std::min(limits.max_num_seqs, limits.max_num_batched_tokens);
  std::vector<StepGroup> groups = {{1, limits.max_num_batched_tokens - sequences + 1, 0}};
  if (sequences > 1) groups.push_back({sequences - 1, 1, 1});
  return step_memory(served, std::move(groups), sequences, part);
}

/// nullopt for software that does not serve.
std::optional<ServerMemory> tightest_pool(const ServedModel& served) {
  const PoolLimits limits = pool_limits(served.asked);
  const int64_t longest = longest_request(served.asked);
  std::optional<ServerMemory> tightest;
  double fewest = 0;
  for (size_t part = 0; part < served.stages.size(); ++part) {
    ServerMemory stage{.step = full_step(served, limits, part),
                       .pool = {},
                       .sequence_bytes = stage_cache_bytes(served, 1, longest, part)};
    const std::optional<CachePool> pool = plan_pool(served, limits,
                                                    {.weights = stage.step.weights_bytes,
                                                     .activations = stage.step.activations_bytes,
                                                     .part = part});
    if (!pool) return std::nullopt;
    stage.pool = *pool;
    const double sequences = static_cast<double>(pool->cache_bytes) /
                             static_cast<double>(std::max<int64_t>(1, stage.sequence_bytes));
    if (tightest && sequences >= fewest) continue;
    fewest = sequences;
    tightest = std::move(stage);
  }
  return tightest;
}

/// Whether what was asked for fits with other ranks or another precision.
bool would_fit(const ServedModel& served, const Request& changed) {
  try {
    const ServedModel other(served, changed);
    if (changed.kind == RequestKind::kGenerate)
      return PrefillPlans(other).of(changed.batch).missing_bytes() <= 0;
    const std::optional<ServerMemory> stage = tightest_pool(other);
    if (!stage || stage->pool.cache_bytes < stage->sequence_bytes) return false;
    const CachePool& pool = stage->pool;
    return checked_add(pool.budget_bytes, beside_budget_bytes(pool, stack_of(served))) <=
           pool.visible_bytes;
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::kInternal) throw;
    return false;  // does not divide the heads, or the device lacks the precision
  }
}

constexpr int64_t kMostRanks = 64;

/// Precisions of weights that the device computes with, and that are lower than the usual one.
std::vector<std::string> lower_dtypes(const Device& device) {
  std::vector<std::string> dtypes;
  for (const char* dtype : {"fp8", "int8_wo", "fp4", "int4_wo"}) {
    if (device.matmul_peak(compute_dtype(*find_scheme(dtype), DType::kBf16)) > 0)
      dtypes.emplace_back(dtype);
  }
  return dtypes;
}

/// The fewest ranks and a lower precision with which it fits, where none alone is enough; "": none.
std::string pair_that_fits(const ServedModel& served, bool lower_kv_dtype) {
  Request changed = served.asked;
  if (lower_kv_dtype) {
    changed.execution.kv_dtype = "fp8";
    for (const std::string& dtype : lower_dtypes(served.device)) {
      changed.execution.dtype = dtype;
      if (would_fit(served, changed)) return fmt::format("--dtype {} and --kv-dtype fp8", dtype);
    }
    changed = served.asked;
  }
  for (int64_t tp = 2 * changed.execution.tp; tp <= kMostRanks; tp *= 2) {
    changed.execution.tp = tp;
    for (const std::string& dtype : lower_dtypes(served.device)) {
      changed.execution.dtype = dtype;
      if (would_fit(served, changed)) return fmt::format("--tp {} and --dtype {}", tp, dtype);
    }
  }
  return "";
}

/// The smallest change of one option with which it fits, else of two.
void add_remedies(Warning& warning, const ServedModel& served) {
  const Request& asked = served.asked;
  const size_t before = warning.facts.size();
  for (int64_t tp = 2 * asked.execution.tp; tp <= kMostRanks; tp *= 2) {
    Request changed = asked;
    changed.execution.tp = tp;
    if (!would_fit(served, changed)) continue;
    warning.facts.push_back({"tp_that_fits", tp});
    break;
  }
  for (const std::string& dtype : lower_dtypes(served.device)) {
    Request changed = asked;
    changed.execution.dtype = dtype;
    if (!would_fit(served, changed)) continue;
    warning.facts.push_back({"dtype_that_fits", dtype});
    break;
  }
  const bool lower_kv_dtype =
      asked.execution.kv_dtype.empty() && served.device.matmul_peak(DType::kFp8) > 0;
  if (lower_kv_dtype) {
    Request changed = asked;
    changed.execution.kv_dtype = "fp8";
    if (would_fit(served, changed))
      warning.facts.push_back({"kv_dtype_that_fits", std::string("fp8")});
  }
  if (warning.facts.size() > before) return;
  if (const std::string pair = pair_that_fits(served, lower_kv_dtype); !pair.empty())
    warning.facts.push_back({"pair_that_fits", pair});
}

/// The rule gives the cache so much that what lies beside it finds no room.
void warn_of_share(LlmForecast& f, const ServedModel& served) {
  Warning warning = does_not_fit(
      {.needed_bytes = f.peak_bytes, .usable_bytes = f.usable_bytes, .largest_batch = std::nullopt},
      served.device);
  warning.facts.push_back({"ranks", served.plan.ranks()});
  constexpr double kHundredths = 100;
  for (double share = std::ceil(kHundredths * f.pool->fraction) - 1; share > 0; --share) {
    Request changed = served.asked;
    changed.execution.gpu_memory_utilization = share / kHundredths;
    if (!would_fit(served, changed)) continue;
    warning.facts.push_back({"utilization_that_fits", share / kHundredths});
    break;
  }
  f.warnings.push_back(std::move(warning));
}

}  // namespace

void warn_of_memory(LlmForecast& f, const ServedModel& served, int64_t needed_bytes) {
  if (f.fits) return;
  if (f.pool && f.continuous && needed_bytes <= f.pool->budget_bytes)
    return warn_of_share(f, served);
  Warning warning =
      does_not_fit({.needed_bytes = needed_bytes,
                    .usable_bytes = f.pool && f.continuous ? f.pool->budget_bytes : f.usable_bytes,
                    .largest_batch = f.largest_batch},
                   served.device);
  warning.facts.push_back({"ranks", served.plan.ranks()});
  if (f.pool && f.continuous) {
    warning.facts.push_back({"rule", f.pool->rule});
    warning.facts.push_back({"utilization", f.pool->fraction});
    warning.facts.push_back({"tokens_that_fit", f.pool->tokens});
  } else {
    const PoolRule rule = pool_rule(served);
    if (!rule.option.empty()) {
      warning.facts.push_back({"rule", rule.option});
      warning.facts.push_back({"utilization", rule.fraction});
    }
  }
  add_remedies(warning, served);
  f.warnings.push_back(std::move(warning));
}

void add_batch_memory(LlmForecast& f, const ServedModel& served) {
  const int64_t batch = served.asked.batch;
  PrefillPlans plans(served);
  const StageMemory most = plans.of(batch);
  f.cache_bytes = most.cache_bytes;
  add_totals(f, served, most.step);
  f.usable_bytes = most.usable_bytes;
  f.fits = most.missing_bytes() <= 0;
  std::optional<BatchBytes> too_many;
  if (!f.fits) too_many = {batch, most.missing_bytes()};
  f.largest_batch =
      largest_within(0, [&](int64_t b) { return plans.of(b).missing_bytes(); }, too_many);
  if (software_def(*served.asked.execution.software).serves()) {
    if (const std::optional<ServerMemory> stage = tightest_pool(served)) f.pool = stage->pool;
  }
  warn_of_memory(f, served, f.peak_bytes);
}

ServerMemory server_memory(const ServedModel& served) {
  std::optional<ServerMemory> memory = tightest_pool(served);
  TILECAST_CHECK(memory.has_value()) << "a server of software that does not serve";
  return *std::move(memory);
}

int64_t add_server_memory(LlmForecast& f, const ServedModel& served, ServerMemory memory,
                          const ServingLoad& load, ServerLimits& limits) {
  f.pool = memory.pool;
  MemoryPlan& step = memory.step;
  step.activations_bytes = f.pool->profile_bytes - workspace_bytes(served);
  // Layers with a sliding window store less of long sequences. Bytes per token are those of the
  // longest request.
  const int64_t longest = longest_request(served.asked);
  const int64_t per_sequence = memory.sequence_bytes;
  const double block_bytes = static_cast<double>(per_sequence) / static_cast<double>(longest) *
                             static_cast<double>(limits.block_tokens);
  const auto room = static_cast<double>(f.pool->cache_bytes);
  limits.cache_blocks = static_cast<int64_t>(room / std::max(1.0, block_bytes));
  const int64_t needed = blocks_needed(load, limits);
  f.fits = needed <= limits.cache_blocks;
  // Each data-parallel rank has its own cache.
  f.largest_batch =
      f.fits ? checked_multiply(std::max<int64_t>(1, static_cast<int64_t>(room) / per_sequence),
                                served.plan.dp)
             : 0;
  const auto bytes_of = [&](int64_t blocks) {
    return static_cast<int64_t>(std::ceil(static_cast<double>(blocks) * block_bytes));
  };
  f.cache_bytes = bytes_of(std::max(needed, limits.cache_blocks));
  add_totals(f, served, step);
  f.workspace_bytes = checked_add(f.workspace_bytes, f.pool->graphs_bytes);
  f.overhead_bytes = checked_add(f.overhead_bytes, f.pool->graphs_bytes);
  f.peak_bytes = checked_add(f.peak_bytes, f.pool->graphs_bytes);
  // Peak and limit both count what lies beside the rule's budget. It may lack the room.
  f.usable_bytes =
      std::min(f.pool->visible_bytes,
               checked_add(f.pool->budget_bytes, beside_budget_bytes(*f.pool, stack_of(served))));
  const bool has_blocks = f.fits;
  f.fits = has_blocks && f.peak_bytes <= f.usable_bytes;
  if (has_blocks && !f.fits) f.largest_batch = 0;
  return checked_add(f.pool->fixed_bytes, bytes_of(needed));
}

}  // namespace tilecast
