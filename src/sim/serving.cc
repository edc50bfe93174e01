#include "sim/serving.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <limits>
#include <queue>
#include <tuple>
#include <utility>

#include "base/check.h"
#include "sim/encode_queue.h"
#include "sim/engine.h"
#include "sim/limit_watch.h"
#include "sim/pool_state.h"
#include "sim/scheduler.h"
#include "sim/serving_stats.h"
#include "sim/warmup.h"
#include "software/software.h"
#include "tilecast/error.h"

namespace tilecast {
namespace {

/// What has been done with a request that is on its way to a pool.
enum class Stage : uint8_t { kSent, kEncoded, kPrefilled };

struct Arrival {
  double at_s = 0;
  size_t request = 0;
  Stage stage = Stage::kSent;
  std::optional<size_t> server = {};  ///< that has read its blocks from the host's memory
  /// The earliest first; of equal ones the first request.
  bool operator>(const Arrival& other) const {
    return std::tie(at_s, request) > std::tie(other.at_s, other.request);
  }
};

class ServingSimulation {
 public:
  ServingSimulation(const ServingLoad& load, const Fleet& fleet)
      : load_(load), fleet_(fleet), watch_(load), warmup_(load) {
    times_.reserve(load.requests.size());
    for (const RequestSpec& r : load.requests)
      times_.push_back({.sent_s = r.arrival_s, .prompt = r.prompt, .output = r.output});
    const bool servers_encode = load.image_tokens > 0 && !fleet.encoders;
    const ServingLoad* images = servers_encode ? &load : nullptr;
    if (fleet.prefill) {
      prefill_.emplace(*fleet.prefill, prompts_only(load), times_, work_, true, images);
      link_free_.assign(static_cast<size_t>(fleet.prefill->servers), 0);
    }
    if (fleet.encoders) encoders_.emplace(*fleet.encoders, load.requests.size());
    main_.emplace(fleet.pool, load, times_, work_, !fleet.prefill, images);
    for (ServedRequest& r : main_->requests) {
      if (!fleet.prefill) break;
      r.hit = 0;
      r.computed = r.spec.prompt;
      r.written = 1;
    }
    for (size_t i = 0; i < times_.size(); ++i) {
      if (load.requests[i].follows)
        has_turns_ = true;
      else
        starts_.push_back(i);
    }
    sent_ = load.concurrency > 0 ? std::min(starts_.size(), static_cast<size_t>(load.concurrency))
                                 : starts_.size();
    for (size_t i = 0; i < sent_; ++i)
      plan(starts_[i], load.concurrency > 0 ? 0 : times_[starts_[i]].sent_s);
  }

  ServingResult run() {
    std::vector<Answered> answered;
    while (done_ < times_.size() && !warmup_.finished()) {
      const Next next = next_event();
      const double first_s = std::min(next.at_s, encoded_s());
      if (!due_.empty() && due_.top().at_s <= std::min(first_s, first_arrival_s())) {
        const size_t request = due_.top().request;
        due_.pop();
        send(request);
        continue;
      }
      if (!arrivals_.empty() && arrivals_.top().at_s <= first_s) {
        route();
        continue;
      }
      if (encoders_ && encoded_s() <= next.at_s) {
        encode();
        continue;
      }
      answered.clear();
      Engine& engine = next.pool->engines[next.index];
      const double until = safe_until(next);
      engine.advance(until, answered);
      // With clients, `until` is also before what other servers do: it is the next one again.
      while (answers_send() && answered.empty() && engine.next_s() < until)
        engine.advance(until, answered);
      next.pool->note(next.index);
      for (const Answered& a : answered) {
        if (prefill_ && next.pool == &*prefill_) {
          prefilled(a, next.index);
        } else {
          answer(a);
        }
      }
      if (watch_.surely_missed()) {
        ServingResult result;
        result.stopped = true;
        return result;
      }
    }
    return summary();
  }

