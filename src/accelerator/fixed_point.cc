#include "accelerator/fixed_point.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <unordered_map>
#include <vector>

#include "accelerator/state_table.h"
#include "tilecast/error.h"

namespace tilecast::accelerator {
namespace {

/// Iterations that a loop runs at least before it is extrapolated without convergence.
constexpr int64_t kLeastIterations = 4;

class FixedPoint {
 public:
  FixedPoint(const Machine& machine, const LoopNest& nest, const EvaluationLimits& limits)
      : nest_(nest),
        limits_(limits),
        simulator_(machine, nest),
        fetches_(machine.fetches.size()),
        times_(simulator_.time_count()),
        states_(simulator_.state_size()) {}

  /// `busy`: of the object that is busy longest.
  NestTime run(Ticks busy) {
    const Transition all = transition(nest_.root, state_now());
    NestTime time;
    const auto end = static_cast<double>(all.duration + states_.at(all.to)[times_ - 1]);
    // The work of one object takes its time, however the rest was extrapolated.
    const double least = gave_up_ ? static_cast<double>(busy) : 0;
    constexpr auto kTicks = static_cast<double>(kTicksPerCycle);
    time.cycles = std::max(end, least) / kTicks;
    time.low_cycles = std::max(end - all.slack, least) / kTicks;
    time.high_cycles = std::max(end + all.slack, least) / kTicks;
    time.converged = all.slack == 0 && !gave_up_;
    time.evaluated = evaluated_;
    return time;
  }

 private:
  int32_t state_now() {
    base_ = simulator_.canonical(states_.scratch());
    return states_.intern();
  }
  const ProgramNode& node(NodeId id) const { return nest_.nodes[static_cast<size_t>(id)]; }

  /// Runs or looks up a node from a state.
  Transition transition(NodeId id, int32_t from) {
    if (const Transition* known = known_.find(id, from)) return *known;
    const Transition result =
        node(id).kind == ProgramNode::Kind::kLoop ? loop(node(id), from) : straight(id, from);
    known_.add(id, from, result);
    return result;
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
      simulator_.restore(states_.at(result.to));
      for (; i < parts.size() && is_short(parts[i]); ++i) step(parts[i]);
      result.to = state_now();
      result.duration += base_;
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
  }

