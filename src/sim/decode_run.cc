#include "sim/decode_run.h"

#include <algorithm>

namespace tilecast {
namespace {

/// Blocks for so many tokens of a request.
int64_t blocks_of(const ServedRequest& request, int64_t tokens, int64_t block) {
  return blocks_for(tokens - request.hit, block);
}

}  // namespace

bool DecodeRun::begin(const ServerState& state, Rank& rank) {
  const int64_t block = state.limits.block_tokens;
  rank.sequences = static_cast<int64_t>(state.running.size());
  rank.computed = 0;
  rank.blocks.assign(static_cast<size_t>(block), 0);
  for (const size_t index : state.running) {
    const ServedRequest& r = state.requests[index];
    if (!r.decodes()) return false;
    left_ = std::min(left_, r.spec.output - r.written);
    rank.computed += r.computed;
    // All that it will ever need, or just what it needs now.
    if (r.blocks >= blocks_of(r, r.spec.prompt + r.spec.output - 1, block)) continue;
    if (r.blocks != blocks_of(r, r.computed, block)) return false;
    const int64_t room = r.blocks * block - (r.computed - r.hit);  // tokens of the last block
    rank.blocks[static_cast<size_t>(room)] += 1;
  }
  return true;
}

void DecodeRun::begin(std::span<ServerState> ranks, const ServerLimits& limits) {
  constexpr int64_t kMost = int64_t{1} << 40;
  left_ = kMost;
  taken_ = 0;
  phase_ = 0;
  ranks_.resize(ranks.size());
  bool possible = true;
  for (size_t r = 0; r < ranks.size() && possible; ++r) {
    const ServerState& state = ranks[r];
    possible = !state.chunked && state.scheduler.note_decode_steps == nullptr &&
               (state.waiting.empty() || state.scheduler.admits_at_ends_only) &&
               begin(state, ranks_[r]);
  }
  for (size_t r = 0; r < ranks.size() && possible; ++r) {
    if (most_blocks(ranks_[r].sequences, left_, limits) <= ranks[r].free.count) continue;
    int64_t lacking = 0;
    for (const size_t index : ranks[r].running) {
      const ServedRequest& request = ranks[r].requests[index];
      lacking += ranks[r].blocks_lacking(request, request.computed + left_);
    }
    possible = lacking <= ranks[r].free.count;
  }
  if (!possible || left_ == kMost) left_ = 0;
}

void DecodeRun::describe(std::vector<ServingBatch>& batches) const {
  batches.resize(ranks_.size());
  for (size_t r = 0; r < ranks_.size(); ++r) {
    const Rank& rank = ranks_[r];
    batches[r].prompts.clear();
    batches[r].decoding = rank.sequences;
    batches[r].decode_context = rank.sequences > 0
                                    ? static_cast<double>(rank.computed + rank.sequences * taken_) /
                                          static_cast<double>(rank.sequences)
                                    : 0;
  }
}

bool DecodeRun::has_room(std::span<const ServerState> ranks) const {
  for (size_t r = 0; r < ranks_.size(); ++r) {
    if (ranks_[r].blocks[phase_] > ranks[r].free.count) return false;
  }
  return true;
}

void DecodeRun::take(std::span<ServerState> ranks, int64_t steps) {
  for (int64_t s = 0; s < steps; ++s) {
    for (size_t r = 0; r < ranks_.size(); ++r) ranks[r].free.take(ranks_[r].blocks[phase_]);
    if (++phase_ == ranks_.front().blocks.size()) phase_ = 0;
  }
  taken_ += steps;
  left_ -= steps;
}

void DecodeRun::end(std::span<ServerState> ranks) {
  left_ = 0;
  if (taken_ == 0) return;
  for (size_t r = 0; r < ranks_.size(); ++r) {
    ServerState& state = ranks[r];
    for (const size_t index : state.running) {
      ServedRequest& request = state.request(index);
      request.computed += taken_;
      request.written += taken_;
      request.blocks =
          std::max(request.blocks, blocks_of(request, request.computed, state.limits.block_tokens));
    }
  }
  taken_ = 0;
}

}  // namespace tilecast
