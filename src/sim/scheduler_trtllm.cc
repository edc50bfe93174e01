// TensorRT-LLM, in-flight batching: docs "Useful Runtime Options" (capacity scheduler policy
// GUARANTEED_NO_EVICT, the default; max_batch_size, max_num_tokens) and "Key Features: chunked
// context", which is off by default; cpp/tensorrt_llm/batch_manager/capacityScheduler.cpp and
// microBatchScheduler.cpp, releases 0.17 to 1.0. A request starts only when the cache holds it at
// its full length beside the full lengths of all that run, so that nothing is ever evicted. A step
// holds all that generate and, in order of arrival, the whole prompts that its tokens leave room
// for. Blocks that requests have in common: src/sim/prefix_cache.h.
// Not modelled: MAX_UTILIZATION, chunked context, early stop of generation; a request does not wait
// for blocks that another one is computing.

#include "sim/scheduler.h"

namespace tilecast {
namespace {

void schedule_trtllm(ServerState& s, std::vector<Scheduled>& step) {
  int64_t budget = s.limits.max_num_batched_tokens;
  for (const size_t index : s.running) {
    if (budget == 0) return;
    step.push_back({index, 1});
    budget -= 1;
  }
  while (!s.waiting.empty() && static_cast<int64_t>(s.running.size()) < s.limits.max_num_seqs) {
    const size_t index = s.waiting.front();
    ServedRequest& request = s.request(index);
    const FoundPrefix found = s.find_prefix(request);
    if (request.remaining() - found.blocks() * s.limits.block_tokens > budget) break;
    const int64_t whole = request.spec.prompt + request.spec.output - 1;
    if (s.blocks_to_admit(request, whole, found) > s.free.count) break;
    s.hold_prefix(request, found);
    if (!s.allocate(request, whole)) break;
    s.waiting.pop_front();
    s.running.push_back(index);
    step.push_back({index, request.remaining()});
    budget -= request.remaining();
  }
}

}  // namespace

// Blocks of 32 tokens: tensorrt_llm/llmapi (KvCacheConfig.tokens_per_block).
extern const Scheduler kTensorRtLlmScheduler = {
    .name = "trtllm", .splits_prompts = false, .schedule = schedule_trtllm};

}  // namespace tilecast
