#pragma once

// From the parts of a model to the step that they make.

#include <vector>

#include "scenario/parallel/model_part.h"

namespace tilecast {

/// `parts`: by their number in the model (pointers may repeat).
TrainingStep training_step(const std::vector<const ModelPart*>& parts, const PassSetup& setup,
                           const RankLayout& layout, const CollectiveCosts& costs);

}  // namespace tilecast