 private:
  /// A client sends a request at this time, which is not past.
  void plan(size_t request, double at_s) {
    times_[request].sent_s = at_s;
    // Turns come between those that were planned before them.
    if (has_turns_)
      due_.push({at_s, request});
    else
      send(request);
  }

  /// An answer may lead to the next request.
  bool answers_send() const { return load_.concurrency > 0 || has_turns_; }

  /// When a run of the vision tower ends next.
  double encoded_s() const {
    return encoders_ ? encoders_->next_s() : std::numeric_limits<double>::infinity();
  }

  double first_arrival_s() const {
    return arrivals_.empty() ? std::numeric_limits<double>::infinity() : arrivals_.top().at_s;
  }

  /// The front ends of the servers take requests in, each one after the other, in the order of
  /// sending.
  void send(size_t request) {
    if (warmup_.note_sent(request)) begin_counting();
    for (std::optional<PoolState>* pool : {&prefill_, &main_}) {
      if (*pool) (*pool)->requests[request].counts = warmup_.counts(request);
    }
    const ServerLimits& limits = fleet_.pool.limits;
    const int64_t servers = fleet_.prefill ? fleet_.prefill->servers : fleet_.pool.servers;
    const double start_s = std::max(front_free_s_, times_[request].sent_s);
    front_free_s_ = start_s + limits.turn_s / static_cast<double>(servers);
    arrivals_.push({start_s + limits.turn_s + limits.overhead_s, request});
  }

  void begin_counting() {
    for (std::optional<PoolState>* pool : {&prefill_, &main_}) {
      if (!*pool) continue;
      for (Engine& engine : (*pool)->engines) engine.forget_counts();
    }
    if (encoders_) encoders_->forget_counts();
    most_in_flight_ = received_ - done_;
    transferred_s_ = 0;
    transfers_ = 0;
  }

  /// The server that does something next, and when the first of the others does.
  struct Next {
    PoolState* pool = nullptr;
    size_t index = 0;
    double at_s = std::numeric_limits<double>::infinity();
    double others_s = std::numeric_limits<double>::infinity();
  };
  Next next_event() {
    Next next{.pool = &*main_};
    for (PoolState* p : {prefill_ ? &*prefill_ : nullptr, &*main_}) {
      if (p == nullptr) continue;
      const double at = p->next_s.value();
      if (at < next.at_s) {
        const size_t index = p->next_s.index();
        next = {p, index, at, std::min(next.at_s, p->next_s.value_without(index))};
      } else {
        next.others_s = std::min(next.others_s, at);
      }
    }
    return next;
  }

  /// No request comes before this time: none is on its way, and what other servers do, which may
  /// let a client send one or let a cache move, happens later.
  double safe_until(const Next& next) const {
    double until = std::min(first_arrival_s(), encoded_s());
    if (!due_.empty()) until = std::min(until, due_.top().at_s);
    if (answers_send()) return std::min(until, next.others_s);
    if (!prefill_ || next.pool != &*main_) return until;
    return std::min(until, prefill_->next_s.value());
  }

  void route() {
    const Arrival arrival = arrivals_.top();
    arrivals_.pop();
    if (arrival.stage == Stage::kSent && !arrival.server) received_ += 1;
    most_in_flight_ = std::max(most_in_flight_, received_ - done_);
    const int64_t images = load_.requests[arrival.request].images;
    if (encoders_ && arrival.stage == Stage::kSent && images > 0)
      return encoders_->receive(arrival.request, images, arrival.at_s);
    PoolState& pool = prefill_ && arrival.stage != Stage::kPrefilled ? *prefill_ : *main_;
    const size_t to = arrival.server ? *arrival.server : choose(pool, arrival.request);
    if (!arrival.server) {
      const double ready_s = pool.engines[to].read_host(arrival.request, arrival.at_s);
      if (ready_s > arrival.at_s)
        return arrivals_.push({ready_s, arrival.request, arrival.stage, to});
    }
    pool.engines[to].receive(arrival.request, arrival.at_s);
    pool.note(to);
  }

