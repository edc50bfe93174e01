#pragma once

// State and interface of a scheduler: requests that wait or run, the blocks of the cache, the
// tokens of the next step.

#include <algorithm>
#include <bit>
#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "sim/prefix_cache.h"
#include "sim/serving.h"

namespace tilecast {

/// Blocks of a cache that no running sequence holds. They are taken in the order in which they
/// were freed.
struct FreeBlocks {
  int64_t count = 0;
  int64_t taken = 0;             ///< so far
  PrefixCache* cache = nullptr;  ///< what they contain, where requests have something in common

  void take(int64_t blocks) {
    count -= blocks;
    taken += blocks;
    if (cache != nullptr) cache->take(blocks);
  }
  void give(int64_t blocks) {
    count += blocks;
    if (cache != nullptr) cache->give(blocks);
  }
};

/// Blocks of a preempted request that its next admission may find again.
struct LeftBlocks {
  int64_t blocks = 0;
  int64_t first_taken = 0;  ///< FreeBlocks::taken when the first of them is next
};

/// What a request that starts finds of its prompt.
struct FoundPrefix {
  PrefixCache::Match match;
  int64_t host_blocks = 0;  ///< after it, in the host's memory

  int64_t blocks() const { return match.place.blocks + host_blocks; }
};

struct ServedRequest {
  RequestSpec spec;
  int64_t hit = 0;       ///< its tokens that the prefix cache holds
  int64_t computed = 0;  ///< tokens whose keys and values are in the cache
  int64_t written = 0;   ///< tokens of the output
  int64_t blocks = 0;    ///< of the cache, beside the prefix's
  double ahead = 0;      ///< part of a token that drafts have gained, see tokens_per_step
  LeftBlocks left = {};
  std::span<const PrefixPiece> pieces = {};  ///< its full blocks, prompt and answer
  PrefixCache::Place place = {};             ///< where `hit` ends
  bool was_admitted = false;
  bool counts = true;      ///< it is among ServingLoad::counted
  bool host_read = false;  ///< its blocks came from the host's memory before it starts

  /// Tokens that are known and not computed yet: of the prompt, or written. A running sequence has
  /// one (it decodes) or more (its prompt is not finished, or it was preempted).
  int64_t remaining() const { return spec.prompt + written - computed; }
  bool decodes() const { return written > 0 && remaining() == 1; }
};

/// Blocks that hold so many tokens. Simulations ask for little else, and a division takes long;
/// blocks have a power of two of tokens, except in some hybrid models.
inline int64_t blocks_for(int64_t tokens, int64_t block_tokens) {
  const auto block = static_cast<uint64_t>(block_tokens);
  const uint64_t last = static_cast<uint64_t>(tokens) + block - 1;
  // Not std::has_single_bit: that calls a function on machines without an instruction for it.
  const bool power_of_two = (block & (block - 1)) == 0;
  return static_cast<int64_t>(power_of_two ? last >> std::countr_zero(block) : last / block);
}

/// The most blocks that running sequences lack for so many further tokens each.
inline int64_t most_blocks(int64_t sequences, int64_t tokens, const ServerLimits& limits) {
  return sequences * (tokens / limits.block_tokens + 1);
}

struct Scheduler;

/// The sequences that run in one batch: of a server, or of one data-parallel rank and one batch in
/// the pipeline.
struct ServerState {
  const ServerLimits& limits;
  const Scheduler& scheduler;
  std::vector<ServedRequest>& requests;  ///< of all servers
  FreeBlocks& free;                      ///< of the rank's cache
  std::deque<size_t> waiting;            ///< indices of `requests`, the first is admitted next
  std::vector<size_t> running;           ///< in the order of admission
  const ServingLoad* images = nullptr;   ///< whose images this server encodes; null: none
  int64_t preemptions = 0;
  int64_t host_blocks = 0;        ///< that the next step needs from the host's memory
  std::optional<size_t> chunked;  ///< SGLang: the prompt that is computed in part
  int64_t held_steps = 0;         ///< TensorRT-LLM: for which prompts that could start have waited
  bool holds = false;             ///< TensorRT-LLM: prompts that could start wait in this step
  /// Times that a request was not started for want of an adapter's place, since the last step.
  int64_t passed_over = 0;
  double new_token_ratio = 0;  ///< SGLang: share of the outputs that admission expects

