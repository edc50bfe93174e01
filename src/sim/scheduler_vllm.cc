// vLLM, V1 engine: vllm/v1/core/sched/scheduler.py (Scheduler.schedule) and vllm/v1/core/
// kv_cache_manager.py (allocate_slots), first come first served, chunked prefill on (the default).
// Running requests come first, a prompt that is not finished like any other; then waiting ones are
// admitted in order, the last one in part where the budget ends. A request is admitted when the
// free blocks hold all its known tokens (scheduler_reserve_full_isl of newer releases; in older
// ones the prefix cache gives back the chunks of a prompt that was admitted too early), and blocks
// are allocated for the tokens that a step computes, no more. Where a running request gets no
// block, the one that was admitted last is preempted: it goes to the front of the waiting queue,
// and a step that preempts admits nobody. Its full blocks stay in the prefix cache (on by default)
// until others take them, the last tokens' first (SingleTypeKVCacheManager.free, block_pool.py):
// checked with release 0.19.0. A request whose adapter has no place beside max_loras others (LoRA)
// is put aside, and those behind it may start (scheduled_loras). Blocks that requests have in
// common: src/sim/prefix_cache.h. Not modelled: priorities, speculative decoding,
// long_prefill_token_threshold, asynchronous scheduling; that a step ends before an image for which
// the encoder's budget or cache has no room (_try_schedule_encoder_inputs): both are as large as
// the step, so it is shorter by one image at most.

#include <algorithm>

#include "sim/adapter_slots.h"
#include "sim/scheduler.h"

namespace tilecast {
namespace {

void preempt(ServerState& s, ServedRequest& request) {
  if (s.limits.keeps_preempted && s.free.cache == nullptr)
    s.preempt_to_prefix_cache(request);
  else
    s.preempt(request);
}

/// The part of a prompt that has its blocks can be found.
void publish(ServerState& s, ServedRequest& request, int64_t tokens) {
  if (!request.decodes()) s.publish(request, request.computed + tokens);
}

/// Preempts from the back until the request has its blocks; false where it was preempted itself.
bool allocate_or_preempt(ServerState& s, size_t index, int64_t tokens, bool& preempted) {
  while (!s.allocate(s.request(index), s.request(index).computed + tokens)) {
    const size_t last = s.running.back();
    s.running.pop_back();
    preempt(s, s.request(last));
    s.waiting.push_front(last);
    preempted = true;
    if (last == index) return false;
  }
  return true;
}

void schedule_vllm(ServerState& s, std::vector<Scheduled>& step) {
  int64_t budget = s.limits.max_num_batched_tokens;
  bool preempted = false;
  for (size_t i = 0; i < s.running.size() && budget > 0; ++i) {
    const size_t index = s.running[i];
    const int64_t tokens = std::min(s.request(index).remaining(), budget);
    if (!allocate_or_preempt(s, index, tokens, preempted)) break;
    publish(s, s.request(index), tokens);
    step.push_back({index, tokens});
    budget -= tokens;
  }
  if (preempted) return;
  BatchAdapters adapters(s);
  auto next = s.waiting.begin();
  while (next != s.waiting.end() && budget > 0 &&
         static_cast<int64_t>(s.running.size()) < s.limits.max_num_seqs) {
    const size_t index = *next;
    ServedRequest& request = s.request(index);
    if (!adapters.has_room(request)) {
      s.passed_over += 1;
      ++next;
      continue;
    }
    const FoundPrefix found = s.find_prefix(request);
    const int64_t known = request.computed + request.remaining();
    if (s.blocks_to_admit(request, known, found) > s.free.count) break;
    s.restore(request);
    s.hold_prefix(request, found);
    const int64_t tokens = std::min(request.remaining(), budget);
    if (!s.allocate(request, request.computed + tokens)) break;
    publish(s, request, tokens);
    adapters.add(request);
    next = s.waiting.erase(next);
    s.running.push_back(index);
    step.push_back({index, tokens});
    budget -= tokens;
  }
}

}  // namespace

// Blocks of 16 tokens: vllm/config (CacheConfig.block_size).
extern const Scheduler kVllmScheduler = {.name = "vllm", .schedule = schedule_vllm};

}  // namespace tilecast
