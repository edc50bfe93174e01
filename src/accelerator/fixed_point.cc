#include "accelerator/fixed_point.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>

#include "tilecast/error.h"

namespace tilecast::accelerator {
namespace {

/// What a loop runs at least before it is extrapolated without convergence.
constexpr int64_t kLeastIterations = 4;

/// Canonical states, each once.
class StateTable {
 public:
  int32_t intern(State state) {
    const uint64_t hash = hash_of(state);
    const auto range = by_hash_.equal_range(hash);
    for (auto it = range.first; it != range.second; ++it)
      if (states_[static_cast<size_t>(it->second)] == state) return it->second;
    const auto id = static_cast<int32_t>(states_.size());
    states_.push_back(std::move(state));
    by_hash_.emplace(hash, id);
    return id;
  }
  const State& at(int32_t id) const { return states_[static_cast<size_t>(id)]; }

 private:
  static uint64_t hash_of(const State& state) {
    uint64_t hash = 1469598103934665603ull;  // FNV-1a over words
    const auto mix = [&](uint64_t word) { hash = (hash ^ word) * 1099511628211ull; };
    for (const Ticks time : state.times) mix(static_cast<uint64_t>(time));
    for (const uint16_t ring : state.rings) mix(ring);
    for (const int64_t tag : state.tags) mix(static_cast<uint64_t>(tag));
    return hash;
  }
  std::vector<State> states_;
  std::unordered_multimap<uint64_t, int32_t> by_hash_;
};

/// What a node does from a state: the state after it, and what it adds.
struct Transition {
  int32_t to = -1;
  Ticks duration = 0;  ///< of the base, from which states are relative
  double slack = 0;    ///< by which the time may be wrong
  Activity activity;
};

class FixedPoint {
 public:
  FixedPoint(const Machine& machine, const LoopNest& nest, const EvaluationLimits& limits)
      : nest_(nest), limits_(limits), simulator_(machine, nest) {}

  NestTime run() {
    const Transition all = transition(nest_.root, state_now());
    NestTime time;
    const auto end = static_cast<double>(all.duration + states_.at(all.to).times.back());
    // What one object is busy with takes its time, however the rest was extrapolated.
    const double least = gave_up_ ? static_cast<double>(most_busy(all.activity)) : 0;
    constexpr auto kTicks = static_cast<double>(kTicksPerCycle);
    time.cycles = std::max(end, least) / kTicks;
    time.low_cycles = std::max(end - all.slack, least) / kTicks;
    time.high_cycles = std::max(end + all.slack, least) / kTicks;
    time.converged = all.slack == 0 && !gave_up_;
    time.evaluated = evaluated_;
    time.activity = all.activity;
    return time;
  }

 private:
  static Ticks most_busy(const Activity& activity) {
    Ticks most = 0;
    for (const auto* list : {&activity.unit_busy, &activity.memory_busy, &activity.fetch_busy})
      for (const Ticks busy : *list) most = std::max(most, busy);
    return most;
  }
  int32_t state_now() {
    State state = simulator_.canonical(&base_);
    return states_.intern(std::move(state));
  }
  const ProgramNode& node(NodeId id) const { return nest_.nodes[static_cast<size_t>(id)]; }

  /// Runs or looks up a node from a state.
  const Transition& transition(NodeId id, int32_t from) {
    const uint64_t key = (static_cast<uint64_t>(id) << 32) | static_cast<uint32_t>(from);
    if (const auto it = known_.find(key); it != known_.end()) return it->second;
    Transition result =
        node(id).kind == ProgramNode::Kind::kLoop ? loop(node(id), from) : straight(id, from);
    return known_.emplace(key, std::move(result)).first->second;
  }

  bool is_short(NodeId id) const {
    return node(id).kind == ProgramNode::Kind::kInstruction ||
           node(id).kind == ProgramNode::Kind::kAdvance ||
           node(id).kind == ProgramNode::Kind::kFence;
  }

