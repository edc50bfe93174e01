#pragma once

// The order of a plan's candidates: what is not surely slower than the fastest ties with it, and of
// these the simplest comes first.

#include "plan/training_search.h"

namespace tilecast {

/// How many techniques a configuration uses: tensor, pipeline, context, expert parallelism,
/// interleaved stages, sharded states, checkpointing. Sequence parallelism belongs to tensor
/// parallelism.
int techniques(const TrainingCandidate& candidate);

/// The upper end of the 80 % interval of a candidate's time.
using HighOf = std::function<double(const TrainingCandidate&)>;

/// Orders the candidates that fit (at least one) by time. Simulates those that the order needs.
void rank_by_time(TrainingSearch& search, const TrainingQuery& query, const HighOf& high_of,
                  TrainingPlan& plan);

/// Orders them by memory; the first ones are simulated.
void rank_by_memory(TrainingSearch& search, const TrainingQuery& query, TrainingPlan& plan);

/// For each option the best candidates with its other values than the first candidate's.
void find_alternatives(TrainingSearch& search, const TrainingQuery& query, TrainingPlan& plan);

}  // namespace tilecast
