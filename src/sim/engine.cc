#include "sim/engine.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/budget.h"
#include "base/check.h"
#include "tilecast/error.h"

namespace tilecast {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();

}  // namespace

Engine::Engine(const ServerPool& pool, const EngineShared& shared, int64_t prefix_blocks)
    : pool_(pool),
      shared_(shared),
      limits_(pool.limits),
      free_blocks_(static_cast<size_t>(pool.limits.dp),
                   FreeBlocks{pool.limits.cache_blocks - prefix_blocks}),
      lanes_(static_cast<size_t>(pool.limits.pp)),
      stage_free_(static_cast<size_t>(pool.limits.pp), 0) {
  limits_.max_num_seqs = (limits_.max_num_seqs + limits_.pp - 1) / limits_.pp;
  if (limits_.max_adapters > 0)
    adapter_slots_.assign(free_blocks_.size(), AdapterSlots(limits_.max_adapters));
  if (shared.prefix != nullptr) {
    for (const FreeBlocks& blocks : free_blocks_) {
      if (limits_.host_blocks > 0) host_caches_.emplace_back(limits_.host_blocks);
      prefix_caches_.emplace_back(blocks.count, *shared.prefix,
                                  host_caches_.empty() ? nullptr : &host_caches_.back());
    }
    for (size_t r = 0; r < free_blocks_.size(); ++r) free_blocks_[r].cache = &prefix_caches_[r];
  }
  for (Lane& lane : lanes_) {
    for (FreeBlocks& blocks : free_blocks_) {
      lane.ranks.emplace_back(limits_, shared.requests, blocks);
      lane.ranks.back().images = shared.images;
    }
    lane.in_flight.assign(free_blocks_.size(), 0);
    lane.step.resize(free_blocks_.size());
  }
}

int64_t Engine::preemptions() const {
  int64_t all = 0;
  for (const Lane& lane : lanes_) {
    for (const ServerState& state : lane.ranks) all += state.preemptions;
  }
  return all;
}

void Engine::forget_counts() {
  for (Lane& lane : lanes_) {
    for (ServerState& state : lane.ranks) state.preemptions = 0;
  }
  for (PrefixCache& cache : prefix_caches_) cache.forget_counts();
  steps_ = decoded_ = adapter_loads_ = adapter_steps_ = 0;
  busy_s_ = used_block_s_ = 0;
  gaps_ = {};
  begins_counting_ = true;
}

void Engine::add_prefix_use(PrefixUse& use) const {
  for (const PrefixCache& cache : prefix_caches_) {
    use.prompts += cache.prompt_tokens();
    use.hits += cache.hit_tokens();
    use.evicted += cache.evicted_blocks() * limits_.block_tokens;
    use.cached += cache.cached_blocks() * limits_.block_tokens;
    use.host_hits += cache.host_hit_tokens();
    if (cache.host() != nullptr) use.host_cached += cache.host()->blocks() * limits_.block_tokens;
  }
}

double Engine::next_of(const Lane& lane) const {
  if (lane.running) return lane.end_s;
  return lane.has_work && !lane.blocked ? std::max(lane.ready_s, stage_free_.front()) : kNever;
}

double Engine::earliest_s() const {
  double next = kNever;
  for (const Lane& lane : lanes_) next = std::min(next, next_of(lane));
  return next;
}

/// Whether a request that comes now is seen later than at the start of the next step: that one is
/// formed already, or the server does not look before each step.
bool Engine::sees_later(const Lane& lane) const {
  return lanes_.size() == 1 && (limits_.schedules_ahead || limits_.poll_steps > 1) &&
         (lane.running || lane.goes_on);
}

void Engine::take_unseen(Lane& lane) {
  for (const auto& [rank, request] : lane.unseen) lane.ranks[rank].waiting.push_back(request);
  lane.unseen.clear();
}

/// Takes the requests that came, if the server looks before it forms this step.
void Engine::look(Lane& lane) {
  if (lane.unlooked_steps % limits_.poll_steps == 0) take_unseen(lane);
}

/// TensorRT-LLM with data-parallel ranks (attention_dp_config.enable_balance): prompts wait until
/// each rank has one, and then for more, so that all compute prompts at once.
bool Engine::holds_prompts(Lane& lane) const {
  if (limits_.rank_wait_steps == 0 || lane.ranks.size() == 1) return false;
  bool all_start = true, all_decode = true, any_starts = false;
  for (const ServerState& state : lane.ranks) {
    if (state.scheduler.startable_tokens == nullptr) return false;
    const bool starts = state.scheduler.startable_tokens(state) > 0;
    any_starts = any_starts || starts;
    all_start = all_start && starts;
    all_decode = all_decode && !state.running.empty();
  }
  if (!any_starts) return false;
  if (all_start) {
    lane.rank_wait_steps = 0;
    if (!all_decode) return false;
    if (lane.rank_batch_steps < limits_.rank_batch_steps) {
      lane.rank_batch_steps += 1;
      return true;
    }
    lane.rank_batch_steps = 0;
    return false;
  }
  lane.rank_wait_steps += 1;
  if (all_decode && lane.rank_wait_steps < limits_.rank_wait_steps) return true;
  lane.rank_wait_steps = 0;
  return false;
}

