#pragma once

#include "tilecast/learn.h"
#include "train/weights_job.h"

namespace tilecast {

/// Forecasts the rows that a run's forests did not learn from, and writes what follows into its
/// weights: the forests, the intervals of measured devices, of left-out devices and of left-out
/// architectures, and what single calls add on each machine.
TrainResult judge(WeightsJob& job);

}  // namespace tilecast
