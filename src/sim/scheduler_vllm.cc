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
// long_prefill_token_threshold, asynchronous scheduling. A step ends before an image for which the
// encoder's budget or cache has no room (_try_schedule_encoder_inputs). Both have the tokens of a
// step, or of one image if that is larger (v1/core/encoder_cache_manager.py); the cache holds an
// image until all its tokens are computed. Not modelled: images in it that come again.

#include <algorithm>

#include "sim/adapter_slots.h"
#include "sim/prompt_images.h"
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

/// The images that a step may still encode.
class EncoderRoom {
 public:
  explicit EncoderRoom(ServerState& s) : s_(s) {
    if (s.images == nullptr) return;
    const int64_t each = s.images->image_tokens;
    room_ = std::max<int64_t>(1, s.limits.max_num_batched_tokens / each);
    for (const size_t index : s.running) {
      const ServedRequest& r = s.request(index);
      // An image of which a part is computed is in the cache.
      if (!r.decodes() && is_within_image(*s.images, r.spec, r.computed)) room_ -= 1;
    }
  }

  /// Of so many tokens of the request after the first `from`, those that the step computes.
  int64_t take(const ServedRequest& request, int64_t from, int64_t tokens, bool starts) {
    if (s_.images == nullptr) return tokens;
    const ImageTokens taken =
        with_room(*s_.images, request.spec, {tokens, std::max<int64_t>(0, room_)}, from, starts);
    room_ -= taken.images;
    return taken.tokens;
  }

 private:
  ServerState& s_;
  int64_t room_ = 0;
};

void schedule_vllm(ServerState& s, std::vector<Scheduled>& step) {
  int64_t budget = s.limits.max_num_batched_tokens;
  bool preempted = false;
  EncoderRoom encoder(s);
  for (size_t i = 0; i < s.running.size() && budget > 0; ++i) {
    const size_t index = s.running[i];
    const int64_t tokens = encoder.take(s.request(index), s.request(index).computed,
                                        std::min(s.request(index).remaining(), budget), false);
    if (tokens == 0) continue;
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
    const int64_t past =
        request.computed + (s.blocks_left(request) + found.blocks()) * s.limits.block_tokens;
    const int64_t tokens = encoder.take(request, past, std::min(known - past, budget), true);
    if (tokens == 0) break;
    s.restore(request);
    s.hold_prefix(request, found);
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
