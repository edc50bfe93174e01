#include "sim/scheduler.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "software/software.h"
#include "tilecast/error.h"

namespace tilecast {

// The schedulers, one file each.
extern const Scheduler kVllmScheduler;
extern const Scheduler kSglangScheduler;
extern const Scheduler kTensorRtLlmScheduler;

namespace {

int64_t hit_tokens(int64_t prompt, const ServerLimits& limits) {
  if (limits.prefix_hit_rate == 0) return 0;
  // At least one token is computed: the logits of the first output token come from it.
  const auto wished = static_cast<int64_t>(limits.prefix_hit_rate * static_cast<double>(prompt));
  return std::min(wished, prompt - 1) / limits.block_tokens * limits.block_tokens;
}

int64_t blocks_of(int64_t tokens, const ServerLimits& limits) {
  return blocks_for(tokens, limits.block_tokens);
}

}  // namespace

/// The prefix that all requests share is held once.
int64_t shared_blocks(const ServingLoad& load, const ServerLimits& limits) {
  if (limits.prefix_hit_rate == 0) return 0;
  int64_t tokens = 0;
  for (const RequestSpec& r : load.requests)
    tokens = std::max(tokens, hit_tokens(r.prompt, limits));
  return tokens / limits.block_tokens;
}

std::vector<ServedRequest> served_requests(const ServingLoad& load, const ServerLimits& limits) {
  std::vector<ServedRequest> requests;
  requests.reserve(load.requests.size());
  for (const RequestSpec& spec : load.requests) {
    const int64_t hit = hit_tokens(spec.prompt, limits);
    requests.push_back({.spec = spec, .hit = hit, .computed = hit});
  }
  return requests;
}

ServerState::ServerState(const ServerLimits& server, std::vector<ServedRequest>& all,
                         FreeBlocks& blocks)
    : limits(server),
      scheduler(scheduler_of(server.software)),
      requests(all),
      free(blocks),
      new_token_ratio(scheduler.first_new_token_ratio) {}

void ServerState::release(ServedRequest& request) {
  free.give(request.blocks);
  request.blocks = 0;
  if (free.cache == nullptr) return;
  free.count += free.cache->release(request.place);
  request.place = {};
  request.hit = 0;
}

void ServerState::finish(ServedRequest& request) {
  publish(request, request.computed);
  release(request);
}

FoundPrefix ServerState::find_prefix(const ServedRequest& request) const {
  if (free.cache == nullptr || request.computed > 0) return {};
  // At least one token is computed.
  const int64_t most = (request.remaining() - 1) / limits.block_tokens;
  FoundPrefix found{.match = free.cache->find(request.pieces, most)};
  const PrefixCache::Place& at = found.match.place;
  if (free.cache->host() != nullptr)
    found.host_blocks =
        free.cache->host()->find(request.pieces, at.piece, at.in_piece, most - at.blocks);
  return found;
}

void ServerState::hold_prefix(ServedRequest& request, const FoundPrefix& found) {
  if (free.cache == nullptr || request.computed > 0) return;
  request.place = free.cache->hold(found.match);
  free.count -= found.match.free_blocks;
  request.hit = request.place.blocks * limits.block_tokens;
  request.computed = found.blocks() * limits.block_tokens;
  if (!request.was_admitted && request.counts)
    free.cache->note_hit(request.spec.prompt, request.hit, found.host_blocks * limits.block_tokens);
  request.was_admitted = true;
  if (!request.host_read) host_blocks += found.host_blocks;
  request.host_read = false;
  if (free.cache->host() != nullptr && found.blocks() > 0)
    free.cache->host()->touch(request.pieces);
}

void ServerState::publish(ServedRequest& request, int64_t tokens) {
  // Accepted drafts may be ahead of the blocks that a step has asked for.
  const int64_t blocks =
      std::min(tokens / limits.block_tokens, request.place.blocks + request.blocks);
  if (free.cache == nullptr || blocks <= request.place.blocks) return;
  const PrefixCache::Published published =
      free.cache->publish(request.pieces, request.place, blocks);
  const int64_t moved = published.place.blocks - request.place.blocks;
  request.place = published.place;
  request.blocks -= moved;
  request.hit += moved * limits.block_tokens;
  free.count += published.freed;
}

void ServerState::note_prompt(ServedRequest& request) {
  if (free.cache == nullptr || free.cache->rule().finds_when_allocated) return;
  if (request.remaining() > 0 && !free.cache->rule().stores_parts_of_prompts) return;
  publish(request, request.computed);
}

void ServerState::preempt(ServedRequest& request) {
  if (free.cache != nullptr && free.cache->rule().keeps_preempted)
    publish(request, request.computed);
  release(request);
  request.computed = request.hit;
  preemptions += 1;
}

void ServerState::preempt_to_prefix_cache(ServedRequest& request) {
  const int64_t full =
      std::min(request.blocks, (request.computed - request.hit) / limits.block_tokens);
  request.left = {full, free.taken + free.count + request.blocks - full};
  preempt(request);
}

int64_t ServerState::blocks_left(const ServedRequest& request) const {
  const LeftBlocks& left = request.left;
  const int64_t taken = std::clamp<int64_t>(free.taken - left.first_taken, 0, left.blocks);
  const int64_t needed = request.remaining() - 1;
  return std::min(left.blocks - taken, needed / limits.block_tokens);
}

void ServerState::restore(ServedRequest& request) {
  const int64_t blocks = blocks_left(request);
  // From among the free ones, ahead of whose turn it is.
  free.count -= blocks;
  request.blocks += blocks;
  request.computed += blocks * limits.block_tokens;
  request.left = {};
}

const Scheduler& scheduler_of(Software software) {
  static constexpr std::array kSchedulers = {&kVllmScheduler, &kSglangScheduler,
                                             &kTensorRtLlmScheduler};
  const std::string& name = software_def(software).scheduler;
  for (const Scheduler* scheduler : kSchedulers) {
    if (scheduler->name == name) return *scheduler;
  }
  throw Error(ErrorKind::kUnsupported,
              fmt::format("{} has no scheduler of requests", software_name(software)));
}

int64_t default_block_tokens(Software software) {
  (void)scheduler_of(software);
  return software_def(software).server.block_tokens;
}

int64_t blocks_needed(const ServingLoad& load, const ServerLimits& limits) {
  int64_t most = 0;
  for (const RequestSpec& r : load.requests) {
    // The last token of the output is never attended to.
    const int64_t own = r.prompt + r.output - 1 - hit_tokens(r.prompt, limits);
    most = std::max(most, blocks_of(own, limits));
  }
  return most + shared_blocks(load, limits);
}

}  // namespace tilecast
