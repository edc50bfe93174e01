#pragma once

// The sizes that describe a kernel of fused attention without a graph.

#include <vector>

#include "ops/sizes.h"

namespace tilecast {

/// `decodes`: the number of queries does not grow.
std::vector<SizeDef> attention_sizes_by_name(bool decodes);
std::vector<SizeDef> cached_attention_sizes_by_name();

/// Throw Error{kInput} for heads and caches that do not fit each other.
Operands attention_operands(GraphBuilder& b, const GivenSizes& s);
Operands attention_backward_operands(GraphBuilder& b, const GivenSizes& s);
Operands cached_attention_operands(GraphBuilder& b, const GivenSizes& s);

/// A prompt, and one query per sequence against a cache.
RandomSizes random_attention();
RandomSizes random_cached_attention();

}  // namespace tilecast
