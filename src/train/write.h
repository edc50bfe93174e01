#pragma once

#include <filesystem>

#include "tilecast/train.h"
#include "train/plan.h"

namespace tilecast {

/// Writes kernels.weights, held_out.csv (errors of every tenth epoch) and errors.json into
/// `folder`. Throws Error{kIo} where that cannot be done.
void write_training(const std::filesystem::path& folder, TrainingPlan& plan,
                    const TrainingHistory& history, const TrainResult& result);

}  // namespace tilecast
