#include "sim/serving.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/check.h"
#include "base/rng.h"
#include "graph/software.h"
#include "sim/scheduler.h"
#include "sim/serving_stats.h"
#include "tilecast/error.h"

namespace tilecast {
namespace {

class Server {
 public:
  Server(const ServingLoad& load, const ServerLimits& limits,
         const std::function<double(const ServingBatch&)>& step_s)
      : load_(load), limits_(limits), step_s_(step_s), state_(load, limits) {
    times_.reserve(load.requests.size());
    for (const RequestSpec& r : load.requests)
      times_.push_back({.sent_s = r.arrival_s, .prompt = r.prompt, .output = r.output});
    sent_ = load.concurrency > 0 ? std::min(times_.size(), static_cast<size_t>(load.concurrency))
                                 : times_.size();
    for (size_t i = 0; load.concurrency > 0 && i < sent_; ++i) times_[i].sent_s = 0;
  }

  ServingResult run() {
    while (done_ < times_.size()) {
      receive();
      if (state_.idle()) {
        time_ = next_arrival();
        continue;
      }
      const int64_t preempted = state_.preemptions;
      const std::vector<Scheduled> step = state_.scheduler.schedule(state_);
      TILECAST_CHECK(!step.empty()) << "the scheduler is stuck";
      run_step(step, state_.preemptions == preempted);
    }
    return summary();
  }

 private:
  double next_arrival() const {
    return received_ < sent_ ? times_[received_].sent_s + limits_.overhead_s
                             : std::numeric_limits<double>::infinity();
  }

  void receive() {
    for (; next_arrival() <= time_; ++received_) state_.waiting.push_back(received_);
    most_in_flight_ = std::max(most_in_flight_, received_ - done_);
  }

  ServingBatch describe(const std::vector<Scheduled>& step) const {
    ServingBatch batch;
    double context = 0;
    for (const Scheduled& s : step) {
      const ServedRequest& request = state_.requests[s.request];
      if (request.decodes()) {
        batch.decoding += 1;
        context += static_cast<double>(request.computed);
      } else {
        batch.prompts.push_back({s.tokens, request.computed});
      }
    }
    if (batch.decoding > 0) batch.decode_context = context / static_cast<double>(batch.decoding);
    return batch;
  }

  /// Steps that are sure to be alike: all that run decode, nobody finishes before the last one, and
  /// nobody who waits can be admitted earlier, for what they wait for comes with a finished
  /// request.
  int64_t alike_steps(const std::vector<Scheduled>& step, const ServingBatch& batch) const {
    if (!batch.prompts.empty() || step.size() != state_.running.size() || state_.chunked) return 1;
    if (!state_.waiting.empty() && !state_.scheduler.admits_at_ends_only) return 1;
    int64_t steps = limits_.longest_jump;
    for (const Scheduled& s : step) {
      const ServedRequest& request = state_.requests[s.request];
      steps = std::min(steps, request.spec.output - request.written);
    }
    const auto fit = [&](int64_t count) {
      int64_t lacking = 0;
      for (const Scheduled& s : step) {
        const ServedRequest& request = state_.requests[s.request];
        lacking += state_.blocks_lacking(request, request.computed + count);
      }
      return lacking <= state_.free_blocks;
    };
    while (steps > 1 && !fit(steps)) steps /= 2;
    return std::max<int64_t>(1, steps);
  }

  void run_step(const std::vector<Scheduled>& step, bool calm) {
    ServingBatch batch = describe(step);
    int64_t steps = calm ? alike_steps(step, batch) : 1;
    // The time of a decode step is close to linear in the context: the middle stands for all.
    batch.decode_context += 0.5 * static_cast<double>(steps - 1);
    const double seconds = step_s_(batch);
    if (const double until = next_arrival() - time_;
        steps > 1 && until < seconds * static_cast<double>(steps))
      steps = std::clamp<int64_t>(static_cast<int64_t>(std::ceil(until / seconds)), 1, steps);
    const double all = seconds * static_cast<double>(steps);
    if (steps > 1) grow(step, steps);
    limit_work(step.size());
    time_ += all;
    busy_s_ += all;
    steps_ += steps;
    decoded_ += batch.decoding * steps;
    used_block_s_ += all * static_cast<double>(limits_.cache_blocks - state_.free_blocks);
    for (const Scheduled& s : step) advance(s, steps);
    std::erase_if(state_.running, [&](size_t r) {
      return state_.requests[r].written == state_.requests[r].spec.output;
    });
  }

