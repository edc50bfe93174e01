// The steps of a server: what they compute, how many are alike, and how long they take.

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "sim/engine.h"
#include "sim/prompt_images.h"

namespace tilecast {

void Engine::describe(const ServerState& state, const std::vector<Scheduled>& step,
                      ServingBatch& batch) const {
  batch.decoding = 0;
  batch.decode_context = 0;
  batch.prompts.clear();
  batch.adapters = 0;
  batch.images = 0;
  double context = 0;
  for (const Scheduled& s : step) {
    const ServedRequest& request = state.requests[s.request];
    if (request.decodes()) {
      batch.decoding += 1;
      context += static_cast<double>(request.computed);
    } else {
      batch.prompts.push_back({s.tokens, request.computed});
      // vLLM encodes an image in the step that computes its first token; a step later at most
      // makes no difference to when the prompt is finished.
      if (shared_.images != nullptr)
        batch.images += images_ended(*shared_.images, request.spec, request.computed,
                                     request.computed + s.tokens);
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
        most_blocks(static_cast<int64_t>(step.size()), count, limits_) <= state.free.count)
      return true;
    int64_t lacking = 0;
    for (const Scheduled& s : step) {
      const ServedRequest& request = state.requests[s.request];
      lacking += state.blocks_lacking(request, tokens_after(request, count));
      if (lacking > state.free.count) return false;
    }
    return true;
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

/// The time of each of so many steps.
void Engine::find_time(Lane& lane, int64_t steps) {
  // The time of a decode step is close to linear in the context: the middle stands for all.
  for (ServingBatch& batch : lane.batches)
    batch.decode_context +=
        0.5 * limits_.tokens_per_step * static_cast<double>(batch.decoding > 0 ? steps - 1 : 0);
  lane.stage_s.clear();
  pool_.step_s(lane.batches, lane.stage_s);
  lane.step_s = std::accumulate(lane.stage_s.begin(), lane.stage_s.end(), 0.0);
}

/// The time in which GPUs read what the next step needs of the host's memory.
double Engine::host_blocks_s(const Lane& lane) const {
  int64_t blocks = 0;
  for (const ServerState& state : lane.ranks) blocks = std::max(blocks, state.host_blocks);
  return limits_.host_block_s * static_cast<double>(blocks);
}

/// Notes the adapters of the next step, and which of them it has to wait for.
void Engine::use_adapters(Lane& lane) {
  lane.adapter_loads = 0;
  if (adapter_slots_.empty()) return;
  std::vector<int64_t> adapters;
  for (size_t r = 0; r < lane.ranks.size(); ++r) {
    adapters.clear();
    for (const Scheduled& s : lane.step[r]) {
      const std::optional<int64_t>& adapter = lane.ranks[r].request(s.request).spec.adapter;
      if (adapter && (adapters.empty() || adapters.back() != *adapter))
        adapters.push_back(*adapter);
    }
    std::sort(adapters.begin(), adapters.end());
    adapters.erase(std::unique(adapters.begin(), adapters.end()), adapters.end());
    int64_t loads = 0;
    for (const int64_t adapter : adapters) loads += adapter_slots_[r].use(adapter) ? 1 : 0;
    lane.batches[r].adapters = static_cast<int64_t>(adapters.size());
    lane.adapter_loads = std::max(lane.adapter_loads, loads);
    adapter_loads_ += loads;
  }
}

/// Copies that a step waits for: blocks of the host's memory, and adapters on all stages.
void Engine::add_host_time(Lane& lane) {
  const double load_s = limits_.adapter_load_s * static_cast<double>(lane.adapter_loads);
  lane.adapter_loads = 0;
  if (load_s > 0) {
    for (double& stage_s : lane.stage_s) stage_s += load_s;
    lane.step_s += load_s * static_cast<double>(lane.stage_s.size());
  }
  const double read_s = host_blocks_s(lane);
  for (ServerState& state : lane.ranks) state.host_blocks = 0;
  if (read_s == 0) return;
  double more_s = read_s;
  if (shared_.prefix->host_load == "by_layer") {
    // Each layer waits for its own blocks only: the longer of both, and one layer of the other.
    const double longer = std::max(read_s, lane.step_s), shorter = std::min(read_s, lane.step_s);
    more_s = longer + shorter / static_cast<double>(limits_.layers) - lane.step_s;
  }
  lane.stage_s.front() += more_s;
  lane.step_s += more_s;
}

void Engine::run(Lane& lane, bool undisturbed) {
  lane.steps = undisturbed && lane.adapter_loads == 0 ? alike_steps(lane) : 1;
  find_time(lane, lane.steps);
  add_host_time(lane);
  // Worth a run: a request has cut a jump, or batches take turns.
  if (lanes_.size() > 1)
    lane.alike = limits_.longest_jump > 1;
  else if (lane.steps > 1)
    lane.alike = false;
  lane.decodes = undisturbed && limits_.tokens_per_step == 1 && only_decodes(lane);
  lane.in_decode_run = false;
  vain_rounds_ = 0;
  limit_work(lane);
  place(lane);
}

/// Steps of a run that needs no look at its requests; false: one of them ends, or other batches
/// have left the cache no room.
bool Engine::continue_decode_run(Lane& lane, double until_s) {
  if (lanes_.size() > 1 && !lane.decode_run.has_room(lane.ranks)) return false;
  const int64_t most = std::min(limits_.longest_jump, lane.decode_run.left());
  if (lane.priced == 0) {
    lane.decode_run.describe(lane.batches);
    find_time(lane, most);
    lane.priced = most;
  }
  // Batches in a pipeline take turns, a step each.
  lane.steps = lanes_.size() > 1 ? 1 : most;
  if (lane.steps >= lane.decode_run.left()) {
    const double steps =
        std::ceil((until_s - std::max(lane.ready_s, stage_free_.front())) / lane.step_s);
    if (steps >= static_cast<double>(lane.steps)) return false;
    lane.steps = std::max<int64_t>(1, static_cast<int64_t>(steps));
  }
  // A single batch may be cut, so that other steps follow than were priced.
  lane.priced = lanes_.size() > 1 ? lane.priced - 1 : 0;
  vain_rounds_ = 0;
  limit_work(lane);
  lane.in_decode_run = true;
  if (lanes_.size() > 1) lane.decode_run.take(lane.ranks, lane.steps);
  place(lane);
  return true;
}

/// The run ends, if there is one: its requests get what it has computed.
void Engine::end_decode_run(Lane& lane) {
  // Steps of a single batch are taken when they end, since a request may cut them.
  if (lane.running && lane.in_decode_run && lanes_.size() == 1) {
    const int64_t before = all_free();
    lane.decode_run.take(lane.ranks, lane.steps);
    account(lane, before - all_free());
    lane.in_decode_run = false;
    lane.taken = true;
  }
  lane.decode_run.end(lane.ranks);
  lane.priced = 0;
}

/// The steps run, one after the other.
void Engine::place(Lane& lane) {
  const auto steps = static_cast<double>(lane.steps);
  double at = std::max(lane.ready_s, stage_free_.front());
  lane.start_s = at;
  for (size_t s = 0; s < lane.stage_s.size(); ++s) {
    at = std::max(at, stage_free_[s]) +
         (lane.stage_s.size() == 1 ? lane.step_s * steps : lane.stage_s[s] * steps);
    stage_free_[s] = at;
  }
  lane.end_s = at;
  lane.running = true;
  lane.taken = false;
  if (lanes_.size() > 1) account(lane, 0);
}

/// A request comes while several steps run: those that have not begun are not alike any more, but
/// for so many further ones. False: there are none of these.
bool Engine::cut(Lane& lane, double at_s, int64_t further) {
  if (lanes_.size() > 1 || lane.steps == 1 || lane.taken) return false;
  const double begun = std::max(1.0, std::ceil((at_s - lane.start_s) / lane.step_s));
  const double steps = begun + static_cast<double>(further);
  if (steps > static_cast<double>(lane.steps)) return false;
  if (steps == static_cast<double>(lane.steps)) return true;
  lane.steps = static_cast<int64_t>(steps);
  if (!lane.in_decode_run) lane.alike = true;
  lane.end_s = lane.start_s + lane.step_s * static_cast<double>(lane.steps);
  stage_free_.front() = lane.end_s;
  return true;
}

int64_t Engine::all_free() const {
  return std::accumulate(free_blocks_.begin(), free_blocks_.end(), int64_t{0},
                         [](int64_t sum, const FreeBlocks& free) { return sum + free.count; });
}

/// The times between tokens of the steps. Prompts may come between: SGLang's have steps of their
/// own.
void Engine::note_gaps(Lane& lane) {
  int64_t decoding = 0;
  for (const ServingBatch& batch : lane.batches) decoding += batch.decoding;
  if (decoding == 0) return;
  gaps_.add(lane.step_s, decoding * (lane.steps - 1));
  const double first_ends_s = lane.end_s - lane.step_s * static_cast<double>(lane.steps - 1);
  for (const auto& [at_s, sequences] : lane.first_tokens) {
    gaps_.add(first_ends_s - at_s, std::min(sequences, decoding));
    decoding -= std::min(sequences, decoding);
  }
  gaps_.add(first_ends_s - lane.decode_ended_s, decoding);
  lane.first_tokens.clear();
  lane.decode_ended_s = lane.end_s;
}

/// Counts steps when they are sure to run. `grown`: blocks that they have added to the caches, one
/// after the other.
void Engine::account(Lane& lane, int64_t grown) {
  note_gaps(lane);
  const auto steps = static_cast<double>(lane.steps);
  if (shared_.watched)
    pool_.watch(
        {.start_s = lane.start_s,
         .first_stage_s = steps * (lane.stage_s.size() == 1 ? lane.step_s : lane.stage_s.front()),
         .steps = lane.steps,
         .begins_counting = std::exchange(begins_counting_, false),
         .ranks = lane.batches});
  // A stage is busy for its part of the time.
  const double busy = lane.step_s * steps / static_cast<double>(lane.stage_s.size());
  busy_s_ += busy;
  steps_ += lane.steps;
  int64_t adapters = 0;
  for (const ServingBatch& batch : lane.batches) {
    decoded_ += batch.decoding * lane.steps;
    adapters = std::max(adapters, batch.adapters);
  }
  adapter_steps_ += adapters * lane.steps;
  const int64_t used =
      limits_.cache_blocks * static_cast<int64_t>(free_blocks_.size()) - all_free();
  used_block_s_ += busy * (static_cast<double>(used) - 0.5 * static_cast<double>(grown));
}

}  // namespace tilecast
