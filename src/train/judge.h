#pragma once

#include <vector>

#include "train/plan.h"
#include "train/training.h"

namespace tilecast {

/// Errors by GPU, operator, precision and software.
struct Judgement {
  std::vector<TrainError> held_out;  ///< a tenth of the rows, never trained on
  std::vector<TrainError> left_out;  ///< each GPU by networks that never saw it
};

/// Forecasts the rows that a trained plan did not learn from, and writes what follows into the
/// weights of its first fold: the intervals, of left-out devices and of each measured one, and what
/// single calls add on each machine.
Judgement judge(TrainingPlan& plan);

}  // namespace tilecast
