#include "scenario/generation/generation_memory.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/checked.h"
#include "memory/by_purpose.h"
#include "scenario/fit.h"
#include "scenario/generation/cache_pool.h"
#include "scenario/generation/drafts.h"
#include "scenario/generation/offered_load.h"
#include "scenario/generation/served_cache.h"
#include "scenario/generation/served_remedies.h"
#include "scenario/generation/step_graph.h"
#include "scenario/memory_total.h"

namespace tilecast {
namespace {

const SoftwareStack& stack_of(const ServedModel& served) {
  return software_def(*served.asked.execution.software).memory;
}

/// Weights and activations of a step, without a cache: its size is computed for whole sequences.
/// The vision tower runs before the step on the first stage, with the images of `prompts` prompts.
Memory step_memory(const ServedModel& served, std::vector<StepGroup> groups, int64_t prompts,
                   size_t part) {
  const MemoryByPurpose plan = memory_by_purpose(step_graph(served, std::move(groups), part));
  Memory memory = bare_rank(served.device, stack_of(served), Mode::kInference);
  memory.weights_bytes = plan.weights_bytes;
  memory.activations_bytes = plan.activations_bytes;
  if (served.drafter != nullptr && served.stages[part].layers.has_end)
    memory.weights_bytes = checked_add(memory.weights_bytes, served.drafter->weights_bytes());
  const std::optional<TowerSteps>& tower = served.tower;
  if (tower && served.stages[part].layers.has_start) {
    memory.weights_bytes = checked_add(memory.weights_bytes, tower->weights_bytes());
    memory.activations_bytes =
        std::max(memory.activations_bytes,
                 tower->activations_bytes(checked_multiply(prompts, served.asked.images)));
  }
  return memory;
}

void set_served_peak(Memory& memory) {
  set_peak(memory, checked_add(checked_add(memory.weights_bytes, memory.cache_bytes),
                               memory.activations_bytes));
}

/// Memory of a rank of the stage that needs most in the largest prefill step of a static batch of
/// software that does not serve. All batches that fill the step completely share one plan.
class PrefillPlans {
 public:
  explicit PrefillPlans(const ServedModel& served)
      : served_(served), plans_(served.stages.size()) {}
  Memory of(int64_t batch) {
    const Request& r = served_.asked;
    const int64_t own = served_.sequences_of_rank(batch);
    Memory most;
    for (size_t part = 0; part < plans_.size(); ++part) {
      Memory stage = plan(own, part);
      stage.cache_bytes = stage_cache_bytes(served_, own, r.prompt + r.output, part);
      stage.usable_bytes = static_cast<int64_t>(pool_rule(served_).fraction *
                                                static_cast<double>(stage.device_bytes));
      set_served_peak(stage);
      if (part == 0 || stage.margin_bytes() < most.margin_bytes()) most = stage;
    }
    return most;
  }

