#pragma once

#include <filesystem>

#include "tilecast/learn.h"
#include "train/weights_job.h"

namespace tilecast {

/// Writes kernels.weights, held_out.csv (a line for each forest) and errors.json into
/// `folder`. Throws Error{kIo} where that cannot be done.
void write_training(const std::filesystem::path& folder, WeightsJob& job,
                    const TrainResult& result);

}  // namespace tilecast