  /// A sequence: instructions run one after the other, other parts by their transitions.
  Transition straight(NodeId id, int32_t from) {
    Transition result{.to = from};
    const std::span<const NodeId> parts =
        is_short(id) ? std::span<const NodeId>(&id, 1) : nest_.children_of(node(id));
    for (size_t i = 0; i < parts.size();) {
      if (!is_short(parts[i])) {
        append(result, transition(parts[i], result.to), 1);
        ++i;
        continue;
      }
      simulator_.restore(states_.at(result.to), 0);
      const Activity before = simulator_.activity();
      for (; i < parts.size() && is_short(parts[i]); ++i) step(parts[i]);
      Transition run{.activity = simulator_.activity().minus(before)};
      run.to = state_now();
      run.duration = base_;
      append(result, run, 1);
    }
    return result;
  }
  void step(NodeId id) {
    const ProgramNode& part = node(id);
    if (part.kind == ProgramNode::Kind::kAdvance) return simulator_.advance(part.index);
    if (part.kind == ProgramNode::Kind::kFence) return simulator_.fence();
    simulator_.issue(part.index);
    ++evaluated_;
  }

  static void append(Transition& sum, const Transition& next, int64_t times) {
    sum.to = next.to;
    sum.duration += next.duration * times;
    sum.slack += next.slack * static_cast<double>(times);
    sum.activity.add(next.activity, times);
  }

  Transition loop(const ProgramNode& loop, int32_t from) {
    const NodeId body = nest_.children_of(loop).front();
    std::vector<int32_t> visited;  // states before each iteration
    std::unordered_map<int32_t, int64_t> when;
    Transition result{.to = from};
    for (int64_t i = 0; i < loop.count; ++i) {
      const auto seen = when.find(result.to);
      if (seen != when.end()) {
        repeat(result, body, visited, {seen->second, i}, loop.count);
        return result;
      }
      if (i >= most_iterations()) {
        extrapolate(result, body, visited, loop.count - i);
        return result;
      }
      when.emplace(result.to, i);
      visited.push_back(result.to);
      append(result, transition(body, result.to), 1);
    }
    return result;
  }

  /// Fewer where loops inside loops do not converge: each level would multiply what is run.
  int64_t most_iterations() const {
    return evaluated_ < limits_.most_evaluated ? limits_.most_iterations : kLeastIterations;
  }

  struct Period {
    int64_t first, end;  ///< iterations
  };
  /// Iterations [first, end) repeat until the loop has run `count`.
  void repeat(Transition& result, NodeId body, const std::vector<int32_t>& visited, Period period,
              int64_t count) {
    const int64_t length = period.end - period.first;
    const int64_t left = count - period.end;
    Transition once{.to = result.to};
    for (int64_t i = period.first; i < period.end; ++i)
      append(once, transition(body, visited[static_cast<size_t>(i)]), 1);
    steady_.insert_or_assign(body, Steady{once, length});
    if (left / length > 0) append(result, once, left / length);
    for (int64_t i = 0; i < left % length; ++i)
      append(result, transition(body, visited[static_cast<size_t>(period.first + i)]), 1);
  }

  /// The repeating iterations of a loop over a body.
  struct Steady {
    Transition period;
    int64_t iterations;
  };
  /// The loop ran only a few iterations, but the same body repeated when it ran from another state:
  /// the rest is taken to run like that. What ran before it did may differ as much again.
  void extrapolate_as(const Steady& steady, Transition& result, int64_t left, double ran) {
    const auto iterations = static_cast<double>(steady.iterations);
    const double each = static_cast<double>(steady.period.duration) / iterations;
    const auto before = static_cast<double>(result.duration);
    const auto passed = static_cast<Ticks>(each * static_cast<double>(left));
    // What is still at work from before goes on while the rest runs.
    State state = states_.at(steady.period.to);
    const State& now = states_.at(result.to);
    for (size_t i = 0; i < state.times.size(); ++i)
      state.times[i] = std::max(state.times[i], now.times[i] - passed);
    result.duration += passed;
    result.slack += std::abs(before - each * ran) + steady.period.slack / iterations +
                    1e-3 * each * static_cast<double>(left);
    result.activity.add(steady.period.activity, left / steady.iterations);
    result.to = states_.intern(std::move(state));
  }

  /// Some iterations of a loop, and the states at their ends.
  struct Stretch {
    Transition sum;
    int32_t from = -1;
    double iterations = 0;
    /// By how much a time of the state grows in an iteration.
    double rate(const StateTable& states, size_t i) const {
      return static_cast<double>(sum.duration + states.at(sum.to).times[i] -
                                 states.at(from).times[i]) /
             iterations;
    }
  };
  Stretch stretch(NodeId body, const std::vector<int32_t>& visited, size_t first, size_t end) {
    Stretch result{.from = visited[first], .iterations = static_cast<double>(end - first)};
    for (size_t i = first; i < end; ++i) append(result.sum, transition(body, visited[i]), 1);
    return result;
  }