  /// A run of the vision tower ends; requests go on when the servers have what it made of them.
  void encode() {
    encoded_.clear();
    encoders_->advance(encoded_);
    for (const EncodeQueue::Encoded& e : encoded_)
      arrivals_.push({e.at_s, e.request, Stage::kEncoded});
  }

  /// Which server of the pool gets a request.
  size_t choose(PoolState& pool, size_t request) const {
    size_t to = pool.next % pool.engines.size();
    const std::optional<int64_t>& session = load_.requests[request].session;
    const bool stays = fleet_.router == Router::kSession && session;
    if (const auto last = stays ? pool.of_session.find(*session) : pool.of_session.end();
        last != pool.of_session.end()) {
      to = last->second;
    } else if (fleet_.router == Router::kRoundRobin) {
      pool.next += 1;
    } else {
      to = pool.in_flight.index_from(to);  // equal servers in turn
      pool.next = to + 1;
    }
    if (stays) pool.of_session[*session] = to;
    return to;
  }

  /// The first token is there; the cache moves to the other pool.
  void prefilled(const Answered& a, size_t worker) {
    watch_.note_ttft(a.request, times_[a.request].ttft_s());
    if (load_.requests[a.request].output == 1) return answer(a);
    const double begin = std::max(a.at_s, link_free_[worker]);
    const double end = begin + fleet_.transfer_s(load_.requests[a.request].prompt);
    link_free_[worker] = end;
    transferred_s_ += end - a.at_s;
    transfers_ += 1;
    arrivals_.push({end, a.request, Stage::kPrefilled});
  }

  void answer(const Answered& a) {
    RequestTimes& times = times_[a.request];
    times.last_s = a.at_s;
    if (!prefill_) watch_.note_ttft(a.request, times.ttft_s());
    if (times.output > 1) watch_.note_tpot(a.request, times.tpot_s());
    done_ += 1;
    warmup_.note_answer(a.request);
    const RequestSpec& spec = load_.requests[a.request];
    if (spec.next) return plan(*spec.next, a.at_s + load_.requests[*spec.next].think_s);
    // The client sends its next request, or the first turn of its next conversation.
    if (sent_ == starts_.size()) return;
    plan(starts_[sent_++], a.at_s);
  }

  ServingResult summary() {
    // Not moved: whether the servers keep up is judged by all of them.
    std::vector<RequestTimes> times = warmup_.exists() ? warmup_.counted(times_) : times_;
    // Clients of several servers get their answers in any order.
    std::stable_sort(times.begin(), times.end(), [](const RequestTimes& a, const RequestTimes& b) {
      return a.sent_s < b.sent_s;
    });
    const double first = times.front().sent_s;
    double last = 0;
    for (const RequestTimes& r : times) last = std::max(last, r.last_s);
    ServingResult result = summarize(std::move(times), static_cast<int64_t>(most_in_flight_));
    result.warmup_requests = warmup_.uncounted();
    int64_t steps = 0, decoded = 0, adapters = 0;
    double used = 0;
    TokenGaps gaps;
    for (const Engine& engine : main_->engines) {
      steps += engine.steps();
      decoded += engine.decoded();
      used += engine.used_block_s();
      result.preemptions += engine.preemptions();
      gaps.add(engine.gaps());
      result.adapter_loads += engine.adapter_loads();
      adapters += engine.adapter_steps();
    }
    result.itl = gaps.summary();
    result.prefix = (prefill_ ? *prefill_ : *main_).prefix_use(load_, warmup_.counts());
    const ServerLimits& limits = fleet_.pool.limits;
    const double busy_s = main_->busy_s();
    const auto servers = static_cast<double>(fleet_.pool.servers);
    if (steps > 0) {
      result.mean_batch = static_cast<double>(decoded) / static_cast<double>(steps);
      result.mean_adapters = static_cast<double>(adapters) / static_cast<double>(steps);
    }
    // Sums of times round: a server that always works would be busy for 1.0000000000000002.
    const auto share_of = [&](double seconds) {
      return last > first ? std::min(1.0, seconds / (last - first)) : 0;
    };
    result.busy_share = share_of(busy_s / servers);
    if (busy_s > 0)
      result.cache_use =
          used / busy_s / static_cast<double>(limits.cache_blocks) / static_cast<double>(limits.dp);
    double prefill_s = 0;
    if (prefill_) {
      prefill_s = prefill_->busy_s() / static_cast<double>(fleet_.prefill->servers);
      result.prefill_busy_share = share_of(prefill_s);
      if (transfers_ > 0) result.mean_transfer_s = transferred_s_ / static_cast<double>(transfers_);
    }
    double encode_s = 0;
    if (encoders_) {
      encode_s = encoders_->busy_s() / static_cast<double>(fleet_.encoders->workers);
      result.encode = {share_of(encode_s), encoders_->mean_images(), encoders_->mean_s()};
    }
    if (load_.concurrency == 0) {
      const double longest_s = std::max({busy_s / servers, prefill_s, encode_s});
      result.keeps_up =
          queue_is_steady(result.requests, longest_s) && warmup_.keeps_up(times_, longest_s);
      result.queue_is_short = queue_is_short(result.requests, longest_s);
    }
    return result;
  }

