#pragma once

// How vLLM, SGLang and TensorRT-LLM divide the memory of their cache into blocks.

#include <cstdint>

#include "importers/model.h"
#include "tilecast/choices.h"

namespace tilecast {

struct CacheRequest {
  Software software{};      ///< whose SoftwareDef::cache_rule divides it
  int64_t cache_bytes = 0;  ///< memory of one rank's cache
  int64_t ranks = 1;
  DType kv_dtype = DType::kBf16;
  int64_t block_tokens = 16;  ///< the software's default for a block of keys and values
  int64_t max_model_len = 1;
  int64_t max_num_batched_tokens = 8192;
};

struct CacheBlocks {
  int64_t block_tokens = 0, blocks = 0;
  int64_t tokens = 0;      ///< what the software reports as the size of its cache
  double concurrency = 0;  ///< sequences of max_model_len that fit
};

/// Throws Error{kInput} if sizes overflow.
CacheBlocks divide_cache(const Decoder& decoder, const CacheRequest& request);

}  // namespace tilecast
