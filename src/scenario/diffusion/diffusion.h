#pragma once

// The scenario of a pipeline of image or video diffusion: a batch of prompts goes through text
// encoders, steps of a denoiser, and the decoder of the latents. One sum of all networks' kernels,
// because they run one after the other; ranks do the same at the same time. Not modelled: networks
// that move to the host's memory between their runs, and what a safety checker or a scheduler of
// the steps computes.

#include "scenario/scenario.h"

namespace tilecast {

/// Throws Error for options that pipelines do not have.
void check_diffusion(const Request& request);
Result run_diffusion(const Inquiry& inquiry);

}  // namespace tilecast