 private:
  const Memory& plan(int64_t own, size_t part) {
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
  std::vector<std::map<int64_t, Memory>> plans_;
};

/// A step of a server that is as full as it gets: the most sequences; one of them has all remaining
/// tokens.
Memory full_step(const ServedModel& served, const PoolLimits& limits, size_t part) {
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
    const std::optional<CachePool> pool = make_pool(served, limits,
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

/// The memory of a server without its cache. Peak and limit both count what lies beside the rule's
/// budget, which may lack the room.
Memory without_cache(const ServedModel& served, const ServerMemory& server) {
  const CachePool& pool = server.pool;
  Memory m = server.step;
  m.activations_bytes = pool.profile_bytes - m.workspace_bytes;
  m.workspace_bytes = checked_add(m.workspace_bytes, pool.graphs_bytes);
  m.framework_bytes = checked_add(m.framework_bytes, communication_bytes(pool, stack_of(served)));
  m.usable_bytes =
      std::min(pool.visible_bytes,
               checked_add(pool.budget_bytes, beside_budget_bytes(pool, stack_of(served))));
  return m;
}

/// Sequences of the longest length that the caches of all data-parallel ranks hold.
int64_t sequences_held(const ServedModel& served, const ServerMemory& server) {
  return checked_multiply(server.pool.cache_bytes / std::max<int64_t>(1, server.sequence_bytes),
                          served.plan.dp);
}

/// A static batch of a server runs at once if its cache holds it. Returns the bytes that this
/// needs of the rule's budget.
int64_t add_served_batch(GenerationForecast& f, const ServedModel& served,
                         const ServerMemory& server) {
  const int64_t own = served.sequences_of_rank(served.asked.batch);
  const int64_t batch_bytes = checked_multiply(own, server.sequence_bytes);
  const bool has_room = has_room_beside(server.pool, served);
  f.pool = server.pool;
  f.memory = without_cache(served, server);
  f.memory.cache_bytes = has_room ? batch_bytes : std::max(batch_bytes, server.pool.cache_bytes);
  set_served_peak(f.memory);
  f.memory.largest_batch = has_room ? sequences_held(served, server) : 0;
  return checked_add(server.pool.fixed_bytes, batch_bytes);
}

}  // namespace

bool fits_memory(const ServedModel& served) {
  const std::optional<ServerMemory> stage = tightest_pool(served);
  const bool batch = served.asked.kind == RequestKind::kGenerate;
  if (!stage) return batch && PrefillPlans(served).of(served.asked.batch).fits;
  const int64_t sequences = batch ? served.sequences_of_rank(served.asked.batch) : 1;
  return stage->pool.cache_bytes >= checked_multiply(sequences, stage->sequence_bytes) &&
         has_room_beside(stage->pool, served);
}

bool has_room_beside_cache(const ServedModel& served) {
  const std::optional<ServerMemory> stage = tightest_pool(served);
  return stage && has_room_beside(stage->pool, served);
}

void warn_of_memory(GenerationForecast& f, const ServedModel& served, int64_t needed_bytes) {
  if (f.memory.fits) return;
  const bool server = f.pool.has_value();
  if (server && needed_bytes <= f.pool->budget_bytes) {
    Warning warning = does_not_fit({.needed_bytes = f.memory.peak_bytes,
                                    .usable_bytes = f.memory.usable_bytes,
                                    .largest_batch = std::nullopt},
                                   served.device);
    warning.facts.push_back({"ranks", served.plan.ranks()});
    add_share_that_fits(warning, served, f.pool->fraction);
    f.warnings.push_back(std::move(warning));
    return;
  }
  Warning warning =
      does_not_fit({.needed_bytes = needed_bytes,
                    .usable_bytes = server ? f.pool->budget_bytes : f.memory.usable_bytes,
                    .largest_batch = f.memory.largest_batch},
                   served.device);
  warning.facts.push_back({"ranks", served.plan.ranks()});
  if (server) {
    warning.facts.push_back({"rule", f.pool->rule});
    warning.facts.push_back({"utilization", f.pool->fraction});
    // A batch would have to be smaller, not its requests shorter.
    if (f.continuous) warning.facts.push_back({"tokens_that_fit", f.pool->tokens});
  }
  add_changes_that_fit(warning, served, f);
  f.warnings.push_back(std::move(warning));
}

void add_batch_memory(GenerationForecast& f, const ServedModel& served) {
  if (const std::optional<ServerMemory> server = tightest_pool(served))
    return warn_of_memory(f, served, add_served_batch(f, served, *server));
  const int64_t batch = served.asked.batch;
  PrefillPlans plans(served);
  f.memory = plans.of(batch);
  std::optional<BatchBytes> too_many;
  if (!f.memory.fits) too_many = {batch, -f.memory.margin_bytes()};
  f.memory.largest_batch =
      largest_within(0, [&](int64_t b) { return -plans.of(b).margin_bytes(); }, too_many);
  warn_of_memory(f, served, f.memory.peak_bytes);
}

ServerMemory server_memory(const ServedModel& served) {
  std::optional<ServerMemory> memory = tightest_pool(served);
  TILECAST_CHECK(memory.has_value()) << "a server of software that does not serve";
  return *std::move(memory);
}

int64_t add_server_memory(GenerationForecast& f, const ServedModel& served,
                          const ServerMemory& server, const ServingLoad& load,
                          ServerLimits& limits) {
  f.pool = server.pool;
  // Layers with a sliding window store less of long sequences. Bytes per token are those of the
  // longest request.
  const int64_t longest = longest_request(served.asked);
  const int64_t per_sequence = server.sequence_bytes;
  const double block_bytes = static_cast<double>(per_sequence) / static_cast<double>(longest) *
                             static_cast<double>(limits.block_tokens);
  const auto room = static_cast<double>(f.pool->cache_bytes);
  limits.cache_blocks = static_cast<int64_t>(room / std::max(1.0, block_bytes));
  const int64_t needed = blocks_needed(load, limits);
  const auto bytes_of = [&](int64_t blocks) {
    return static_cast<int64_t>(std::ceil(static_cast<double>(blocks) * block_bytes));
  };
  Memory& m = f.memory;
  m = without_cache(served, server);
  m.cache_bytes = bytes_of(std::max(needed, limits.cache_blocks));
  set_served_peak(m);
  m.fits = m.fits && needed <= limits.cache_blocks;
  m.largest_batch = m.fits ? std::max(served.plan.dp, sequences_held(served, server)) : 0;
  return checked_add(f.pool->fixed_bytes, bytes_of(needed));
}

}  // namespace tilecast
