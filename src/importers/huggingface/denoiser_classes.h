#pragma once

// The classes of denoisers; denoiser_config.cc has their table.

#include "importers/huggingface/denoiser.h"

namespace tilecast {

void build_pixart(Graph&, const DenoiserConfig&, const DenoiserBatch&, DType);
void build_hunyuan_dit(Graph&, const DenoiserConfig&, const DenoiserBatch&, DType);
void build_sana(Graph&, const DenoiserConfig&, const DenoiserBatch&, DType);
void build_wan(Graph&, const DenoiserConfig&, const DenoiserBatch&, DType);
void build_flux(Graph&, const DenoiserConfig&, const DenoiserBatch&, DType);
void build_sd3(Graph&, const DenoiserConfig&, const DenoiserBatch&, DType);
void build_cogvideox(Graph&, const DenoiserConfig&, const DenoiserBatch&, DType);
void build_hunyuan_video(Graph&, const DenoiserConfig&, const DenoiserBatch&, DType);

}  // namespace tilecast
