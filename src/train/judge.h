#pragma once

#include "tilecast/train.h"
#include "train/plan.h"

namespace tilecast {

/// Forecasts the rows that a trained plan did not learn from, and writes what follows into the
/// weights of its first fold: the intervals, of left-out devices and of each measured one, and what
/// single calls add on each machine.
TrainResult judge(TrainingPlan& plan);

}  // namespace tilecast