  const ServingLoad& load_;
  const Fleet& fleet_;
  LimitWatch watch_;
  Warmup warmup_;
  std::vector<RequestTimes> times_;
  int64_t work_ = 0;
  std::optional<PoolState> prefill_, main_;
  std::optional<EncodeQueue> encoders_;
  std::vector<EncodeQueue::Encoded> encoded_;  ///< by the run that has ended
  std::priority_queue<Arrival, std::vector<Arrival>, std::greater<>> arrivals_;
  std::priority_queue<Arrival, std::vector<Arrival>, std::greater<>> due_;  ///< to be sent
  std::vector<size_t> starts_;     ///< requests that follow no answer
  bool has_turns_ = false;         ///< some follow one
  std::vector<double> link_free_;  ///< by prefill worker: when its last transfer has ended
  double front_free_s_ = 0;        ///< when a front end is free for the next request
  size_t sent_ = 0;                ///< of `starts_`, whose time of sending is known
  size_t received_ = 0;            ///< requests that a scheduler knows
  size_t done_ = 0, most_in_flight_ = 0;
  double transferred_s_ = 0;
  int64_t transfers_ = 0;
};

void check_cache(const ServingLoad& load, const ServerLimits& limits) {
  const int64_t needed = blocks_needed(load, limits);
  if (needed > limits.cache_blocks)
    throw Error(ErrorKind::kInput,
                fmt::format("the longest request needs {} blocks of the cache, which has {}",
                            needed, limits.cache_blocks));
}

void check_prompts(const ServingLoad& load, const ServerLimits& limits) {
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

ServingLoad prompts_only(const ServingLoad& load) {
  ServingLoad prompts = load;
  for (RequestSpec& r : prompts.requests) r.output = 1;
  return prompts;
}

ServingResult simulate_serving(const ServingLoad& load, const ServerLimits& limits,
                               const std::function<double(const ServingBatch&)>& step_s) {
  Fleet fleet;
  fleet.pool.limits = limits;
  fleet.pool.step_s = [&](std::span<const ServingBatch> ranks, std::vector<double>& stage_s) {
    stage_s.push_back(step_s(ranks.front()));
  };
  return simulate_fleet(load, fleet);
}

ServingResult simulate_fleet(const ServingLoad& load, const Fleet& fleet) {
  TILECAST_CHECK(!load.requests.empty());
  TILECAST_CHECK(!fleet.prefill || fleet.transfer_s);
  const ServerLimits& first = fleet.prefill ? fleet.prefill->limits : fleet.pool.limits;
  check_prompts(load, first);
  if (!fleet.prefill) {
    check_cache(load, first);
  } else {
    check_cache(prompts_only(load), first);
    // Caches come whole.
    ServerLimits limits = fleet.pool.limits;
    limits.prefix_hit_rate = 0;
    check_cache(load, limits);
  }
  return ServingSimulation(load, fleet).run();
}

}  // namespace tilecast
