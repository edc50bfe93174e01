#pragma once

#include "tilecast/request.h"

namespace tilecast {

/// Throws Error{kInput} unless data-parallel ranks and micro-batches divide the batch of a pass,
/// expert-parallel ranks the data-parallel ones, context-parallel ranks the sequence (if the
/// request states it), and its pipeline has what its schedule needs.
void check_pass_layout(const Request& request);

/// Whether a step of the optimizer reads rows and columns of parameters.
bool needs_whole_matrices(Optimizer optimizer);

/// Throws Error{kInput} for options of the loss, the optimizer and the ranks that contradict each
/// other. Where the model's optimizer is not known yet, AdamW is assumed.
void check_step(const Request& request);

}  // namespace tilecast