/// Requests go to the data-parallel rank and batch with the fewest.
std::pair<Engine::Lane*, size_t> Engine::next_place() {
  Lane* to = nullptr;
  size_t rank = 0;
  for (Lane& lane : lanes_) {
    for (size_t r = 0; r < lane.in_flight.size(); ++r) {
      if (to != nullptr && lane.in_flight[r] >= to->in_flight[rank]) continue;
      to = &lane;
      rank = r;
    }
  }
  return {to, rank};
}

double Engine::read_host(size_t request, double at_s) {
  if (host_caches_.empty() || shared_.prefix->host_load != "beside_steps") return at_s;
  const auto [lane, rank] = next_place();
  ServedRequest& r = lane->ranks[rank].request(request);
  const int64_t blocks = lane->ranks[rank].find_prefix(r).host_blocks;
  if (blocks == 0) return at_s;
  r.host_read = true;
  host_free_s_ = std::max(host_free_s_, at_s) + limits_.host_block_s * static_cast<double>(blocks);
  return host_free_s_;
}

void Engine::receive(size_t request, double at_s) {
  const auto [to, rank] = next_place();
  bool later = sees_later(*to);
  if (to->running) {
    // The step after this one is one of those that run: it is the last of them.
    if (later && limits_.poll_steps == 1 && cut(*to, at_s, 1))
      later = false;
    else
      cut(*to, at_s, 0);
    to->arrived = true;
  }
  end_decode_run(*to);
  if (!to->running && !to->has_work) to->ready_s = std::max(to->ready_s, at_s);
  // Of a prefill worker's request the first token is there.
  if (to->ranks[rank].request(request).written > 0)
    to->first_tokens.emplace_back(shared_.times[request].first_s, 1);
  if (later)
    to->unseen.emplace_back(rank, request);
  else
    to->ranks[rank].waiting.push_back(request);
  to->has_work = true;
  to->in_flight[rank] += 1;
  in_flight_ += 1;
  next_s_ = earliest_s();
}

void Engine::advance(double until_s, std::vector<Answered>& answered) {
  Lane* next = &lanes_.front();
  double best = next_of(*next);
  for (Lane& lane : lanes_) {
    const double at = next_of(lane);
    // At equal times, the end of a step comes first.
    if (at > best || (at == best && (next->running || !lane.running))) continue;
    next = &lane;
    best = at;
  }
  const bool ends = next->running;
  if (!ends) begin(*next, until_s);
  // With one batch nothing else can happen before it ends, but for what comes from outside.
  if (ends || (lanes_.size() == 1 && next->end_s <= until_s)) finish(*next, answered);
  next_s_ = earliest_s();
}

void Engine::begin(Lane& lane, double until_s) {
  lane.arrived = false;
  if (lane.decode_run.left() > 1 && continue_decode_run(lane, until_s)) return;
  end_decode_run(lane);
  if (!limits_.schedules_ahead) look(lane);
  lane.batches.resize(lane.ranks.size());
  const bool holds = holds_prompts(lane);
  bool undisturbed = true, empty = true, held = false;
  for (size_t r = 0; r < lane.ranks.size(); ++r) {
    ServerState& state = lane.ranks[r];
    lane.step[r].clear();
    if (state.idle()) {
      describe(state, {}, lane.batches[r]);
      continue;
    }
    const int64_t preempted = state.preemptions;
    state.holds = holds;
    state.scheduler.schedule(state, lane.step[r]);
    undisturbed = undisturbed && state.preemptions == preempted;
    empty = empty && lane.step[r].empty();
    held = held || state.holds;
    describe(state, lane.step[r], lane.batches[r]);
  }
  lane.goes_on = false;
  if (empty) {
    take_unseen(lane);
    return wait(lane);
  }
  use_adapters(lane);
  // Those who are held or not seen may be in one of the next steps.
  const bool alike = !held && lane.unseen.empty();
  if (limits_.schedules_ahead) look(lane);
  run(lane, undisturbed && alike);
  if (!alike) lane.arrived = true;
}

/// The other batches hold the cache, or what they have preempted comes first.
void Engine::wait(Lane& lane) {
  lane.blocked = true;
  if (earliest_s() < kNever) return;
  vain_rounds_ += 1;
  TILECAST_CHECK(vain_rounds_ < 3) << "the scheduler is stuck";
  for (Lane& each : lanes_) each.blocked = false;
}

