// TensorRT-LLM, in-flight batching: docs "Useful Runtime Options" (capacity scheduler policy
// GUARANTEED_NO_EVICT, the default; max_batch_size, max_num_tokens) and "Key Features: chunked
// context", which is off by default; cpp/tensorrt_llm/batch_manager/capacityScheduler.cpp and
// microBatchScheduler.cpp, releases 0.17 to 1.0. A request starts only when the cache holds it at
// its full length beside the full lengths of all that run, so that nothing is ever evicted. A step
// holds all that generate and, in order of arrival, the whole prompts that its tokens leave room
// for. Prompts may be held: tensorrt_llm/_torch/pyexecutor/py_executor.py (_waiting_requests here,
// _balance_adp_requests in engine.cc), release 1.0, from memory. Beside sequences that generate,
// prompts wait for batch_wait_timeout_iters steps, unless the step has batch_wait_max_tokens_ratio
// of max_num_tokens.
// Requests for whose adapter (LoRA) pages lack are passed over, those behind them may start
// (capacityScheduler.cpp, from memory).
// Blocks that requests have in common: src/sim/prefix_cache.h.
// Not modelled: MAX_UTILIZATION, chunked context, early stop of generation; a request does not wait
// for blocks that another one is computing.

#include "sim/adapter_slots.h"
#include "sim/scheduler.h"

namespace tilecast {
namespace {

int64_t full_length(const ServedRequest& request) {
  return request.spec.prompt + request.spec.output - 1;
}

int64_t uncached_tokens(const ServerState& s, const ServedRequest& request,
                        const FoundPrefix& found) {
  return request.remaining() - found.blocks() * s.limits.block_tokens;
}

int64_t startable_tokens(const ServerState& s) {
  int64_t budget = s.limits.max_num_batched_tokens - static_cast<int64_t>(s.running.size());
  int64_t slots = s.limits.max_num_seqs - static_cast<int64_t>(s.running.size());
  int64_t blocks = s.free.count, tokens = 0;
  BatchAdapters adapters(s);
  for (const size_t index : s.waiting) {
    const ServedRequest& request = s.requests[index];
    if (!adapters.has_room(request)) continue;
    const FoundPrefix found = s.find_prefix(request);
    const int64_t uncached = uncached_tokens(s, request, found);
    blocks -= s.blocks_to_admit(request, full_length(request), found);
    if (slots == 0 || uncached > budget || blocks < 0) break;
    adapters.add(request);
    slots -= 1;
    budget -= uncached;
    tokens += uncached;
  }
  return tokens;
}

/// Whether prompts that could start wait for others in this step.
bool holds_prompts(ServerState& s) {
  if (s.holds) return true;  // until each data-parallel rank has one
  if (s.limits.batch_wait_steps == 0 || s.limits.dp > 1 || s.running.empty()) return false;
  const int64_t tokens = startable_tokens(s);
  if (tokens == 0) return false;
  const auto all = static_cast<double>(tokens + static_cast<int64_t>(s.running.size()));
  if (s.held_steps < s.limits.batch_wait_steps && all < s.limits.batch_wait_tokens) {
    s.held_steps += 1;
    return s.holds = true;
  }
  s.held_steps = 0;
  return false;
}

void schedule_trtllm(ServerState& s, std::vector<Scheduled>& step) {
  int64_t budget = s.limits.max_num_batched_tokens;
  const bool held = holds_prompts(s);
  for (const size_t index : s.running) {
    if (budget == 0) return;
    step.push_back({index, 1});
    budget -= 1;
  }
  if (held) return;
  BatchAdapters adapters(s);
  auto next = s.waiting.begin();
  while (next != s.waiting.end() &&
         static_cast<int64_t>(s.running.size()) < s.limits.max_num_seqs) {
    const size_t index = *next;
    ServedRequest& request = s.request(index);
    if (!adapters.has_room(request)) {
      s.passed_over += 1;
      ++next;
      continue;
    }
    const FoundPrefix found = s.find_prefix(request);
    if (uncached_tokens(s, request, found) > budget) break;
    if (s.blocks_to_admit(request, full_length(request), found) > s.free.count) break;
    s.hold_prefix(request, found);
    if (!s.allocate(request, full_length(request))) break;
    adapters.add(request);
    next = s.waiting.erase(next);
    s.running.push_back(index);
    step.push_back({index, request.remaining()});
    budget -= request.remaining();
  }
}

}  // namespace

// Blocks of 32 tokens: tensorrt_llm/llmapi (KvCacheConfig.tokens_per_block).
extern const Scheduler kTensorRtLlmScheduler = {.name = "trtllm",
                                                .splits_prompts = false,
                                                .schedule = schedule_trtllm,
                                                .startable_tokens = startable_tokens};

}  // namespace tilecast
