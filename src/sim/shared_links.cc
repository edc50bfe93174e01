// Operations that share links. Goals: on each link no more is sent than it carries; an operation
// alone takes its duration, to the bit; what happens is found in the order of time, n log n.
//
// An operation that sends throughout needs a part of each of its links, at most all. If those on a
// link need F > 1 together, each proceeds at 1 / F of its pace, and at that of its slowest link.
// An operation that computes and sends in turns (a pass through layers with collectives inside)
// fills its links while it sends, for the part p of its time. Then it and the others proceed at
// 1 / (F + 1). It takes 1 + p F times as long, sends for the part q = p (F + 1) / (1 + p F) of
// that, and the pace of the others is the mean over both of its states: turns are short against the
// operations that they meet.
//
// Not modelled: what an operation that waits for another link leaves over on this one.

#include <algorithm>
#include <cmath>
#include <queue>

#include "base/check.h"
#include "sim/events.h"

namespace tilecast {

bool EventGraph::contended(const std::vector<Run>& runs) const {
  struct Interval {
    double start_s, end_s, part;
    bool in_turns;
  };
  std::vector<std::vector<Interval>> links(static_cast<size_t>(link_count_));
  for (const Use& use : uses_) {
    const Run& run = runs[static_cast<size_t>(use.op)];
    for (const LinkId link : links_of(use))
      links[static_cast<size_t>(link)].push_back(
          {run.start_s, run.end_s, use.part, use.sends == Sends::kInTurns});
  }
  constexpr double kRounding = 1e-12;
  std::vector<Interval> now;
  for (std::vector<Interval>& link : links) {
    std::sort(link.begin(), link.end(),
              [](const Interval& a, const Interval& b) { return a.start_s < b.start_s; });
    now.clear();
    for (const Interval& next : link) {
      std::erase_if(now, [&](const Interval& i) { return i.end_s <= next.start_s; });
      now.push_back(next);
      if (now.size() == 1) continue;
      double sum = 0;
      for (const Interval& i : now) sum += i.in_turns ? 1 : i.part;
      if (sum > 1 + kRounding) return true;
    }
  }
  return false;
}

class EventGraph::SharedRun {
 public:
  explicit SharedRun(const EventGraph& graph)
      : graph_(graph),
        runs_(graph.ops_.size()),
        states_(graph.ops_.size()),
        links_(static_cast<size_t>(graph.link_count_)) {
    find_followers();
  }

  std::vector<Run> run() {
    for (size_t i = 0; i < states_.size(); ++i) {
      if (states_[i].open == 0) start(static_cast<Op>(i), 0);
    }
    while (!events_.empty()) {
      const Event event = events_.top();
      events_.pop();
      if (event.released) {
        satisfy(event.op, event.cause, event.time_s);
      } else if (event.version == states_[at(event.op)].version) {
        reach(event.op, event.time_s);
      }
    }
    TILECAST_CHECK(done_ == states_.size()) << "operations wait for each other in a circle";
    return std::move(runs_);
  }

 private:
  struct Follower {
    Op op;
    double lag_s;  ///< from the start of the operation that it follows; negative: from its end
  };
  struct State {
    int32_t open = 0;      ///< operations that it waits for
    double progress = 0;   ///< seconds of its duration that are done
    double pace = 1;       ///< of its progress
    double since_s = 0;    ///< when both were true
    double target = 0;     ///< progress at which something happens
    uint32_t version = 0;  ///< of its next event
    int32_t next_follower = 0;
    bool runs = false;
  };
  struct Event {
    double time_s;
    Op op;
    uint32_t version;
    Op cause;
    bool released;  ///< `cause` lets `op` go, else `op` reaches its target
    bool operator>(const Event& other) const {
      return time_s != other.time_s ? time_s > other.time_s : op > other.op;
    }
  };
  static size_t at(int32_t i) { return static_cast<size_t>(i); }
  double duration_s(Op op) const { return graph_.duration_s(op); }

  void find_followers() {
    first_.assign(states_.size() + 1, 0);
    for (const Operation& op : graph_.ops_) {
      for (const Wait& w : op.waits) ++first_[at(w.op) + 1];
    }
    for (size_t i = 0; i < states_.size(); ++i) first_[i + 1] += first_[i];
    followers_.resize(at(first_.back()));
    std::vector<int32_t> next(first_.begin(), first_.end() - 1);
    for (size_t i = 0; i < states_.size(); ++i) {
      states_[i].open = static_cast<int32_t>(graph_.ops_[i].waits.size());
      for (const Wait& w : graph_.ops_[i].waits)
        followers_[at(next[at(w.op)]++)] = {static_cast<Op>(i), w.from_start ? w.lag_s : -1};
    }
    // Those that wait for a part of an operation first, then those that wait for its end.
    for (size_t i = 0; i < states_.size(); ++i) {
      const auto lag = [](const Follower& f) { return f.lag_s < 0 ? HUGE_VAL : f.lag_s; };
      std::stable_sort(followers_.begin() + first_[i], followers_.begin() + first_[i + 1],
                       [&](const Follower& a, const Follower& b) { return lag(a) < lag(b); });
      states_[i].next_follower = first_[i];
    }
  }

  void satisfy(Op op, Op cause, double now_s) {
    runs_[at(op)].cause = cause;
    if (--states_[at(op)].open == 0) start(op, now_s);
  }

  void start(Op op, double now_s) {
    State& state = states_[at(op)];
    runs_[at(op)].start_s = now_s;
    state.runs = true;
    state.since_s = now_s;
    schedule(op);
    change_links(op, now_s, true);
  }