  /// Keeps every simulation within a few seconds.
  void limit_work(size_t sequences) {
    constexpr int64_t kMostWork = 100'000'000;
    work_ += 10 + static_cast<int64_t>(sequences);
    if (work_ > kMostWork)
      throw Error(
          ErrorKind::kUnsupported,
          fmt::format("the simulation takes too many steps: {} of {} requests are answered; ask "
                      "for fewer (`requests`), or for steps of more tokens "
                      "(`max-num-batched-tokens`)",
                      done_, times_.size()));
  }

  /// The caches grow by what further steps add; `alike_steps` has found room for it.
  void grow(const std::vector<Scheduled>& step, int64_t steps) {
    if (state_.scheduler.note_decode_steps != nullptr)
      state_.scheduler.note_decode_steps(state_, steps - 1);
    for (const Scheduled& s : step) {
      ServedRequest& request = state_.request(s.request);
      TILECAST_CHECK(state_.allocate(request, request.computed + steps)) << "no room for a jump";
    }
  }

  void advance(const Scheduled& s, int64_t steps) {
    ServedRequest& request = state_.request(s.request);
    request.computed += s.tokens + steps - 1;
    request.written += steps - 1;
    if (request.remaining() > 0) return;  // more of the prompt is to come
    request.written += 1;
    RequestTimes& times = times_[s.request];
    if (times.first_s == 0) times.first_s = time_;
    if (request.written < request.spec.output) return;
    times.last_s = time_;
    state_.release(request);
    done_ += 1;
    // The client sends its next request.
    if (sent_ < times_.size()) times_[sent_++].sent_s = time_;
  }

  ServingResult summary() {
    ServingResult result = summarize(std::move(times_), static_cast<int64_t>(most_in_flight_));
    result.mean_batch = static_cast<double>(decoded_) / static_cast<double>(steps_);
    const double first = result.requests.front().sent_s;
    result.busy_share = time_ > first ? busy_s_ / (time_ - first) : 0;
    result.cache_use = used_block_s_ / busy_s_ / static_cast<double>(limits_.cache_blocks);
    result.preemptions = state_.preemptions;
    result.keeps_up = load_.concurrency > 0 || queue_is_steady(result.requests, busy_s_);
    return result;
  }

  const ServingLoad& load_;
  const ServerLimits& limits_;
  const std::function<double(const ServingBatch&)>& step_s_;
  ServerState state_;
  std::vector<RequestTimes> times_;
  size_t sent_ = 0;      ///< requests whose time of sending is known
  size_t received_ = 0;  ///< requests that the scheduler knows
  size_t done_ = 0, most_in_flight_ = 0;
  double time_ = 0, busy_s_ = 0, used_block_s_ = 0;
  int64_t steps_ = 0, decoded_ = 0, work_ = 0;
};

void check(const ServingLoad& load, const ServerLimits& limits) {
  const int64_t needed = blocks_needed(load, limits);
  if (needed > limits.cache_blocks)
    throw Error(ErrorKind::kInput,
                fmt::format("the longest request needs {} blocks of the cache, which has {}",
                            needed, limits.cache_blocks));
  if (scheduler_of(limits.software).splits_prompts) return;
  for (const RequestSpec& r : load.requests) {
    if (r.prompt > limits.max_num_batched_tokens)
      throw Error(
          ErrorKind::kInput,
          fmt::format(
              "a prompt of {} tokens is longer than a step of {} "
              "(`max-num-batched-tokens`), and chunked prefill of {} is not modelled; raise "
              "`max-num-batched-tokens` or shorten the prompts",
              r.prompt, limits.max_num_batched_tokens, software_name(limits.software)));
  }
}

}  // namespace

std::vector<RequestSpec> draw_requests(const RandomLoad& load) {
  Rng rng(load.seed);
  const auto between = [&](int64_t low, int64_t high) {
    return low + static_cast<int64_t>(rng.below(static_cast<uint64_t>(high - low) + 1));
  };
  std::vector<RequestSpec> requests(static_cast<size_t>(load.requests));
  double at = 0;
  for (RequestSpec& r : requests) {
    if (load.rate > 0) at += -std::log1p(-rng.uniform()) / load.rate;
    r = {at, between(load.prompt_low, load.prompt_high),
         between(load.output_low, load.output_high)};
  }
  return requests;
}

ServingResult simulate_serving(const ServingLoad& load, const ServerLimits& limits,
                               const std::function<double(const ServingBatch&)>& step_s) {
  TILECAST_CHECK(!load.requests.empty());
  check(load, limits);
  return Server(load, limits, step_s).run();
}

}  // namespace tilecast
