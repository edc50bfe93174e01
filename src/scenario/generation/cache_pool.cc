// How vLLM, SGLang and TensorRT-LLM decide what their cache gets. Sources: vLLM 0.19.0,
// v1/worker/gpu_worker.py (determine_available_memory); from memory: SGLang 0.5, server_args.py
// (mem_fraction_static, chunked_prefill_size, cuda_graph_max_bs), model_runner.py
// (profile_max_num_token); TensorRT-LLM 1.0, _torch/pyexecutor/_util.py (KvCacheCreator).

#include "scenario/generation/cache_pool.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "base/checked.h"
#include "memory/by_purpose.h"
#include "memory/stack.h"
#include "scenario/generation/cache_blocks.h"
#include "scenario/generation/profile_run.h"
#include "scenario/generation/served_cache.h"
#include "scenario/generation/step_timer.h"
#include "scenario/memory_total.h"
#include "scenario/pass/pass.h"
#include "software/software.h"

namespace tilecast {
namespace {

constexpr double kMiB = 1 << 20;

/// Memory of one kernel in a captured CUDA graph. A guess, from "Graph capturing took 0.5 GiB" for
/// some 67 graphs of models of 8 G parameters; the same run would settle it.
constexpr int64_t kGraphNodeBytes = int64_t{16} << 10;

/// vLLM captures 1, 2, 4, then every 8th up to 256 and every 16th up to 512 tokens, at most twice
/// max_num_seqs; SGLang and TensorRT-LLM capture similar sizes.
constexpr int64_t kLargestGraph = 512;
int64_t captured_tokens(const PoolLimits& limits) {
  return std::min(kLargestGraph, 2 * limits.max_num_seqs);
}

/// All graphs share one pool of activations. `step`: the largest step that is captured.
int64_t graphs_bytes(const PoolLimits& limits, const StepKernels& step) {
  constexpr int64_t kDense = 256, kStep = 8, kWideStep = 16, kSmall = 3;
  const int64_t most = captured_tokens(limits);
  const int64_t graphs =
      kSmall + std::min(most, kDense) / kStep + std::max<int64_t>(0, most - kDense) / kWideStep;
  int64_t kernels = 0;
  for (const Launch& launch : step.program.launches) kernels += step.program.count(launch);
  return checked_add(checked_product({graphs, kernels, kGraphNodeBytes}),
                     memory_by_purpose(step.graph).activations_bytes);
}

/// SGLang's default: what is left of the GPU's memory after what it expects activations and CUDA
/// graphs to take, in MiB.
double sglang_fraction(const ServedModel& served) {
  const double memory = static_cast<double>(served.device.memory_bytes) / kMiB;
  // SGLang's tp_size counts the data-parallel ranks of attention too.
  const auto tp = static_cast<double>(served.plan.tp * served.plan.dp);
  struct Row {
    double below_gib, chunk, graph_sequences, with_tp;
  };
  constexpr Row kRows[] = {
      {20, 2048, 8, 8}, {35, 2048, 24, 80}, {60, 4096, 32, 160}, {1e9, 8192, 256, 512}};
  const auto* row = std::find_if(std::begin(kRows), std::end(kRows),
                                 [&](const Row& r) { return memory < r.below_gib * 1024; });
  constexpr double kConstant = 512, kPerToken = 1.5, kPerSequence = 2, kFewTokens = 2048;
  constexpr double kManyRanks = 4, kPerEightRanks = 1024.0 / 8;
  // Small GPUs have smaller chunks by default.
  const double chunk =
      std::min(row->chunk, static_cast<double>(served.asked.execution.max_num_batched_tokens));
  const double reserved = kConstant + kPerToken * std::max(chunk, kFewTokens) +
                          kPerSequence * (tp < kManyRanks ? row->graph_sequences : row->with_tp) +
                          kPerEightRanks * tp;
  return std::max(0.0, std::round((memory - reserved) / memory * 1000) / 1000);
}

int64_t part_of(double fraction, int64_t bytes) {
  return static_cast<int64_t>(fraction * static_cast<double>(bytes));
}

/// Sets the budget, and what of it is not for the cache. `framework`: bytes of the process.
void apply_vllm(CachePool& p, int64_t /*framework*/) {
  p.budget_bytes = part_of(p.fraction, p.visible_bytes);
  p.fixed_bytes = checked_add(p.weights_bytes, p.profile_bytes + p.non_torch_bytes);
}

/// The fraction counts of the memory that is free before the weights are read.
void apply_sglang(CachePool& p, int64_t framework) {
  p.budget_bytes = part_of(p.fraction, p.visible_bytes - framework);
  p.fixed_bytes = p.weights_bytes;
}

/// The fraction counts of what weights and the largest step leave.
void apply_trtllm(CachePool& p, int64_t framework) {
  p.fixed_bytes = checked_add(p.weights_bytes, p.profile_bytes);
  const int64_t left = p.visible_bytes - framework - p.fixed_bytes;
  p.budget_bytes = p.fixed_bytes + (left > 0 ? part_of(p.fraction, left) : left);
}

/// How a server decides what its cache gets.
struct CacheRule {
  std::string_view name;  ///< SoftwareDef::cache_rule
  /// Default of the server's option where it is computed; null: ServerDefaults::memory_share.
  double (*share)(const ServedModel& served) = nullptr;
  void (*apply)(CachePool& pool, int64_t framework) = nullptr;
  /// Its profiling run counts the sampler, tensors that stay, and what modules and libraries take
  /// outside of PyTorch ("non_torch_memory" in vLLM's log; the CUDA context is there before).
  bool profiles_all = false;
};

const CacheRule& rule_of(const SoftwareDef& software) {
  static constexpr CacheRule kRules[] = {
      {.name = "vllm", .apply = apply_vllm, .profiles_all = true},
      {.name = "sglang", .share = sglang_fraction, .apply = apply_sglang},
      {.name = "trtllm", .apply = apply_trtllm},
  };
  const auto* const rule =
      std::find_if(std::begin(kRules), std::end(kRules),
                   [&](const CacheRule& r) { return r.name == software.cache_rule; });
  TILECAST_CHECK(rule != std::end(kRules)) << "unknown rule of a cache: " << software.cache_rule;
  return *rule;
}

const SoftwareDef& software_asked(const ServedModel& served) {
  return software_def(*served.asked.execution.software);
}

}  // namespace

PoolRule pool_rule(const ServedModel& served) {
  const Execution& e = served.asked.execution;
  const SoftwareDef& software = software_asked(served);
  PoolRule rule{"", 1};  // it takes what it needs
  if (software.serves()) {
    const auto computed = rule_of(software).share;
    rule = {software.server.memory_option,
            computed != nullptr ? computed(served) : software.server.memory_share};
  }
  rule.fraction = e.gpu_memory_utilization.value_or(rule.fraction);
  return rule;
}

int64_t communication_bytes(const CachePool& p, const SoftwareStack& stack) {
  return std::max<int64_t>(0, p.non_torch_bytes - libraries_bytes(stack, false));
}

int64_t beside_budget_bytes(const CachePool& p, const SoftwareStack& stack) {
  const int64_t framework =
      checked_add(framework_bytes(stack, false), communication_bytes(p, stack));
  const int64_t all_but_cache = checked_add(checked_add(p.weights_bytes, p.profile_bytes),
                                            checked_add(framework, p.graphs_bytes));
  return all_but_cache - p.fixed_bytes;
}

PoolLimits pool_limits(const Request& request) {
  return {.max_num_seqs = *request.load.max_num_seqs,
          .max_num_batched_tokens = request.execution.max_num_batched_tokens};
}

std::optional<CachePool> make_pool(const ServedModel& served, const PoolLimits& limits,
                                   const RankBytes& rank) {
  const Request& r = served.asked;
  const SoftwareDef& software = software_asked(served);
  if (!software.serves()) return std::nullopt;
  const SoftwareStack& stack = software.memory;
  const int64_t workspace = workspace_bytes(served.device, stack, Mode::kInference);
  const PoolRule rule = pool_rule(served);
  CachePool p{.rule = rule.option,
              .fraction = rule.fraction,
              .visible_bytes = visible_bytes(served.device),
              .weights_bytes = rank.weights,
              .profile_bytes = checked_add(rank.activations, workspace)};
  const StepKernels captured = step_kernels(served, {{captured_tokens(limits), 1, 1}}, rank.part);
  if (r.execution.cuda_graphs) p.graphs_bytes = graphs_bytes(limits, captured);
  const CacheRule& cache_rule = rule_of(software);
  if (cache_rule.profiles_all) {
    if (served.stages[rank.part].layers.has_end)
      p.profile_bytes =
          std::max(p.profile_bytes, checked_add(sampler_bytes(served, limits), workspace));
    p.profile_bytes = checked_add(p.profile_bytes, held_bytes(served, limits, captured.program));
    p.non_torch_bytes = libraries_bytes(stack, false);
    if (served.plan.ranks() > 1)
      p.non_torch_bytes = checked_add(p.non_torch_bytes, stack.communication_bytes);
  }
  cache_rule.apply(p, framework_bytes(stack, false));
  if (cache_rule.profiles_all && r.execution.count_cuda_graphs)
    p.fixed_bytes = checked_add(p.fixed_bytes, p.graphs_bytes);
  p.cache_bytes = std::max<int64_t>(0, p.budget_bytes - p.fixed_bytes);
  p.max_model_len =
      r.execution.max_model_len.value_or(served.model.max_positions.value_or(r.prompt + r.output));
  const CacheBlocks blocks =
      divide_cache(stage_decoder(served, rank.part),
                   {.software = *r.execution.software,
                    .cache_bytes = p.cache_bytes,
                    .ranks = r.execution.tp,
                    .kv_dtype = served.kv_dtype,
                    .block_tokens = served.decoder().latent ? software.server.latent_block_tokens
                                                            : software.server.block_tokens,
                    .max_model_len = p.max_model_len,
                    .max_num_batched_tokens = limits.max_num_batched_tokens});
  p.block_tokens = blocks.block_tokens;
  p.blocks = blocks.blocks;
  p.tokens = blocks.tokens;
  p.concurrency = blocks.concurrency;
  return p;
}

}  // namespace tilecast