  /// No state came back. A part of the machine that gets more work than it does falls behind the
  /// others by the same time in every iteration: each time of the state is taken to grow as it did
  /// in the second half of what ran. The halves of that half state how much it still changes.
  void extrapolate(Transition& result, NodeId body, const std::vector<int32_t>& visited,
                   int64_t left) {
    gave_up_ = true;
    const size_t all = visited.size();
    const auto known = steady_.find(body);
    if (known != steady_.end() && static_cast<int64_t>(all) < limits_.most_iterations)
      return extrapolate_as(known->second, result, left, static_cast<double>(all));
    const size_t half = all / 2, quarter = all - all / 4;
    const Stretch second = stretch(body, visited, half, all);
    const Stretch early = stretch(body, visited, half, quarter);
    const Stretch late = stretch(body, visited, quarter, all);
    const double runs = static_cast<double>(left);
    State state = states_.at(result.to);
    double slack = 0;
    std::vector<Ticks> grown(state.times.size());
    for (size_t i = 0; i < grown.size(); ++i) {
      const double each = second.rate(states_, i);
      grown[i] = state.times[i] + static_cast<Ticks>(each * runs);
      // At least 0.1 % of the extrapolated time, so that the result is never shown as exact.
      const double change = std::abs(late.rate(states_, i) - early.rate(states_, i));
      slack = std::max(slack, std::max(change, each * 1e-3) * runs);
    }
    const auto fetches = static_cast<int64_t>(simulator_.fetch_count());
    const Ticks passed = *std::min_element(grown.begin(), grown.begin() + fetches);
    for (size_t i = 0; i < grown.size(); ++i)
      state.times[i] = std::max<Ticks>(0, grown[i] - passed);
    result.slack += slack + second.sum.slack / second.iterations * runs;
    result.duration += passed;
    result.to = states_.intern(std::move(state));
    const auto ran = static_cast<int64_t>(all - half);
    result.activity.add(second.sum.activity, left / ran);
    for (int64_t i = 0; i < left % ran; ++i)
      result.activity.add(transition(body, visited[half + static_cast<size_t>(i)]).activity);
  }

  const LoopNest& nest_;
  const EvaluationLimits limits_;
  Simulator simulator_;
  StateTable states_;
  std::unordered_map<uint64_t, Transition> known_;
  std::unordered_map<NodeId, Steady> steady_;  ///< by the body of a loop
  Ticks base_ = 0;
  int64_t evaluated_ = 0;
  bool gave_up_ = false;
};

/// Runs all instructions in order.
void run_all(const LoopNest& nest, NodeId id, Simulator& simulator) {
  const ProgramNode& node = nest.nodes[static_cast<size_t>(id)];
  if (node.kind == ProgramNode::Kind::kInstruction) {
    simulator.issue(node.index);
  } else if (node.kind == ProgramNode::Kind::kAdvance) {
    simulator.advance(node.index);
  } else if (node.kind == ProgramNode::Kind::kFence) {
    simulator.fence();
  } else {
    for (int64_t i = 0; i < node.count; ++i)
      for (const NodeId child : nest.children_of(node)) run_all(nest, child, simulator);
  }
}

NestTime run_exactly(const Machine& machine, const LoopNest& nest, double most) {
  const auto count = static_cast<double>(nest.instruction_count());
  if (count > most)
    throw Error(ErrorKind::kUnsupported,
                fmt::format("an exact evaluation of {:.3g} instructions; at most {:.3g} are run: "
                            "leave out --exact",
                            count, most));
  Simulator simulator(machine, nest);
  run_all(nest, nest.root, simulator);
  NestTime time;
  time.cycles = static_cast<double>(simulator.end()) / static_cast<double>(kTicksPerCycle);
  time.evaluated = nest.instruction_count();
  time.activity = simulator.activity();
  time.low_cycles = time.high_cycles = time.cycles;
  return time;
}

}  // namespace

NestTime evaluate_nest(const Machine& machine, const LoopNest& nest,
                       const EvaluationLimits& limits) {
  NestTime time = limits.exact ? run_exactly(machine, nest, limits.most_instructions)
                               : FixedPoint(machine, nest, limits).run();
  if (!time.converged && nest.instruction_count() <= limits.most_rerun)
    time = run_exactly(machine, nest, limits.most_instructions);
  time.instructions = static_cast<double>(nest.instruction_count());
  return time;
}

}  // namespace tilecast::accelerator