  Transition loop(const ProgramNode& loop, int32_t from) {
    const NodeId body = nest_.children_of(loop).front();
    std::vector<int32_t> visited;  // states before each iteration
    Transition result{.to = from};
    for (int64_t i = 0; i < loop.count; ++i) {
      const auto seen = std::find(visited.begin(), visited.end(), result.to);
      if (seen != visited.end()) {
        repeat(result, body, visited, {seen - visited.begin(), i}, loop.count);
        return result;
      }
      if (i >= most_iterations()) {
        extrapolate(result, body, visited, loop.count - i);
        return result;
      }
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
  /// the rest is taken to run like that. Iterations before that may differ as much again.
  void extrapolate_as(const Steady& steady, Transition& result, int64_t left, double ran) {
    const auto iterations = static_cast<double>(steady.iterations);
    const double each = static_cast<double>(steady.period.duration) / iterations;
    const auto before = static_cast<double>(result.duration);
    const auto passed = static_cast<Ticks>(each * static_cast<double>(left));
    // Work from before goes on while the rest runs.
    const std::span<const Ticks> end = states_.at(steady.period.to), now = states_.at(result.to);
    const std::span<Ticks> state = states_.scratch();
    std::copy(end.begin(), end.end(), state.begin());
    for (size_t i = 0; i < times_; ++i) state[i] = std::max(state[i], now[i] - passed);
    result.duration += passed;
    result.slack += std::abs(before - each * ran) + steady.period.slack / iterations +
                    1e-3 * each * static_cast<double>(left);
    result.to = states_.intern();
  }

  /// Some iterations of a loop, and the states at their ends.
  struct Stretch {
    Transition sum;
    int32_t from = -1;
    double iterations = 0;
    /// By how much a time of the state grows in an iteration.
    double rate(const StateTable& states, size_t i) const {
      return static_cast<double>(sum.duration + states.at(sum.to)[i] - states.at(from)[i]) /
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
    const std::span<const Ticks> now = states_.at(result.to);
    const std::span<Ticks> state = states_.scratch();
    std::copy(now.begin(), now.end(), state.begin());
    double slack = 0;
    std::vector<Ticks> grown(times_);
    for (size_t i = 0; i < grown.size(); ++i) {
      const double each = second.rate(states_, i);
      grown[i] = state[i] + static_cast<Ticks>(each * runs);
      // At least 0.1 % of the extrapolated time, so that the result is never shown as exact.
      const double change = std::abs(late.rate(states_, i) - early.rate(states_, i));
      slack = std::max(slack, std::max(change, each * 1e-3) * runs);
    }
    const auto fetches = static_cast<int64_t>(fetches_);
    const Ticks passed = *std::min_element(grown.begin(), grown.begin() + fetches);
    for (size_t i = 0; i < grown.size(); ++i) state[i] = std::max<Ticks>(0, grown[i] - passed);
    result.slack += slack + second.sum.slack / second.iterations * runs;
    result.duration += passed;
    result.to = states_.intern();
  }

  const LoopNest& nest_;
  const EvaluationLimits limits_;
  Simulator simulator_;
  const size_t fetches_;  ///< their times are the first of a state
  const size_t times_;    ///< of a state
  StateTable states_;
  TransitionTable known_;
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
  time.low_cycles = time.high_cycles = time.cycles;
  return time;
}

/// How often each instruction of a nest runs.
std::vector<int64_t> runs_of_instructions(const LoopNest& nest) {
  std::vector<int64_t> runs(nest.instructions.size()), of_node(nest.nodes.size());
  of_node[static_cast<size_t>(nest.root)] = 1;
  for (size_t id = nest.nodes.size(); id-- > 0;) {  // nodes come after their children
    const ProgramNode& node = nest.nodes[id];
    if (node.kind == ProgramNode::Kind::kInstruction)
      runs[static_cast<size_t>(node.index)] += of_node[id];
    for (const NodeId child : nest.children_of(node))
      of_node[static_cast<size_t>(child)] += of_node[id] * node.count;
  }
  return runs;
}

}  // namespace

Activity activity_of(const Machine& machine, const LoopNest& nest) {
  Activity sum;
  sum.unit_busy.resize(machine.units.size());
  sum.memory_busy.resize(machine.memories.size());
  sum.fetch_busy.resize(machine.fetches.size());
  sum.memory_bytes.resize(machine.memories.size());
  sum.unit_energy_j.resize(machine.units.size());
  const std::vector<int64_t> runs = runs_of_instructions(nest);
  for (size_t i = 0; i < runs.size(); ++i) {
    const Instruction& instruction = nest.instructions[i];
    const auto fetch = static_cast<size_t>(machine.units[instruction.unit].fetch);
    sum.instructions += runs[i];
    sum.macs += instruction.macs * runs[i];
    sum.unit_busy[instruction.unit] += instruction.interval * runs[i];
    sum.unit_energy_j[instruction.unit] += instruction.energy_j * static_cast<double>(runs[i]);
    sum.fetch_busy[fetch] += machine.fetches[fetch].interval * runs[i];
    for (const MemoryUse& use : instruction.memories) {
      sum.memory_busy[use.memory] += use.busy * runs[i];
      sum.memory_bytes[use.memory] += use.bytes * runs[i];
    }
  }
  return sum;
}

Ticks Activity::most_busy() const {
  Ticks most = 0;
  for (const auto* list : {&unit_busy, &memory_busy, &fetch_busy})
    for (const Ticks busy : *list) most = std::max(most, busy);
  return most;
}

NestTime evaluate_nest(const Machine& machine, const LoopNest& nest,
                       const EvaluationLimits& limits) {
  Activity activity = activity_of(machine, nest);
  NestTime time = limits.exact ? run_exactly(machine, nest, limits.most_instructions)
                               : FixedPoint(machine, nest, limits).run(activity.most_busy());
  if (!time.converged && nest.instruction_count() <= limits.most_rerun)
    time = run_exactly(machine, nest, limits.most_instructions);
  time.instructions = static_cast<double>(nest.instruction_count());
  time.activity = std::move(activity);
  return time;
}

}  // namespace tilecast::accelerator
