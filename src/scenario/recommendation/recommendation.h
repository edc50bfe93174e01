#pragma once

// Forecasts of a training step of a recommendation model over several ranks: each has some of the
// embedding tables and a part of the batch.

#include "scenario/pass/pass.h"
#include "scenario/timed_pass.h"

namespace tilecast {

/// Fills in times, work, rows, memory and the tables of each rank. The tables are placed by the
/// search of `tilecast shard`. Throws Error, also for kinds of parallelism other than `dp`.
void forecast_recommendation(Forecast& forecast, const PassSetup& setup, const TimingSetup& timing);

}  // namespace tilecast
