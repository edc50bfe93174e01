// SGLang: python/sglang/srt/managers/scheduler.py (get_next_batch_to_run), schedule_policy.py
// (PrefillAdder) and schedule_batch.py (retract_decode), releases 0.4 to 0.5, policy fcfs, overlap
// and mixed chunks left out (mixed chunks are off by default). A step is a prefill of waiting
// prompts or a decode of all that run, never both; prompts come first. Admission expects that each
// running sequence writes a share (`new_token_ratio`) of what is left of its output, and the new
// one all of it; the share starts at 0.7 and falls while decoding goes well. Where the cache is
// full, the sequences with the least written are retracted to the end of the queue, and the share
// rises. A request whose adapter (LoRA) would be one more than max_loras_per_batch ends the
// admission of all. Blocks that requests have in common: src/sim/prefix_cache.h. Not modelled: the
// radix tree's order of requests (lpm), --enable-mixed-chunk; without common blocks, what retracted
// requests leave in the tree.

#include <algorithm>

#include "base/check.h"
#include "sim/adapter_slots.h"
#include "sim/scheduler.h"

namespace tilecast {
namespace {

// python/sglang/srt/managers/schedule_policy.py: CLIP_MAX_NEW_TOKENS_ESTIMATION.
constexpr int64_t kMostExpectedTokens = 4096;
// python/sglang/srt/server_args.py: max_prefill_tokens.
constexpr int64_t kMaxPrefillTokens = 16384;
// python/sglang/global_config.py: default_init_new_token_ratio, default_min_new_token_ratio_factor,
// default_new_token_ratio_decay_steps, retract_decode_steps.
constexpr double kFirstRatio = 0.7, kLeastRatio = 0.7 * 0.14, kDecaySteps = 600;
constexpr double kRetractSteps = 20;

int64_t expected_output(const ServedRequest& r) {
  return std::min(r.spec.output - r.written, kMostExpectedTokens);
}

/// Tokens that a prefill may still take: of the cache, of the batch, of the chunk.
struct PrefillBudget {
  double cache = 0;
  int64_t batch = kMaxPrefillTokens;
  int64_t chunk = 0;
  bool open() const { return cache > 0 && batch > 0 && chunk > 0; }
  void take(int64_t tokens, int64_t output) {
    cache -= static_cast<double>(tokens + output);
    batch -= tokens;
    chunk -= tokens;
  }
};

void run_prompt(ServerState& s, std::vector<Scheduled>& step, size_t index, int64_t tokens) {
  ServedRequest& request = s.request(index);
  TILECAST_CHECK(s.allocate(request, request.computed + tokens)) << "admitted without blocks";
  step.push_back({index, tokens});
  if (tokens < request.remaining()) {
    s.chunked = index;
  } else {
    s.running.push_back(index);
  }
}

void schedule_prefill(ServerState& s, std::vector<Scheduled>& step) {
  const int64_t free_tokens = s.free.count * s.limits.block_tokens;
  PrefillBudget left{.cache = static_cast<double>(free_tokens),
                     .chunk = s.limits.max_num_batched_tokens};
  for (const size_t index : s.running)
    left.cache -= s.new_token_ratio * static_cast<double>(expected_output(s.request(index)));
  if (s.chunked) {
    const size_t index = *s.chunked;
    const ServedRequest& request = s.request(index);
    const int64_t tokens = std::min({request.remaining(), left.chunk, free_tokens});
    if (tokens == 0) return;
    left.take(tokens, tokens < request.remaining() ? 0 : expected_output(request));
    s.chunked.reset();
    run_prompt(s, step, index, tokens);
  }
  BatchAdapters adapters(s);
  while (!s.waiting.empty() && !s.chunked && left.open() &&
         static_cast<int64_t>(s.running.size()) < s.limits.max_num_seqs) {
    const size_t index = s.waiting.front();
    ServedRequest& request = s.request(index);
    if (!adapters.has_room(request)) break;
    const FoundPrefix found = s.find_prefix(request);
    const int64_t tokens = request.remaining() - found.blocks() * s.limits.block_tokens;
    const int64_t output = expected_output(request);
    const auto held =
        static_cast<double>((found.match.free_blocks + found.host_blocks) * s.limits.block_tokens);
    // A server without work takes what fits exactly, which the estimate would keep waiting.
    const bool alone = s.running.empty() && step.empty();
    if (!alone && static_cast<double>(tokens + output) >= left.cache - held) break;
    if (tokens > left.batch && !step.empty()) break;
    const int64_t now = std::min(tokens, left.chunk);
    // In a pipeline, the other batches may hold the cache.
    if (s.blocks_to_admit(request, request.spec.prompt + request.written - tokens + now, found) >
        s.free.count)
      break;
    s.hold_prefix(request, found);
    left.cache -= held;
    adapters.add(request);
    s.waiting.pop_front();
    left.take(now, now < tokens ? 0 : output);
    run_prompt(s, step, index, now);
  }
}

void decay_ratio(ServerState& s, int64_t steps) {
  const double decay = (kFirstRatio - kLeastRatio) / kDecaySteps * static_cast<double>(steps);
  s.new_token_ratio = std::max(kLeastRatio, s.new_token_ratio - decay);
}

/// Drops sequences until each of the others has room for its next token.
void retract(ServerState& s) {
  const auto lacking = [&] {
    int64_t blocks = 0;
    for (const size_t index : s.running)
      blocks += s.blocks_lacking(s.request(index), s.request(index).computed + 1);
    return blocks;
  };
  bool retracted = false;
  while (!s.running.empty() && lacking() > s.free.count) {
    const auto least =
        std::min_element(s.running.begin(), s.running.end(), [&](size_t a, size_t b) {
          const ServedRequest &x = s.request(a), &y = s.request(b);
          if (x.written != y.written) return x.written < y.written;
          return x.spec.prompt > y.spec.prompt;
        });
    const size_t index = *least;
    s.running.erase(least);
    s.preempt(s.request(index));
    s.waiting.push_back(index);
    retracted = true;
  }
  if (!retracted) return decay_ratio(s, 1);
  double written = 0, output = 0;
  for (const size_t index : s.running) {
    written += static_cast<double>(s.request(index).written);
    output += static_cast<double>(s.request(index).spec.output);
  }
  const double ahead = kRetractSteps * static_cast<double>(s.running.size());
  s.new_token_ratio = output > 0 ? std::min(1.0, (written + ahead) / output) : kFirstRatio;
}

void schedule_sglang(ServerState& s, std::vector<Scheduled>& step) {
  schedule_prefill(s, step);
  // Sequences whose cache came from a prefill worker decode with the others
  // (disaggregation/decode.py, process_prebuilt).
  const bool all_decode = std::all_of(step.begin(), step.end(), [&](const Scheduled& scheduled) {
    return s.request(scheduled.request).decodes();
  });
  if (!step.empty() && !all_decode) return;
  step.clear();
  retract(s);
  if (s.running.empty())
    return schedule_prefill(s, step);  // all were retracted for the chunked prompt
  for (const size_t index : s.running) {
    TILECAST_CHECK(s.allocate(s.request(index), s.request(index).computed + 1))
        << "retraction left too few blocks";
    step.push_back({index, 1});
  }
}

}  // namespace

// Pages of one token: python/sglang/srt/server_args.py (page_size).
extern const Scheduler kSglangScheduler = {.name = "sglang",
                                           .admits_at_ends_only = false,
                                           .first_new_token_ratio = kFirstRatio,
                                           .schedule = schedule_sglang,
                                           .note_decode_steps = decay_ratio};

}  // namespace tilecast