  /// The next event of an operation that runs: a follower of its start, or its end.
  void schedule(Op op) {
    State& state = states_[at(op)];
    state.target = duration_s(op);
    if (state.next_follower < first_[at(op) + 1]) {
      const double lag_s = followers_[at(state.next_follower)].lag_s;
      if (lag_s >= 0) state.target = std::min(state.target, lag_s);
    }
    const double left = std::max(0.0, state.target - state.progress);
    events_.push({state.since_s + left / state.pace, op, ++state.version, -1, false});
  }

  void reach(Op op, double now_s) {
    State& state = states_[at(op)];
    state.progress = state.target;
    state.since_s = now_s;
    const bool ends = state.progress >= duration_s(op);
    if (ends) {
      runs_[at(op)].end_s = now_s;
      state.runs = false;
      ++done_;
      change_links(op, now_s, false);
    }
    int32_t& next = state.next_follower;
    for (; next < first_[at(op) + 1]; ++next) {
      const Follower& follower = followers_[at(next)];
      const bool of_end = follower.lag_s < 0;
      if (!ends && (of_end || follower.lag_s > state.progress)) break;
      if (!of_end && follower.lag_s > state.progress) {  // later than the operation's end
        events_.push({now_s + follower.lag_s - state.progress, follower.op, 0, op, true});
      } else {
        satisfy(follower.op, op, now_s);
      }
    }
    if (!ends) schedule(op);
  }

  void change_links(Op op, double now_s, bool added) {
    const std::span<const Use> uses = graph_.uses_of(op);
    if (uses.empty()) return;
    affected_.clear();
    for (const Use& use : uses) {
      const auto number = static_cast<int32_t>(&use - graph_.uses_.data());
      for (const LinkId link : graph_.links_of(use)) {
        std::vector<int32_t>& active = links_[at(link)];
        if (added) {
          active.push_back(number);
        } else {
          active.erase(std::find(active.begin(), active.end(), number));
        }
        for (const int32_t other : active) affect(graph_.uses_[at(other)]);
      }
    }
    for (const Op other : affected_) set_pace(other, now_s);
  }

  /// How long an operation sends in turns depends on all of its links.
  void affect(const Use& use) {
    note(use.op);
    if (use.sends != Sends::kInTurns) return;
    for (const Use& own : graph_.uses_of(use.op)) {
      for (const LinkId link : graph_.links_of(own)) {
        for (const int32_t other : links_[at(link)]) note(graph_.uses_[at(other)].op);
      }
    }
  }
  void note(Op op) {
    if (std::find(affected_.begin(), affected_.end(), op) == affected_.end())
      affected_.push_back(op);
  }

  void set_pace(Op op, double now_s) {
    State& state = states_[at(op)];
    if (!state.runs) return;
    const double pace = pace_of(op);
    if (pace == state.pace) return;
    state.progress += (now_s - state.since_s) * state.pace;
    state.since_s = now_s;
    state.pace = pace;
    schedule(op);
  }

  /// What is on a link: the sum of those that send throughout, and the one that sends in turns.
  struct Load {
    double throughout = 0;
    const Use* in_turns = nullptr;
  };
  Load load_of(LinkId link) const {
    Load load;
    for (const int32_t number : links_[at(link)]) {
      const Use& use = graph_.uses_[at(number)];
      if (use.sends == Sends::kThroughout) {
        load.throughout += use.part;
      } else {
        TILECAST_CHECK(load.in_turns == nullptr) << "two passes on a link";
        load.in_turns = &use;
      }
    }
    return load;
  }

  /// How much longer an operation that sends in turns needs for a byte while it sends.
  double slowdown(const Use& use) const {
    double most = 1;
    for (const LinkId link : graph_.links_of(use))
      most = std::max(most, 1 + load_of(link).throughout);
    return most;
  }
  /// How much longer it is.
  double stretch(Op op) const {
    double parts = 0, added = 0;
    for (const Use& use : graph_.uses_of(op)) {
      parts += use.part;
      added += use.part * (slowdown(use) - 1);
    }
    return 1 + added / std::max(1.0, parts);
  }

  double pace_of(Op op) const {
    const std::span<const Use> uses = graph_.uses_of(op);
    if (uses.front().sends == Sends::kInTurns) return 1 / stretch(op);
    double pace = 1;
    for (const Use& use : uses) {
      for (const LinkId link : graph_.links_of(use)) {
        const Load load = load_of(link);
        const double alone = 1 / std::max(1.0, load.throughout);
        if (load.in_turns == nullptr) {
          pace = std::min(pace, alone);
          continue;
        }
        const Use& turns = *load.in_turns;
        const double sends = std::min(1.0, turns.part * slowdown(turns) / stretch(turns.op));
        pace = std::min(pace, (1 - sends) * alone + sends / (1 + load.throughout));
      }
    }
    return pace;
  }

  const EventGraph& graph_;
  std::vector<Run> runs_;
  std::vector<State> states_;
  std::vector<std::vector<int32_t>> links_;  ///< uses on each link
  std::vector<int32_t> first_;               ///< by operation: its first follower
  std::vector<Follower> followers_;
  std::priority_queue<Event, std::vector<Event>, std::greater<>> events_;
  std::vector<Op> affected_;
  size_t done_ = 0;
};

std::vector<EventGraph::Run> EventGraph::run() const {
  std::vector<Run> runs = run_without_sharing();
  if (uses_.empty() || !contended(runs)) return runs;
  return SharedRun(*this).run();
}

}  // namespace tilecast
