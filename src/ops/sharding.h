#pragma once

// Tensor parallelism. Graph::splits says how each weight is divided over the ranks. From that, an
// operator's rule derives the placement of its output: replicated, sharded along one dimension, or
// a partial sum. The pass `shard` (src/passes) applies the rules node by node and inserts
// all-reduces where an operator needs a replicated input.

// In training, what a divided operator reads and its gradients need collectives too: a divided
// operator reads a replicated tensor through `copy_to_ranks`, whose backward pass sums the ranks'
// parts of the gradient (Megatron-LM). With sequence parallelism, norms and residual sums work on
// the ranks' parts of the sequence, and gathers and reduce-scatters replace copies and all-reduces.

#include <map>
#include <vector>

#include "ops/builder.h"

namespace tilecast {

/// How a tensor is distributed over the ranks.
struct Placement {
  enum class Kind : uint8_t { kReplicated, kSharded, kPartialSum };
  Kind kind = Kind::kReplicated;
  size_t dim = 0;  ///< if sharded: the dimension that is divided
  /// If sharded: the weight split that the division comes from; nullptr: sequence parallelism.
  const WeightSplit* split = nullptr;
};

/// The node that a sharding rule is applied to.
struct ShardedNode {
  GraphBuilder& builder;
  const Graph& before;  ///< the graph of the whole model
  const Node& whole;    ///< the node in that graph
  Node& node;           ///< the node of one rank; a rule may change its attributes
  std::vector<Placement> inputs;
  /// For each input that is a weight; nullptr: not divided.
  std::vector<const WeightSplit*> splits;
  int64_t ranks = 1;

  bool training = false;
  bool divides_rows = false;  ///< sequence parallelism, between the first and the last layer
  /// Inputs of divided operators, by the tensor that they were made from.
  std::map<TensorId, TensorId>* entered = nullptr;
  /// The tensor that other nodes read in place of each input; see `enter`.
  std::vector<TensorId> shared;
  std::vector<Placement> shared_placements;

  /// Makes an input replicated: sums partial sums or gathers shards.
  void make_replicated(size_t input);
  /// Makes an input what residual sums are: replicated, or divided along the sequence.
  void settle(size_t input);
  /// Makes an input what a divided operator reads: whole, with a gradient that is summed over the
  /// ranks in training. Other nodes do not read it.
  void enter(size_t input);
  bool is_divided_by_rows(size_t input) const {
    return inputs[input].kind == Placement::Kind::kSharded && inputs[input].split == nullptr;
  }
  /// The shape of an input in the whole model, and on one rank.
  const Shape& shape_before(size_t input) const;
  const Shape& shape(size_t input) const;
};

/// A sharding rule; returns the placement of the outputs.
using Shard = Placement (*)(ShardedNode&);

/// Elements of the divided dimension on one rank.
int64_t share_of(const WeightSplit& split, int64_t ranks);

/// Makes all inputs replicated; the output is replicated. For operators without a rule.
Placement shard_replicated(ShardedNode& n);
/// Pointwise operators: shards of the same dimension, sums of partial sums, and products of a
/// partial sum with a replicated tensor.
Placement shard_pointwise(ShardedNode& n);
/// For operators that only read the shape of their input.
Placement shard_sizes(ShardedNode& n);
Placement shard_linear(ShardedNode& n);
Placement shard_embedding(ShardedNode& n);
Placement shard_experts(ShardedNode& n);
/// Experts of several ranks: the tokens enter before they are sent.
Placement shard_dispatch(ShardedNode& n);
/// Operators over rows: any dimension but the last may be divided.
Placement shard_rows(ShardedNode& n);
Placement shard_view(ShardedNode& n);
Placement shard_transpose(ShardedNode& n);
/// Slices one part of a divided dimension; takes the rank's share of that part.
Placement shard_slice_columns(ShardedNode& n);
Placement shard_split_heads(ShardedNode& n);
/// The placement of the first input.
Placement shard_like_first(ShardedNode& n);
/// A convolution of each channel: divided like its weight.
Placement shard_convolution(ShardedNode& n);
/// Attention: divided by heads, which are independent of each other.
Placement shard_heads(ShardedNode& n);
/// Latent attention: each rank expands the latent vectors of the whole sequence for its heads.
Placement shard_latent(ShardedNode& n);

}  // namespace tilecast
