#include "sim/serving.h"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <functional>
#include <limits>
#include <queue>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "base/check.h"
#include "sim/engine.h"
#include "sim/least.h"
#include "sim/limit_watch.h"
#include "sim/prefix_pieces.h"
#include "sim/scheduler.h"
#include "sim/serving_stats.h"
#include "software/software.h"
#include "tilecast/error.h"

namespace tilecast {
namespace {

/// A request that is on its way to a pool.
struct Arrival {
  double at_s = 0;
  size_t request = 0;
  bool prefilled = false;
  std::optional<size_t> server = {};  ///< that has read its blocks from the host's memory
  /// The earliest first; of equal ones the first request.
  bool operator>(const Arrival& other) const {
    return std::tie(at_s, request) > std::tie(other.at_s, other.request);
  }
};

/// The servers of one pool.
struct PoolState {
  PoolState(const ServerPool& pool, const ServingLoad& load, std::vector<RequestTimes>& times,
            int64_t& work, bool shares_prefix)
      : requests(served_requests(load, pool.limits)),
        pool(pool),
        next_s(static_cast<size_t>(pool.servers), std::numeric_limits<double>::infinity()),
        in_flight(static_cast<size_t>(pool.servers), 0) {
    const int64_t prefix = shares_prefix ? shared_blocks(load, pool.limits) : 0;
    const PrefixRule* rule = nullptr;
    if (shares_prefix && pool.limits.prefix_caching && !load.parts.empty()) {
      rule = &software_def(pool.limits.software).prefix_cache;
      pieces = PrefixPieces(load, pool.limits.block_tokens);
      for (size_t i = 0; i < requests.size(); ++i) requests[i].pieces = pieces.of(i);
    }
    keeps_prefixes = rule != nullptr;
    for (int64_t i = 0; i < pool.servers; ++i)
      engines.emplace_back(pool, EngineShared{requests, times, work, rule, i == 0 && pool.watch},
                           prefix);
  }

  std::optional<PrefixUse> prefix_use(const ServingLoad& load) const {
    if (!keeps_prefixes) return std::nullopt;
    PrefixUse use;
    for (const RequestSpec& r : load.requests) use.prompts += r.prompt;
    use.most_hits = most_hit_tokens(load, pieces, pool.limits.block_tokens);
    for (const Engine& engine : engines) engine.add_prefix_use(use);
    return use;
  }

  double busy_s() const {
    double all = 0;
    for (const Engine& engine : engines) all += engine.busy_s();
    return all;
  }

  void note(size_t index) {
    next_s.set(index, engines[index].next_s());
    in_flight.set(index, engines[index].in_flight());
  }

