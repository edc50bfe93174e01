#pragma once

#include "tilecast/search.h"

namespace tilecast {

/// Fills in what tables say of the candidates that they list: their intervals, the software, and
/// the warnings of the best one of each kind of GPU. The candidates are ranked.
void add_intervals(const Forecaster& forecaster, const ModelRef& model, const ServingQuery& query,
                   ServingPlan& plan);

}  // namespace tilecast
