#pragma once

// Cycles of a nest without running all of it. Loops are evaluated from the inside out. After every
// iteration the state is compared, relative to the time, with those after earlier iterations: when
// it comes back, all further iterations repeat what ran in between, and their time follows without
// running them. The result of an iteration from a state is kept, so that an inner loop that starts
// from a known state is not run again.

#include <cstdint>
#include <vector>

#include "accelerator/simulator.h"

namespace tilecast::accelerator {

struct EvaluationLimits {
  bool exact = false;              ///< run every instruction
  int64_t most_iterations = 96;    ///< of a loop, before it is taken as not converging
  int64_t most_evaluated = 50000;  ///< instructions, before loops are given up sooner
  double most_instructions = 2e9;  ///< of an exact evaluation
  /// A nest without a fixed point that has no more instructions is run whole: about 15 ms.
  int64_t most_rerun = 200000;
};

/// Work of all instructions of a nest, summed: the same however long they wait.
struct Activity {
  int64_t instructions = 0;
  int64_t macs = 0;
  std::vector<Ticks> unit_busy;
  std::vector<Ticks> memory_busy;
  std::vector<Ticks> fetch_busy;
  std::vector<int64_t> memory_bytes;
  std::vector<double> unit_energy_j;

  /// Ticks of the object that is busy longest.
  Ticks most_busy() const;
};
Activity activity_of(const Machine& machine, const LoopNest& nest);

/// Time of a nest, and how it was found.
struct NestTime {
  double cycles = 0;
  double low_cycles = 0;  ///< equal to `cycles` unless a loop did not converge
  double high_cycles = 0;
  bool converged = true;
  double instructions = 0;  ///< of the nest
  int64_t evaluated = 0;    ///< instructions that were run
  Activity activity;
};

/// Throws Error{kUnsupported} for an exact evaluation of more than `most_instructions`.
NestTime evaluate_nest(const Machine& machine, const LoopNest& nest,
                       const EvaluationLimits& limits = {});

}  // namespace tilecast::accelerator
