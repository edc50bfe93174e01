#pragma once

// A lower bound of a training step's time without simulating it: what a search needs to leave out
// candidates that cannot win. Goal: never above `simulate_step` (a test compares both on random
// steps), and near it where pipelines are usual. Non-goal: the exact time.

#include "sim/training_step.h"

namespace tilecast {

/// The longest of some chains of operations that wait for each other in `simulate_step`, in
/// seconds; all ranks alike (`slow` is not read: slow ranks only add time).
/// - All passes of a stage, which run one after the other; before them the first micro-batch on its
///   way to the stage, after them the last gradient on its way to the first stage.
/// - The first micro-batch on its way to the last part and back to a stage, then what the stage has
///   not computed by then.
///   Where gradients of weights are passes of their own, neither this way back nor the last
///   gradient's: they may run meanwhile.
/// - 1F1B: round trips between two stages, which stand in the order of both (a message between
///   stages is not hidden in the steady state).
/// Then the reductions that follow the last backward pass, the optimizer, and the parameters.
double least_step_s(const TrainingStep& step);

}  // namespace tilecast
