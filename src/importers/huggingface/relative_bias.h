#pragma once

#include <cstdint>
#include <string>

#include "importers/huggingface/layers.h"

namespace tilecast {

/// T5's relative positions: the bucket of the distance of each query-key pair, int64 [s, s].
/// `both_ways`: keys after the query have buckets of their own (encoders). Inputs are named after
/// `stack`.
TensorId relative_buckets(Layers& f, const std::string& stack, int64_t s, bool both_ways);

/// A learned number for each bucket and head, [1, heads, s, s].
TensorId relative_bias(Layers& f, TensorId buckets, int64_t bucket_count, int64_t heads,
                       const std::string& name);

}  // namespace tilecast
