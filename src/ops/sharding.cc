#include "ops/sharding.h"

#include <algorithm>

#include "base/check.h"
#include "base/checked.h"
#include "ops/op_def.h"

namespace tilecast {
namespace {

using Kind = Placement::Kind;

size_t last_dim(const Shape& shape) { return shape.size() - 1; }

/// The rank's share of the columns of one part, or of several parts in a row; 0 if the columns are
/// not whole parts.
int64_t share_of_columns(const WeightSplit& split, int64_t columns, int64_t ranks) {
  const auto& parts = split.parts;
  for (size_t count = 1; count <= parts.size(); ++count) {
    for (size_t first = 0; first + count <= parts.size(); ++first) {
      int64_t whole = 0, share = 0;
      for (size_t i = first; i < first + count; ++i) {
        whole = checked_add(whole, checked_multiply(parts[i], split.unit));
        share = checked_add(share, checked_multiply(ceil_divide(parts[i], ranks), split.unit));
      }
      if (whole == columns) return share;
    }
  }
  return 0;
}

}  // namespace

const Shape& ShardedNode::shape_before(size_t input) const {
  return before.tensor(whole.inputs[input]).shape;
}

const Shape& ShardedNode::shape(size_t input) const {
  return builder.graph().tensor(node.inputs[input]).shape;
}

void ShardedNode::make_replicated(size_t input) {
  Placement& placement = inputs[input];
  if (placement.kind == Kind::kReplicated) return;
  const std::string name = builder.graph().tensor(node.inputs[input]).name;
  const RoleScope role(builder, builder.role_of_maker(node.inputs[input]));
  if (is_divided_by_rows(input)) {
    node.inputs[input] =
        builder.op("all_gather", {node.inputs[input]}, name + ".all_gather",
                   {{"ranks", ranks}, {"dim", static_cast<int64_t>(placement.dim)}});
  } else {
    node.inputs[input] =
        builder.op("all_reduce", {node.inputs[input]}, name + ".all_reduce", {{"ranks", ranks}});
  }
  shared[input] = node.inputs[input];
  shared_placements[input] = placement = {};
}

void ShardedNode::settle(size_t input) {
  constexpr size_t kSequence = 1;  // of [b, s, hidden_dim]
  Placement& placement = inputs[input];
  const Tensor& tensor = builder.graph().tensor(node.inputs[input]);
  const bool divisible = tensor.shape.size() == 3 && tensor.shape[kSequence] % ranks == 0;
  if (!divides_rows || !divisible) {
    if (placement.kind == Kind::kPartialSum) make_replicated(input);
    return;
  }
  if (placement.kind == Kind::kSharded) return;
  const char* op = placement.kind == Kind::kPartialSum ? "reduce_scatter" : "slice_of_rank";
  const RoleScope role(builder, builder.role_of_maker(node.inputs[input]));
  node.inputs[input] = builder.op(op, {node.inputs[input]}, tensor.name + "." + op,
                                  {{"ranks", ranks}, {"dim", int64_t{kSequence}}});
  shared[input] = node.inputs[input];
  shared_placements[input] = placement = {.kind = Kind::kSharded, .dim = kSequence};
}

void ShardedNode::enter(size_t input) {
  if (inputs[input].kind == Kind::kPartialSum) settle(input);
  const bool rows = is_divided_by_rows(input);
  if (!rows && (inputs[input].kind == Kind::kSharded || !training)) return make_replicated(input);
  const TensorId from = node.inputs[input];
  const auto [it, fresh] = entered->emplace(from, -1);
  if (fresh) {
    const std::string name = builder.graph().tensor(from).name;
    const auto dim = static_cast<int64_t>(inputs[input].dim);
    const RoleScope role(builder, builder.role_of_maker(from));
    it->second = rows ? builder.op("all_gather", {from}, name + ".all_gather",
                                   {{"ranks", ranks}, {"dim", dim}})
                      : builder.op("copy_to_ranks", {from}, name, {{"ranks", ranks}});
  }
  node.inputs[input] = it->second;
  inputs[input] = {};
}

int64_t share_of(const WeightSplit& split, int64_t ranks) {
  int64_t share = 0;
  for (const int64_t units : split.parts)
    share = checked_add(share, checked_multiply(ceil_divide(units, ranks), split.unit));
  return share;
}

Placement shard_replicated(ShardedNode& n) {
  for (size_t i = 0; i < n.inputs.size(); ++i) {
    TILECAST_CHECK(n.inputs[i].kind != Kind::kSharded || n.is_divided_by_rows(i))
        << "node '" << n.node.name << "' needs a replicated input, but it is sharded";
    n.make_replicated(i);
  }
  return {};
}

Placement shard_pointwise(ShardedNode& n) {
  const auto has = [&](Kind kind) {
    return std::any_of(n.inputs.begin(), n.inputs.end(),
                       [&](const Placement& p) { return p.kind == kind; });
  };
  if (has(Kind::kSharded)) {
    for (size_t i = 0; i < n.inputs.size(); ++i) {
      const bool rows = n.divides_rows && n.shape_before(i).size() == 3;
      if (rows && n.shape_before(i)[1] > 1) n.settle(i);
      if (n.inputs[i].kind == Kind::kPartialSum) n.make_replicated(i);
    }
    return *std::find_if(n.inputs.begin(), n.inputs.end(),
                         [](const Placement& p) { return p.kind == Kind::kSharded; });
  }
  if (!has(Kind::kPartialSum)) return {};
  const std::string_view op = op_def(n.node.op).name;
  const bool sum = op == "add" && !has(Kind::kReplicated);
  const bool scaled = op == "mul" && has(Kind::kReplicated);
  if (sum || scaled || op == "mul_scalar" || op == "div_scalar") return {.kind = Kind::kPartialSum};
  for (size_t i = 0; i < n.inputs.size(); ++i) {
    if (n.inputs[i].kind == Kind::kPartialSum) n.settle(i);
  }
  return has(Kind::kSharded) ? shard_pointwise(n) : Placement{};
}

Placement shard_sizes(ShardedNode& n) {
  // The result is for the whole sequence; the rank may have a part of it.
  if (n.is_divided_by_rows(0)) {
    const Tensor& whole = n.before.tensor(n.whole.inputs[0]);
    n.node.inputs[0] = n.builder.tensor({.name = whole.name,
                                         .shape = whole.shape,
                                         .dtype = whole.dtype,
                                         .kind = TensorKind::kReference,
                                         .segment = n.builder.current_segment()});
  }
  return {};
}

Placement shard_linear(ShardedNode& n) {
  const WeightSplit* split = n.splits[1];
  if (split == nullptr) return n.is_divided_by_rows(0) ? n.inputs[0] : shard_replicated(n);
  const size_t columns = attribute<int64_t>(n.whole, "weight_layout") == 1 ? 1 : 0;
  if (split->dim != columns) return {.kind = Kind::kPartialSum};
  n.enter(0);
  if (n.shape(1) == n.shape_before(1)) return {};  // a single key head is replicated
  return {.kind = Kind::kSharded, .dim = last_dim(n.shape_before(0)), .split = split};
}

Placement shard_embedding(ShardedNode& n) {
  const WeightSplit* split = n.splits[0];
  if (split == nullptr) return {};
  // Each rank looks up the rows that it holds.
  if (split->dim == 0) return {.kind = Kind::kPartialSum};
  return {.kind = Kind::kSharded, .dim = n.shape_before(1).size(), .split = split};
}

Placement shard_experts(ShardedNode& n) {
  if (attribute<int64_t>(n.whole, "own_rows") == 1) return shard_rows(n);
  if (attribute<int64_t>(n.whole, "partial") == 1) {
    n.make_replicated(0);
    return {.kind = Placement::Kind::kPartialSum};
  }
  const bool dispatched = attribute<int64_t>(n.whole, "ranks") > 1;
  if (n.splits[1] == nullptr || dispatched) {
    n.make_replicated(0);
  } else {
    n.enter(0);
  }
  return n.splits[1] == nullptr ? Placement{} : Placement{.kind = Kind::kPartialSum};
}

Placement shard_dispatch(ShardedNode& n) {
  if (integer_or(n.whole, "own_rows", 0) == 1) return shard_rows(n);
  n.enter(0);
  return {};
}

Placement shard_rows(ShardedNode& n) {
  if (n.inputs[0].kind == Kind::kPartialSum) n.settle(0);
  const Placement& x = n.inputs[0];
  if (x.kind == Kind::kSharded && x.dim != last_dim(n.shape_before(0))) return x;
  return shard_replicated(n);
}

Placement shard_view(ShardedNode& n) {
  Placement x = n.inputs[0];
  if (x.kind != Kind::kSharded) return x;
  // The divided dimension of the view is the one with as many elements before it as in the input.
  const Shape& from = n.shape_before(0);
  const auto elements_before = [](const Shape& shape, size_t dim) {
    return element_count(Shape(shape.begin(), shape.begin() + static_cast<int64_t>(dim)));
  };
  Shape to = attribute<Shape>(n.whole, "shape");
  size_t dim = 0;
  while (dim < to.size() &&
         (to[dim] == 1 || elements_before(to, dim) != elements_before(from, x.dim)))
    ++dim;
  TILECAST_CHECK(dim < to.size()) << "view '" << n.node.name << "' of shares";
  to[dim] = checked_multiply(to[dim], n.shape(0)[x.dim]) / from[x.dim];
  n.node.set_attribute("shape", to);
  x.dim = dim;
  return x;
}

Placement shard_transpose(ShardedNode& n) {
  Placement x = n.inputs[0];
  const auto& order = attribute<Shape>(n.whole, "order");
  const auto moved = std::find(order.begin(), order.end(), static_cast<int64_t>(x.dim));
  if (x.kind == Kind::kSharded) x.dim = static_cast<size_t>(moved - order.begin());
  return x;
}

Placement shard_slice_columns(ShardedNode& n) {
  const Placement& x = n.inputs[0];
  if (x.kind != Kind::kSharded || x.dim != last_dim(n.shape_before(0))) return x;
  const auto columns = attribute<int64_t>(n.whole, "columns");
  const int64_t share = share_of_columns(*x.split, columns, n.ranks);
  TILECAST_CHECK(share > 0) << "node '" << n.node.name << "' slices across parts";
  n.node.set_attribute("columns", share);
  return x;
}

Placement shard_convolution(ShardedNode& n) {
  if (n.splits[1] == nullptr || n.inputs[0].kind != Kind::kSharded) return shard_replicated(n);
  return {.kind = Kind::kSharded, .dim = n.inputs[0].dim, .split = n.splits[1]};
}

Placement shard_split_heads(ShardedNode& n) {
  Placement x = n.inputs[0];
  if (x.kind != Kind::kSharded) return x;
  const int64_t heads = attribute<int64_t>(n.whole, "heads");
  n.node.set_attribute("heads", heads * n.shape(0)[x.dim] / n.shape_before(0)[x.dim]);
  x.dim = 1;
  return x;
}

Placement shard_like_first(ShardedNode& n) { return n.inputs[0]; }

Placement shard_heads(ShardedNode& n) {
  Placement x = n.inputs[0];
  if (x.kind != Kind::kSharded) return shard_replicated(n);
  x.dim = 2;  // [b, s, heads · size]
  return x;
}

Placement shard_latent(ShardedNode& n) {
  constexpr size_t kLatent = 1, kBoth = 2;
  if (n.is_divided_by_rows(kLatent)) n.enter(kLatent);
  if (n.is_divided_by_rows(kBoth)) n.make_replicated(kBoth);
  return shard_heads(n);
}

}  // namespace tilecast
