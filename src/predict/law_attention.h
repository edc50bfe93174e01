#pragma once

// What the laws of prompts and of decoding share.

#include "predict/law.h"

namespace tilecast {

bool has_mma_sync(const Chip& chip);

/// Shapes for which software falls back to kernels in Triton (by the column `kernel` of the public
/// measurements). Latent vectors have kernels of their own.
bool is_triton(const Attention& a, const Chip& chip, const Conditions& conditions);

}  // namespace tilecast