  std::vector<ServedRequest> requests;
  PrefixPieces pieces;
  bool keeps_prefixes = false;
  const ServerPool& pool;
  std::deque<Engine> engines;                      ///< which point into themselves
  Least<double> next_s;                            ///< of each server, when it does something next
  Least<int64_t> in_flight;                        ///< of each server
  size_t next = 0;                                 ///< round robin
  std::unordered_map<int64_t, size_t> of_session;  ///< which server had its last turn
};

class ServingSimulation {
 public:
  ServingSimulation(const ServingLoad& load, const Fleet& fleet)
      : load_(load), fleet_(fleet), watch_(load) {
    times_.reserve(load.requests.size());
    for (const RequestSpec& r : load.requests)
      times_.push_back({.sent_s = r.arrival_s, .prompt = r.prompt, .output = r.output});
    if (fleet.prefill) {
      prefill_.emplace(*fleet.prefill, prompts_only(load), times_, work_, true);
      link_free_.assign(static_cast<size_t>(fleet.prefill->servers), 0);
    }
    main_.emplace(fleet.pool, load, times_, work_, !fleet.prefill);
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
    while (done_ < times_.size()) {
      const Next next = next_event();
      if (!due_.empty() && due_.top().at_s <= std::min(next.at_s, first_arrival_s())) {
        const size_t request = due_.top().request;
        due_.pop();
        send(request);
        continue;
      }
      if (!arrivals_.empty() && arrivals_.top().at_s <= next.at_s) {
        route();
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
      due_.push({at_s, request, false});
    else
      send(request);
  }

  /// An answer may lead to the next request.
  bool answers_send() const { return load_.concurrency > 0 || has_turns_; }

  double first_arrival_s() const {
    return arrivals_.empty() ? std::numeric_limits<double>::infinity() : arrivals_.top().at_s;
  }

  /// The front ends of the servers take requests in, each one after the other, in the order of
  /// sending.
  void send(size_t request) {
    const ServerLimits& limits = fleet_.pool.limits;
    const int64_t servers = fleet_.prefill ? fleet_.prefill->servers : fleet_.pool.servers;
    const double start_s = std::max(front_free_s_, times_[request].sent_s);
    front_free_s_ = start_s + limits.turn_s / static_cast<double>(servers);
    arrivals_.push({start_s + limits.turn_s + limits.overhead_s, request, false});
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
    double until = first_arrival_s();
    if (!due_.empty()) until = std::min(until, due_.top().at_s);
    if (answers_send()) return std::min(until, next.others_s);
    if (!prefill_ || next.pool != &*main_) return until;
    return std::min(until, prefill_->next_s.value());
  }

  void route() {
    const Arrival arrival = arrivals_.top();
    arrivals_.pop();
    PoolState& pool = prefill_ && !arrival.prefilled ? *prefill_ : *main_;
    const size_t to = arrival.server ? *arrival.server : choose(pool, arrival.request);
    if (!arrival.server) {
      const double ready_s = pool.engines[to].read_host(arrival.request, arrival.at_s);
      if (!arrival.prefilled) received_ += 1;
      most_in_flight_ = std::max(most_in_flight_, received_ - done_);
      if (ready_s > arrival.at_s)
        return arrivals_.push({ready_s, arrival.request, arrival.prefilled, to});
    }
    pool.engines[to].receive(arrival.request, arrival.at_s);
    pool.note(to);
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
    arrivals_.push({end, a.request, true});
  }

  void answer(const Answered& a) {
    RequestTimes& times = times_[a.request];
    times.last_s = a.at_s;
    if (!prefill_) watch_.note_ttft(a.request, times.ttft_s());
    if (times.output > 1) watch_.note_tpot(a.request, times.tpot_s());
    done_ += 1;
    const RequestSpec& spec = load_.requests[a.request];
    if (spec.next) return plan(*spec.next, a.at_s + load_.requests[*spec.next].think_s);
    // The client sends its next request, or the first turn of its next conversation.
    if (sent_ == starts_.size()) return;
    plan(starts_[sent_++], a.at_s);
  }

  ServingResult summary() {
    const double first = times_.front().sent_s;
    double last = 0;
    for (const RequestTimes& r : times_) last = std::max(last, r.last_s);
    // Clients of several servers get their answers in any order.
    std::stable_sort(
        times_.begin(), times_.end(),
        [](const RequestTimes& a, const RequestTimes& b) { return a.sent_s < b.sent_s; });
    ServingResult result = summarize(std::move(times_), static_cast<int64_t>(most_in_flight_));
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
    result.prefix = (prefill_ ? *prefill_ : *main_).prefix_use(load_);
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
    if (load_.concurrency == 0) {
      const double longest_s = std::max(busy_s / servers, prefill_s);
      result.keeps_up = queue_is_steady(result.requests, longest_s);
      result.queue_is_short = queue_is_short(result.requests, longest_s);
    }
    return result;
  }

  const ServingLoad& load_;
  const Fleet& fleet_;
  LimitWatch watch_;
  std::vector<RequestTimes> times_;
  int64_t work_ = 0;
  std::optional<PoolState> prefill_, main_;
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