void Engine::limit_work(Lane& lane) {
  constexpr int64_t kMostWork = 100'000'000;
  shared_.work += 10;
  // A look at a request that waits takes less than its part of a step.
  constexpr int64_t kLooks = 8;
  for (ServerState& state : lane.ranks) {
    shared_.work += state.passed_over / kLooks;
    state.passed_over = 0;
  }
  for (const std::vector<Scheduled>& step : lane.step)
    shared_.work += static_cast<int64_t>(step.size());
  go_on("simulating a server");
  if (shared_.work <= kMostWork || Budget::here().has_deadline()) return;
  const auto done = std::count_if(shared_.times.begin(), shared_.times.end(),
                                  [](const RequestTimes& t) { return t.last_s > 0; });
  throw Error(
      ErrorKind::kUnsupported,
      fmt::format("the simulation takes too many steps: {} of {} requests are answered; "
                  "ask for fewer (`requests`), or for steps of more tokens "
                  "(`max-num-batched-tokens`), or state with `max-seconds` how long it may take",
                  done, shared_.times.size()));
}

/// The caches grow by what further steps add; `alike_steps` has found room for it.
void Engine::grow(Lane& lane) {
  for (size_t r = 0; r < lane.ranks.size(); ++r) {
    ServerState& state = lane.ranks[r];
    if (state.idle()) continue;
    if (state.scheduler.note_decode_steps != nullptr)
      state.scheduler.note_decode_steps(state, lane.steps - 1);
    for (const Scheduled& s : lane.step[r]) {
      ServedRequest& request = state.request(s.request);
      TILECAST_CHECK(state.allocate(request, tokens_after(request, lane.steps)))
          << "no room for a jump";
    }
  }
}

/// Whether the request is answered.
bool Engine::advance_request(ServerState& state, const Scheduled& s, int64_t steps, double at_s) {
  ServedRequest& request = state.request(s.request);
  const bool first = request.written == 0, decodes = request.decodes();
  if (decodes && limits_.tokens_per_step > 1) {
    request.ahead += limits_.tokens_per_step * static_cast<double>(steps);
    const auto whole = static_cast<int64_t>(request.ahead + 1e-9);
    const int64_t gained = std::min(whole, request.spec.output - request.written);
    request.ahead -= static_cast<double>(whole);
    request.computed += gained;
    request.written += gained;
  } else {
    request.computed += s.tokens + steps - 1;
    request.written += steps - 1;
    if (!decodes) state.note_prompt(request);
    if (request.remaining() > 0) return false;  // more of the prompt is to come
    request.written += 1;
  }
  if (first) shared_.times[s.request].first_s = at_s;
  return request.written >= request.spec.output;
}

void Engine::finish(Lane& lane, std::vector<Answered>& answered) {
  if (!lane.running) return;  // it waits
  lane.running = false;
  lane.ready_s = lane.end_s;
  const bool decoded = std::all_of(lane.batches.begin(), lane.batches.end(),
                                   [](const ServingBatch& batch) { return batch.prompts.empty(); });
  // After prompts it looks in any case.
  lane.unlooked_steps = decoded ? lane.unlooked_steps + lane.steps : 0;
  for (Lane& each : lanes_) {
    if (each.blocked) each.ready_s = std::max(each.ready_s, lane.end_s);
    each.blocked = false;
  }
  if (lanes_.size() == 1 && !lane.taken) {
    const int64_t before = all_free();
    if (lane.in_decode_run)
      lane.decode_run.take(lane.ranks, lane.steps);
    else if (lane.steps > 1)
      grow(lane);
    account(lane, before - all_free());
  }
  if (lane.in_decode_run || lane.taken) return;
  finish_step(lane, answered);
  const auto works = [&] {
    return std::any_of(lane.ranks.begin(), lane.ranks.end(),
                       [](const ServerState& state) { return !state.idle(); });
  };
  lane.goes_on = works();
  if (!lane.goes_on) take_unseen(lane);
  lane.has_work = works();
}

void Engine::finish_step(Lane& lane, std::vector<Answered>& answered) {
  const size_t before = answered.size();
  int64_t first_tokens = 0;
  for (size_t r = 0; r < lane.ranks.size(); ++r) {
    ServerState& state = lane.ranks[r];
    const size_t before_rank = answered.size();
    for (const Scheduled& s : lane.step[r]) {
      const bool begun = state.request(s.request).written > 0;
      const bool answers = advance_request(state, s, lane.steps, lane.end_s);
      first_tokens += !begun && state.request(s.request).written > 0 && !answers ? 1 : 0;
      if (!answers) continue;
      state.finish(state.request(s.request));
      in_flight_ -= 1;
      lane.in_flight[r] -= 1;
      answered.push_back({s.request, lane.end_s});
    }
    if (answered.size() == before_rank) continue;
    std::erase_if(state.running, [&](size_t index) {
      return state.requests[index].written == state.requests[index].spec.output;
    });
  }
  if (first_tokens > 0) lane.first_tokens.emplace_back(lane.end_s, first_tokens);
  // With one batch, whoever waits goes on waiting until a request is answered.
  if (lane.alike && lane.decodes && !lane.arrived &&
      ((lanes_.size() == 1 && answered.size() == before) || nobody_waits(lane)))
    lane.decode_run.begin(lane.ranks, limits_);
}

}  // namespace tilecast
