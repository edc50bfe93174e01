#pragma once

// How the gradients of a part of the model are reduced over the data-parallel ranks.

#include "scenario/parallel/model_part.h"

namespace tilecast {

/// Adds the reduction of a part's gradients: in buckets while the backward pass runs, in one piece
/// after it, or layer by layer with the gathering of its parameters (ZeRO 3).
void reduce_gradients(ModelPart& part, const PassSetup& setup, const RankLayout& layout,
                      const TimingSetup& timing, const CollectiveCosts& costs);

}  // namespace tilecast