  /// Throws Error{kUnsupported} where the software has no scheduler of requests.
  ServerState(const ServerLimits& server, std::vector<ServedRequest>& all, FreeBlocks& blocks);

  bool idle() const { return waiting.empty() && running.empty() && !chunked; }
  ServedRequest& request(size_t index) { return requests[index]; }

  /// Blocks that the request lacks to hold `tokens` in all.
  int64_t blocks_lacking(const ServedRequest& request, int64_t tokens) const {
    const int64_t own = tokens - request.hit;
    if (own <= request.blocks * limits.block_tokens) return 0;
    return blocks_for(own, limits.block_tokens) - request.blocks;
  }
  /// Gives the request blocks for `tokens` in all; false, and nothing changes, where they lack.
  bool allocate(ServedRequest& request, int64_t tokens) {
    const int64_t lacking = blocks_lacking(request, tokens);
    if (lacking > free.count) return false;
    free.take(lacking);
    request.blocks += lacking;
    return true;
  }
  void release(ServedRequest& request);
  /// It is answered: what it has computed can be found.
  void finish(ServedRequest& request);
  /// What the prefix cache has of a request that waits.
  FoundPrefix find_prefix(const ServedRequest& request) const;
  /// Free blocks that the request takes for `tokens` in all, those that it finds included.
  int64_t blocks_to_admit(const ServedRequest& request, int64_t tokens,
                          const FoundPrefix& found) const {
    if (free.cache == nullptr) return blocks_lacking(request, tokens);
    const int64_t own = tokens - request.hit - found.match.place.blocks * limits.block_tokens;
    return std::max<int64_t>(0, blocks_for(own, limits.block_tokens)) + found.match.free_blocks;
  }
  /// Gives what was found to a request that starts.
  void hold_prefix(ServedRequest& request, const FoundPrefix& found);
  /// Its first `tokens` tokens can be found from now on.
  void publish(ServedRequest& request, int64_t tokens);
  /// A step has computed more of its prompt.
  void note_prompt(ServedRequest& request);
  /// The request loses its cache; all its tokens are to be computed again.
  void preempt(ServedRequest& request);
  /// The same where full blocks stay in the prefix cache until others take them.
  void preempt_to_prefix_cache(ServedRequest& request);
  /// Blocks that are left of a preempted request; its last ones are taken first. At least one of
  /// its tokens is computed again.
  int64_t blocks_left(const ServedRequest& request) const;
  /// Gives these to the request.
  void restore(ServedRequest& request);
};

/// The requests as a server gets them, and the blocks of the prefix that all share.
std::vector<ServedRequest> served_requests(const ServingLoad& load, const ServerLimits& limits);
int64_t shared_blocks(const ServingLoad& load, const ServerLimits& limits);

/// Tokens of one request in the next step.
struct Scheduled {
  size_t request = 0;
  int64_t tokens = 0;
};

/// How a serving software forms its steps.
struct Scheduler {
  std::string_view name;       ///< SoftwareDef::scheduler
  bool splits_prompts = true;  ///< a prompt may be computed in several steps
  /// Requests that wait while all others decode are admitted only after one of those has ended.
  bool admits_at_ends_only = true;
  double first_new_token_ratio = 0;  ///< ServerState::new_token_ratio at the start
  /// Forms the next step in `step`, which is empty: admits, preempts, allocates. It stays empty
  /// only where the server is idle.
  void (*schedule)(ServerState& state, std::vector<Scheduled>& step) = nullptr;
  /// Tokens of the waiting prompts that the next step has room for. May be null: nothing is held.
  int64_t (*startable_tokens)(const ServerState& state) = nullptr;
  /// `steps` decode steps have run in a row without a call of `schedule` between them. May be null.
  void (*note_decode_steps)(ServerState& state, int64_t steps) = nullptr;
};

/// Throws Error{kUnsupported} where the software has none.
const Scheduler& scheduler_of(Software software);

}  // namespace tilecast
