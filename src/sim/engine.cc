#include "sim/engine.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

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
      free_blocks_(static_cast<size_t>(pool.limits.dp), pool.limits.cache_blocks - prefix_blocks),
      lanes_(static_cast<size_t>(pool.limits.pp)),
      stage_free_(static_cast<size_t>(pool.limits.pp), 0) {
  limits_.max_num_seqs = (limits_.max_num_seqs + limits_.pp - 1) / limits_.pp;
  for (Lane& lane : lanes_) {
    for (int64_t& blocks : free_blocks_) lane.ranks.emplace_back(limits_, shared.requests, blocks);
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

double Engine::next_of(const Lane& lane) const {
  if (lane.running) return lane.end_s;
  return lane.has_work && !lane.blocked ? std::max(lane.ready_s, stage_free_.front()) : kNever;
}

double Engine::earliest_s() const {
  double next = kNever;
  for (const Lane& lane : lanes_) next = std::min(next, next_of(lane));
  return next;
}

/// Requests go to the data-parallel rank and batch with the fewest.
void Engine::receive(size_t request, double at_s) {
  Lane* to = nullptr;
  size_t rank = 0;
  for (Lane& lane : lanes_) {
    for (size_t r = 0; r < lane.in_flight.size(); ++r) {
      if (to != nullptr && lane.in_flight[r] >= to->in_flight[rank]) continue;
      to = &lane;
      rank = r;
    }
  }
  to->calm.end(to->ranks);
  if (!to->running && !to->has_work) to->ready_s = std::max(to->ready_s, at_s);
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
    // Of two things at the same time, a step ends first.
    if (at > best || (at == best && (next->running || !lane.running))) continue;
    next = &lane;
    best = at;
  }
  const bool ends = next->running;
  if (!ends) begin(*next, until_s);
  // With one batch nothing else can happen before it ends.
  if (ends || lanes_.size() == 1) finish(*next, answered);
  next_s_ = earliest_s();
}

void Engine::begin(Lane& lane, double until_s) {
  if (lane.calm.left() > 1 && run_calm(lane, until_s)) return;
  lane.calm.end(lane.ranks);
  lane.batches.resize(lane.ranks.size());
  bool calm = true, empty = true;
  for (size_t r = 0; r < lane.ranks.size(); ++r) {
    ServerState& state = lane.ranks[r];
    lane.step[r].clear();
    if (state.idle()) {
      describe(state, {}, lane.batches[r]);
      continue;
    }
    const int64_t preempted = state.preemptions;
    state.scheduler.schedule(state, lane.step[r]);
    calm = calm && state.preemptions == preempted;
    empty = empty && lane.step[r].empty();
    describe(state, lane.step[r], lane.batches[r]);
  }
  if (empty) return wait(lane);
  run(lane, until_s, calm);
}

/// The other batches hold the cache, or what they have preempted comes first.
void Engine::wait(Lane& lane) {
  lane.blocked = true;
  if (earliest_s() < kNever) return;
  vain_rounds_ += 1;
  TILECAST_CHECK(vain_rounds_ < 3) << "the scheduler is stuck";
  for (Lane& each : lanes_) each.blocked = false;
}

void Engine::describe(const ServerState& state, const std::vector<Scheduled>& step,
                      ServingBatch& batch) const {
  batch.decoding = 0;
  batch.decode_context = 0;
  batch.prompts.clear();
  double context = 0;
  for (const Scheduled& s : step) {
    const ServedRequest& request = state.requests[s.request];
    if (request.decodes()) {
      batch.decoding += 1;
      context += static_cast<double>(request.computed);
    } else {
      batch.prompts.push_back({s.tokens, request.computed});
    }
  }
  if (batch.decoding > 0) batch.decode_context = context / static_cast<double>(batch.decoding);
}

/// Tokens in the cache of a sequence that decodes after so many steps.
int64_t Engine::tokens_after(const ServedRequest& request, int64_t steps) const {
  if (limits_.tokens_per_step == 1) return request.computed + steps;
  const auto gained =
      static_cast<int64_t>(std::ceil(limits_.tokens_per_step * static_cast<double>(steps)));
  return std::min(request.computed + gained, request.spec.prompt + request.spec.output);
}

/// Steps of one rank that are sure to be alike: all that run decode, nobody finishes before the
/// last one, and nobody who waits can be admitted earlier, for what they wait for comes with a
/// finished request.
int64_t Engine::alike_steps_of(const ServerState& state, const std::vector<Scheduled>& step,
                               const ServingBatch& batch) const {
  if (!batch.prompts.empty() || step.size() != state.running.size() || state.chunked) return 1;
  if (!state.waiting.empty() && !state.scheduler.admits_at_ends_only) return 1;
  int64_t steps = limits_.longest_jump;
  for (const Scheduled& s : step) {
    const ServedRequest& request = state.requests[s.request];
    const int64_t left = request.spec.output - request.written;
    steps = std::min(
        steps, limits_.tokens_per_step == 1
                   ? left
                   : static_cast<int64_t>(static_cast<double>(left) / limits_.tokens_per_step));
  }
  const auto fit = [&](int64_t count) {
    if (limits_.tokens_per_step == 1 &&
        most_blocks(static_cast<int64_t>(step.size()), count, limits_) <= state.free_blocks)
      return true;
    int64_t lacking = 0;
    for (const Scheduled& s : step) {
      const ServedRequest& request = state.requests[s.request];
      lacking += state.blocks_lacking(request, tokens_after(request, count));
    }
    return lacking <= state.free_blocks;
  };
  while (steps > 1 && !fit(steps)) steps /= 2;
  return std::max<int64_t>(1, steps);
}

/// Batches in a pipeline take turns, so each step is simulated.
int64_t Engine::alike_steps(const Lane& lane) const {
  if (lanes_.size() > 1) return 1;
  int64_t steps = limits_.longest_jump;
  for (size_t r = 0; r < lane.ranks.size(); ++r) {
    if (lane.ranks[r].idle()) continue;
    steps = std::min(steps, alike_steps_of(lane.ranks[r], lane.step[r], lane.batches[r]));
  }
  return steps;
}

/// All sequences of the batch decode in this step.
bool Engine::only_decodes(const Lane& lane) const {
  for (size_t r = 0; r < lane.ranks.size(); ++r) {
    if (!lane.batches[r].prompts.empty() || lane.ranks[r].chunked ||
        lane.step[r].size() != lane.ranks[r].running.size())
      return false;
  }
  return true;
}

bool Engine::nobody_waits(const Lane& lane) const {
  return std::all_of(lane.ranks.begin(), lane.ranks.end(),
                     [](const ServerState& state) { return state.waiting.empty(); });
}

Engine::StepTime Engine::time_of(Lane& lane, int64_t most, double until_s) {
  // The time of a decode step is close to linear in the context: the middle stands for all.
  for (ServingBatch& batch : lane.batches)
    batch.decode_context +=
        0.5 * limits_.tokens_per_step * static_cast<double>(batch.decoding > 0 ? most - 1 : 0);
  stage_s_.clear();
  pool_.step_s(lane.batches, stage_s_);
  StepTime time{.steps = most, .seconds = std::accumulate(stage_s_.begin(), stage_s_.end(), 0.0)};
  if (const double until = until_s - std::max(lane.ready_s, stage_free_.front());
      most > 1 && until < time.seconds * static_cast<double>(most))
    time.steps =
        std::clamp<int64_t>(static_cast<int64_t>(std::ceil(until / time.seconds)), 1, most);
  return time;
}

void Engine::run(Lane& lane, double until_s, bool calm) {
  const int64_t most = calm ? alike_steps(lane) : 1;
  const StepTime time = time_of(lane, most, until_s);
  lane.steps = time.steps;
  // Worth a run: events of other servers have cut a jump, or batches take turns.
  if (lanes_.size() > 1)
    lane.alike = limits_.longest_jump > 1;
  else if (most > 1)
    lane.alike = time.steps < most;
  lane.decodes = calm && limits_.tokens_per_step == 1 && only_decodes(lane);
  lane.in_calm = false;
  vain_rounds_ = 0;
  if (lane.steps > 1) grow(lane);
  limit_work(lane);
  place(lane, time);
  lane.running = true;
}

/// Steps of a run that needs no look at its requests; false: one of them ends, or other batches
/// have left the cache no room.
bool Engine::run_calm(Lane& lane, double until_s) {
  if (lanes_.size() > 1 && !lane.calm.has_room(lane.ranks)) return false;
  lane.calm.describe(lane.batches);
  const int64_t most = lanes_.size() > 1 ? 1 : std::min(limits_.longest_jump, lane.calm.left());
  const StepTime time = time_of(lane, most, until_s);
  if (time.steps >= lane.calm.left()) return false;
  lane.calm.take(lane.ranks, time.steps);
  vain_rounds_ = 0;
  limit_work(lane);
  place(lane, time);
  lane.in_calm = true;
  lane.running = true;
  return true;
}

/// The steps run, one after the other.
void Engine::place(Lane& lane, const StepTime& time) {
  const auto steps = static_cast<double>(time.steps);
  const double all = time.seconds * steps;
  double at = std::max(lane.ready_s, stage_free_.front());
  for (size_t s = 0; s < stage_s_.size(); ++s) {
    at = std::max(at, stage_free_[s]) + (stage_s_.size() == 1 ? all : stage_s_[s] * steps);
    stage_free_[s] = at;
  }
  lane.end_s = at;
  // A stage is busy for its part of the time.
  const double busy = all / static_cast<double>(stage_s_.size());
  busy_s_ += busy;
  steps_ += time.steps;
  for (size_t r = 0; r < lane.batches.size(); ++r) {
    decoded_ += lane.batches[r].decoding * time.steps;
    used_block_s_ += busy * static_cast<double>(limits_.cache_blocks - free_blocks_[r]);
  }
}

void Engine::limit_work(const Lane& lane) {
  constexpr int64_t kMostWork = 100'000'000;
  shared_.work += 10;
  for (const std::vector<Scheduled>& step : lane.step)
    shared_.work += static_cast<int64_t>(step.size());
  if (shared_.work <= kMostWork) return;
  const auto done = std::count_if(shared_.times.begin(), shared_.times.end(),
                                  [](const RequestTimes& t) { return t.last_s > 0; });
  throw Error(ErrorKind::kUnsupported,
              fmt::format("the simulation takes too many steps: {} of {} requests are answered; "
                          "ask for fewer (`requests`), or for steps of more tokens "
                          "(`max-num-batched-tokens`)",
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
  const bool first = request.written == 0;
  if (request.decodes() && limits_.tokens_per_step > 1) {
    request.ahead += limits_.tokens_per_step * static_cast<double>(steps);
    const auto whole = static_cast<int64_t>(request.ahead + 1e-9);
    const int64_t gained = std::min(whole, request.spec.output - request.written);
    request.ahead -= static_cast<double>(whole);
    request.computed += gained;
    request.written += gained;
  } else {
    request.computed += s.tokens + steps - 1;
    request.written += steps - 1;
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
  for (Lane& each : lanes_) {
    if (each.blocked) each.ready_s = std::max(each.ready_s, lane.end_s);
    each.blocked = false;
  }
  if (lane.in_calm) return;
  finish_step(lane, answered);
  lane.has_work = std::any_of(lane.ranks.begin(), lane.ranks.end(),
                              [](const ServerState& state) { return !state.idle(); });
}

void Engine::finish_step(Lane& lane, std::vector<Answered>& answered) {
  const size_t before = answered.size();
  for (size_t r = 0; r < lane.ranks.size(); ++r) {
    ServerState& state = lane.ranks[r];
    const size_t before_rank = answered.size();
    for (const Scheduled& s : lane.step[r]) {
      if (!advance_request(state, s, lane.steps, lane.end_s)) continue;
      state.release(state.request(s.request));
      in_flight_ -= 1;
      lane.in_flight[r] -= 1;
      answered.push_back({s.request, lane.end_s});
    }
    if (answered.size() == before_rank) continue;
    std::erase_if(state.running, [&](size_t index) {
      return state.requests[index].written == state.requests[index].spec.output;
    });
  }
  // With one batch, whoever waits goes on waiting until a request is answered.
  if (lane.alike && lane.decodes &&
      ((lanes_.size() == 1 && answered.size() == before) || nobody_waits(lane)))
    lane.calm.begin(lane.ranks, limits_);
}

}  // namespace tilecast
