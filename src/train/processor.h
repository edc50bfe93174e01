#pragma once

namespace tilecast {

/// Throws Error{kUnsupported} where this processor lacks the instructions that the training and
/// calibration code was compiled for (CMake option TILECAST_TRAIN_ARCH).
void require_training_instructions();

}  // namespace tilecast
