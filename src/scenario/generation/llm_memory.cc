#include "scenario/generation/llm_memory.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
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
#include "scenario/generation/served_remedies.h"
#include "scenario/generation/step_graph.h"
#include "scenario/pass/pass.h"

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

/// What the rule gives the cache leaves too little for what lies beside it.
bool has_room_beside(const CachePool& pool, const ServedModel& served) {
  return checked_add(pool.budget_bytes, beside_budget_bytes(pool, stack_of(served))) <=
         pool.visible_bytes;
}

}  // namespace

bool fits_memory(const ServedModel& served) {
  if (served.asked.kind == RequestKind::kGenerate)
    return PrefillPlans(served).of(served.asked.batch).missing_bytes() <= 0;
  const std::optional<ServerMemory> stage = tightest_pool(served);
  return stage && stage->pool.cache_bytes >= stage->sequence_bytes &&
         has_room_beside(stage->pool, served);
}

bool has_room_beside_cache(const ServedModel& served) {
  const std::optional<ServerMemory> stage = tightest_pool(served);
  return stage && has_room_beside(stage->pool, served);
}

void warn_of_memory(LlmForecast& f, const ServedModel& served, int64_t needed_bytes) {
  if (f.fits) return;
  const bool server = f.pool && f.continuous;
  if (server && needed_bytes <= f.pool->budget_bytes) {
    Warning warning = does_not_fit({.needed_bytes = f.peak_bytes,
                                    .usable_bytes = f.usable_bytes,
                                    .largest_batch = std::nullopt},
                                   served.device);
    warning.facts.push_back({"ranks", served.plan.ranks()});
    add_share_that_fits(warning, served, f.pool->fraction);
    f.warnings.push_back(std::move(warning));
    return;
  }
  Warning warning = does_not_fit({.needed_bytes = needed_bytes,
                                  .usable_bytes = server ? f.pool->budget_bytes : f.usable_bytes,
                                  .largest_batch = f.largest_batch},
                                 served.device);
  warning.facts.push_back({"ranks", served.plan.ranks()});
  if (server) {
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
  add_changes_that_fit(warning, served);
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
