#pragma once

// How operators work on the shares of tensor-parallel ranks. Weights say how they are divided
// (Graph::splits); an operator's rule says what a rank then has of the output: all of it, a share
// of one dimension, or a term of a sum over the ranks. The pass `shard` (src/passes) applies the
// rules in the order of the nodes and sums terms up where an operator needs the whole.

#include <vector>

#include "ops/builder.h"

namespace tilecast {

/// What a rank holds of a tensor.
struct Placement {
  enum class Kind : uint8_t { kReplicated, kSharded, kPartialSum };
  Kind kind = Kind::kReplicated;
  size_t dim = 0;                      ///< of a share: the dimension that is divided
  const WeightSplit* split = nullptr;  ///< of a share: the weight that divided it
};

/// A node that is divided: what a sharding rule reads and changes.
struct ShardedNode {
  GraphBuilder& builder;
  const Graph& before;  ///< undivided
  const Node& whole;    ///< the node in it
  Node& node;           ///< inputs are of the new graph; a rule adapts the attributes
  std::vector<Placement> inputs;
  std::vector<const WeightSplit*> splits;  ///< of the inputs that are weights; nullptr: not divided
  int64_t ranks = 1;

  /// Sums up the terms of an input, or gathers its shares, where it is not whole.
  void make_replicated(size_t input);
  /// The input's sizes, before and on a rank.
  const Shape& shape_before(size_t input) const;
  const Shape& shape(size_t input) const;
};

/// A rule; gives what a rank has of all outputs.
using Shard = Placement (*)(ShardedNode&);

/// Elements of the divided dimension that one rank holds.
int64_t share_of(const WeightSplit& split, int64_t ranks);

/// Needs the whole of every input, gives the whole output: for operators without a rule.
Placement shard_replicated(ShardedNode& n);
/// Element by element: shares of one dimension, or sums of terms and products with a whole tensor.
Placement shard_pointwise(ShardedNode& n);
/// Reads sizes only.
Placement shard_sizes(ShardedNode& n);
Placement shard_linear(ShardedNode& n);
Placement shard_embedding(ShardedNode& n);
Placement shard_experts(ShardedNode& n);
/// Row by row: any dimension but the last may be divided.
Placement shard_rows(ShardedNode& n);
Placement shard_view(ShardedNode& n);
Placement shard_transpose(ShardedNode& n);
/// Columns of a weight's part: the rank's share of that part.
Placement shard_slice_columns(ShardedNode& n);
Placement shard_split_heads(ShardedNode& n);
/// As the first input.
Placement shard_like_first(ShardedNode& n);
/// Attention: heads are independent of each other.
Placement shard_heads(ShardedNode& n);

}  // namespace tilecast
