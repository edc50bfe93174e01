// Operations that share links. Goals: on each link no more is sent than it carries; an operation
// alone takes its duration, to the bit; what happens is found in the order of time, n log n.
//
// An operation that sends throughout needs a part of each of its links, at most all. If those on a
// link need F > 1 together, each proceeds at 1 / F of its pace, and at that of its slowest link.
// An operation that computes and sends in turns (a pass through layers with collectives inside)
// fills its links while it sends, for the part p of its time. Then it and the others proceed at
// 1 / (F + 1). It takes 1 + p F times as long, sends for the part q = p (F + 1) / (1 + p F) of
// that, and the pace of the others is the mean over both of its states: turns are short against the
// operations that they meet. While it fills two kinds of links together, the fuller one counts.
//
// All that send throughout have the same pace on a link, which changes only when something on the
// link, or the turns of the pass on it, change. So an operation over the links of n ranks keeps
// the paces of its links in order, and does not look at all of them when one changes.
//
// Not modelled: what an operation that waits for another link leaves over on this one.

#include <algorithm>
#include <cmath>
#include <map>
#include <queue>

#include "base/budget.h"
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
        links_(static_cast<size_t>(graph.link_count_)),
        turns_(graph.uses_.size()),
        paces_(graph.ops_.size()),
        noted_(graph.ops_.size(), 0),
        pass_round_(graph.ops_.size(), 0) {
    find_followers();
  }

  std::vector<Run> run() {
    for (size_t i = 0; i < states_.size(); ++i) {
      if (states_[i].open == 0) start(static_cast<Op>(i), 0);
    }
    while (!events_.empty()) {
      go_on("simulating a training step");
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
    // First the operations that wait for a part of another one, then the operations that wait for
    // its end.
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

  /// A link, and what is on it.
  struct Link {
    std::vector<int32_t> uses;
    double throughout = 0;  ///< sum of the parts of those that send throughout
    int32_t in_turns = -1;  ///< the use that sends in turns; -1: none
    double pace = 1;        ///< of those that send throughout, as far as this link allows
  };
  /// Rate that a use needs if it sends in turns, see the head of this file.
  struct Turns {
    double stretch = 1;  ///< how much longer the operation is
    double sends = 0;    ///< the part of the stretched operation in which it fills the use's links
    bool operator==(const Turns&) const = default;
  };
  /// Paces of an operation's links and how many have each; empty: it has few links.
  using Paces = std::map<double, int32_t>;
  static constexpr size_t kFewLinks = 16;

  const Use& use(int32_t number) const { return graph_.uses_[at(number)]; }
  int32_t number_of(const Use& use) const {
    return static_cast<int32_t>(&use - graph_.uses_.data());
  }
  static bool in_turns(const Use& use) { return use.sends == Sends::kInTurns; }

  void change_links(Op op, double now_s, bool added) {
    const std::span<const Use> uses = graph_.uses_of(op);
    if (uses.empty()) return;
    ++round_;
    affected_.clear();
    changed_.clear();
    passes_.clear();
    note(op);
    for (const Use& own : uses) {
      for (const LinkId link : graph_.links_of(own)) change(link, number_of(own), added);
    }
    if (!added) paces_[at(op)].clear();
    for (const Op pass : passes_) take_turns(pass);
    for (const LinkId link : changed_) set_link(link);
    if (added && !in_turns(uses.front())) collect_paces(op);
    for (const Op other : affected_) set_pace(other, now_s);
  }

  void change(LinkId number, int32_t user, bool added) {
    Link& link = links_[at(number)];
    if (added) {
      link.uses.push_back(user);
    } else {
      link.uses.erase(std::find(link.uses.begin(), link.uses.end(), user));
    }
    link.throughout = 0;
    link.in_turns = -1;
    for (const int32_t other : link.uses) {
      if (!in_turns(use(other))) {
        link.throughout += use(other).part;
      } else {
        TILECAST_CHECK(link.in_turns < 0) << "two passes on a link";
        link.in_turns = other;
      }
    }
    changed_.push_back(number);
    if (link.in_turns < 0) return;
    const Op pass = use(link.in_turns).op;
    if (pass_round_[at(pass)] == round_) return;
    pass_round_[at(pass)] = round_;
    passes_.push_back(pass);
  }

  void note(Op op) {
    if (noted_[at(op)] == round_) return;
    noted_[at(op)] = round_;
    affected_.push_back(op);
  }

  /// Traffic on one link of a pass changes how long it sends on all of them.
  void take_turns(Op pass) {
    note(pass);
    const std::span<const Use> uses = graph_.uses_of(pass);
    double slowest = 1, stretch = 1, parts = 0, least = 1;
    for (const Use& own : uses) {
      slowest = std::max(slowest, slowdown(own));
      parts += own.part;
      least = std::min(least, own.part);
    }
    const double both =
        uses.size() < 2 ? 0 : std::clamp(graph_.together(pass), std::max(0.0, parts - 1), least);
    for (const Use& own : uses) stretch += (own.part - both) * (slowdown(own) - 1);
    stretch += both * (slowest - 1);
    for (const Use& own : uses) {
      const double sends = (own.part - both) * slowdown(own) + both * slowest;
      const Turns now{stretch, std::min(1.0, sends / stretch)};
      Turns& before = turns_[at(number_of(own))];
      if (now == before) continue;
      before = now;
      for (const LinkId link : graph_.links_of(own)) changed_.push_back(link);
    }
  }
  /// How much longer it needs for a byte while it sends.
  double slowdown(const Use& use) const {
    double most = 1;
    for (const LinkId link : graph_.links_of(use))
      most = std::max(most, 1 + links_[at(link)].throughout);
    return most;
  }

  double link_pace(const Link& link) const {
    const double alone = 1 / std::max(1.0, link.throughout);
    if (link.in_turns < 0) return alone;
    const double sends = turns_[at(link.in_turns)].sends;
    return (1 - sends) * alone + sends / (1 + link.throughout);
  }

  void set_link(LinkId number) {
    Link& link = links_[at(number)];
    const double pace = link_pace(link);
    if (pace == link.pace) return;
    for (const int32_t user : link.uses) {
      if (in_turns(use(user))) continue;
      note(use(user).op);
      Paces& paces = paces_[at(use(user).op)];
      if (paces.empty()) continue;
      const auto before = paces.find(link.pace);
      if (--before->second == 0) paces.erase(before);
      ++paces[pace];
    }
    link.pace = pace;
  }

  void collect_paces(Op op) {
    const std::span<const Use> uses = graph_.uses_of(op);
    size_t count = 0;
    for (const Use& own : uses) count += graph_.links_of(own).size();
    if (count <= kFewLinks) return;
    for (const Use& own : uses) {
      for (const LinkId link : graph_.links_of(own)) ++paces_[at(op)][links_[at(link)].pace];
    }
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

  double pace_of(Op op) const {
    const std::span<const Use> uses = graph_.uses_of(op);
    if (in_turns(uses.front())) return 1 / turns_[at(number_of(uses.front()))].stretch;
    if (const Paces& paces = paces_[at(op)]; !paces.empty()) return paces.begin()->first;
    double pace = 1;
    for (const Use& own : uses) {
      for (const LinkId link : graph_.links_of(own)) pace = std::min(pace, links_[at(link)].pace);
    }
    return pace;
  }

  const EventGraph& graph_;
  std::vector<Run> runs_;
  std::vector<State> states_;
  std::vector<Link> links_;
  std::vector<Turns> turns_;    ///< by use
  std::vector<Paces> paces_;    ///< by operation
  std::vector<int32_t> first_;  ///< by operation: its first follower
  std::vector<Follower> followers_;
  std::priority_queue<Event, std::vector<Event>, std::greater<>> events_;
  size_t done_ = 0;
  // The change of links that is being handled.
  uint32_t round_ = 0;
  std::vector<uint32_t> noted_, pass_round_;  ///< by operation: the last round that it was in
  std::vector<Op> affected_, passes_;
  std::vector<LinkId> changed_;
};

std::vector<EventGraph::Run> EventGraph::run() const {
  std::vector<Run> runs = run_without_sharing();
  if (uses_.empty() || !contended(runs)) return runs;
  return SharedRun(*this).run();
}

}  // namespace tilecast
