#pragma once

// Facts of the KV cache of a served model.

#include "scenario/generation/served_model.h"

namespace tilecast {

/// KV cache of all layers in bytes, on one of `ranks` tensor-parallel ranks. Layers with a sliding
/// window store at most the window. Throws Error{kInput} if sizes overflow.
int64_t cache_bytes(const ServedModel& served, int64_t sequences, int64_t tokens, int64_t ranks);
/// The same on one rank of a stage; `sequences`: of its data-parallel rank.
int64_t stage_cache_bytes(const ServedModel& served, int64_t sequences, int64_t tokens,
                          size_t stage);
/// The facts of the decoder with the layers of a stage only.
Decoder stage_decoder(const ServedModel& served, size_t stage);

}  // namespace tilecast
