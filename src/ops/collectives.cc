// Collective operations between ranks, and their backward passes. Their times depend on where the
// ranks are, which a graph of one rank does not say: see src/scenario/parallel/collective_costs.h.

#include "ops/collectives.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/checked.h"
#include "ops/builder.h"
#include "ops/op_def.h"

namespace tilecast {
namespace {

int64_t dim_of(const OpContext& context) {
  const int64_t dim = context.integer("dim");
  if (dim >= static_cast<int64_t>(context.input(0).shape.size()))
    context.fail(fmt::format("dimension {} of {}", dim, format_shape(context.input(0).shape)));
  return dim;
}

/// all_gather: the ranks' parts one after the other along a dimension.
std::vector<TensorSpec> infer_gathered(const OpContext& context) {
  TensorSpec spec{.shape = context.input(0).shape, .dtype = context.input(0).dtype};
  int64_t& length = spec.shape[static_cast<size_t>(dim_of(context))];
  length = checked_multiply(length, context.integer("ranks"));
  return {spec};
}

/// reduce_scatter, slice_of_rank: one rank's part.
std::vector<TensorSpec> infer_scattered(const OpContext& context) {
  TensorSpec spec{.shape = context.input(0).shape, .dtype = context.input(0).dtype};
  int64_t& length = spec.shape[static_cast<size_t>(dim_of(context))];
  const int64_t ranks = context.integer("ranks");
  if (length % ranks != 0)
    context.fail(fmt::format("{} ranks do not divide dimension {} of {}", ranks, dim_of(context),
                             format_shape(context.input(0).shape)));
  length /= ranks;
  return {spec};
}

/// sequence_all_to_all: a rank gets the tokens of all ranks for its share of the heads, or back.
std::vector<TensorSpec> infer_exchanged(const OpContext& context) {
  const int64_t ranks = context.integer("ranks"), scatter = context.integer("scatter");
  TensorSpec spec = infer_gathered(context).front();
  const Shape& shape = context.input(0).shape;
  if (scatter >= static_cast<int64_t>(shape.size()) ||
      shape[static_cast<size_t>(scatter)] % ranks != 0)
    context.fail(fmt::format("{} ranks do not divide dimension {} of {}", ranks, scatter,
                             format_shape(shape)));
  spec.shape[static_cast<size_t>(scatter)] /= ranks;
  return {spec};
}

/// copy_to_ranks: every rank has the tensor already.
std::vector<TensorSpec> infer_copied(const OpContext& context) {
  return {{.shape = context.input(0).shape,
           .dtype = context.input(0).dtype,
           .contiguous = context.input(0).contiguous,
           .view = true}};
}

/// The larger of input and output counts as the buffer, as in NCCL's tests.
void work_collective(const OpContext& context, std::vector<Kernel>& kernels) {
  const int64_t ranks = context.integer("ranks");
  if (ranks == 1) return;
  const Tensor &in = context.input(0), &out = context.output(0);
  Kernel kernel{
      .shape = Collective{std::max(element_count(in.shape), element_count(out.shape)), ranks},
      .dtype = in.dtype};
  kernel.read_bytes = tensor_bytes(in);
  kernel.write_bytes = tensor_bytes(out);
  kernels.push_back(kernel);
}

/// A message to the next rank, whatever the length of the ring.
void work_ring_exchange(const OpContext& context, std::vector<Kernel>& kernels) {
  if (context.integer("ranks") == 1) return;
  const Tensor& in = context.input(0);
  constexpr int64_t kEnds = 2;
  Kernel kernel{.shape = Collective{element_count(in.shape), kEnds}, .dtype = in.dtype};
  kernel.read_bytes = kernel.write_bytes = tensor_bytes(in);
  kernels.push_back(kernel);
}

void work_slice(const OpContext& context, std::vector<Kernel>& kernels) {
  if (context.integer("ranks") == 1) return;
  const Tensor& out = context.output(0);
  Kernel kernel{.shape = Stream{.elements = element_count(out.shape)}, .dtype = out.dtype};
  kernel.read_bytes = kernel.write_bytes = tensor_bytes(out);
  kernels.push_back(kernel);
}

/// Every rank computes the same from the sum, so each has the gradient of its own summand.
void backward_all_reduce(GradientBuilder& g, const Node& node) {
  g.add_gradient(node.inputs[0], g.gradient(node.outputs[0]));
}
/// Each rank has a part of the gradient's sum.
void backward_copy(GradientBuilder& g, const Node& node) {
  backward_through(g, node, "all_reduce");
}
void backward_gather(GradientBuilder& g, const Node& node) {
  backward_through(g, node, "reduce_scatter");
}
void backward_scatter(GradientBuilder& g, const Node& node) {
  backward_through(g, node, "all_gather");
}
void backward_context_gather(GradientBuilder& g, const Node& node) {
  backward_through(g, node, "context_reduce_scatter");
}
/// Heads for tokens again.
void backward_exchanged(GradientBuilder& g, const Node& node) {
  Node back = node;
  back.set_attribute("dim", attribute<int64_t>(node, "scatter"));
  back.set_attribute("scatter", attribute<int64_t>(node, "dim"));
  backward_through(g, back, "sequence_all_to_all");
}

std::vector<SizeDef> collective_sizes() {
  std::vector<SizeDef> sizes = row_sizes();
  sizes.push_back({.name = "ranks", .doc = "that take part"});
  return sizes;
}

Operands collective_operands(GraphBuilder& b, const GivenSizes& s) {
  return {{b.input("x", {s["rows"], s["columns"]}, s.dtype())}, {{"ranks", s["ranks"]}}};
}

/// A rank's share of the rows of a sequence, with all heads: a head of `columns` to each rank.
Operands exchange_operands(GraphBuilder& b, const GivenSizes& s) {
  return {{b.input("x", {1, s["rows"], s["ranks"], s["columns"]}, s.dtype())},
          {{"ranks", s["ranks"]}}};
}

std::vector<AttributeDef> along_dimension() {
  return {ranks_attribute(),
          {.name = "dim", .doc = "the dimension", .default_value = int64_t{0}, .min = 0}};
}

OpDef collective(OpDef op) {
  op.sizes = collective_sizes();
  op.operands = collective_operands;
  return op;
}

}  // namespace

AttributeDef ranks_attribute() {
  return {.name = "ranks", .doc = "how many", .default_value = int64_t{1}, .min = 1};
}

void backward_through(GradientBuilder& g, const Node& node, std::string_view op) {
  const TensorId gradient = g.dense(g.gradient(node.outputs[0]));
  g.add_gradient(node.inputs[0], g.op(op, {gradient}, node.attributes));
}

std::vector<OpDef> collective_ops() {  // NOLINT(readability-function-size): a table
  return {
      collective({.name = "all_reduce",
                  .doc = "sum over the ranks of a node",
                  .aten = "c10d::allreduce_",
                  .attributes = {ranks_attribute()},
                  .infer = infer_same,
                  .work = work_collective,
                  .backward = backward_all_reduce,
                  .example = "x: bf16[64, 256] {ranks=4}"}),
      collective({.name = "all_gather",
                  .doc = "the ranks' tensors one after the other along a dimension",
                  .aten = "c10d::allgather_",
                  .attributes = along_dimension(),
                  .infer = infer_gathered,
                  .work = work_collective,
                  .backward = backward_gather,
                  .example = "x: bf16[64, 256] {ranks=4}"}),
      collective({.name = "reduce_scatter",
                  .doc = "sum over the ranks; each gets a part of it along a dimension",
                  .aten = "c10d::reduce_scatter_",
                  .attributes = along_dimension(),
                  .infer = infer_scattered,
                  .work = work_collective,
                  .backward = backward_scatter,
                  .example = "x: bf16[64, 256] {ranks=4}"}),
      {.name = "slice_of_rank",
       .doc = "the rank's part, along a dimension, of a tensor that all ranks have",
       .attributes = along_dimension(),
       .infer = infer_scattered,
       .work = work_slice,
       .backward = backward_scatter,
       .example = "x: bf16[64, 256] {ranks=4}"},
      {.name = "copy_to_ranks",
       .doc = "a tensor that all ranks have, of whose gradient each computes a summand",
       .attributes = {ranks_attribute()},
       .infer = infer_copied,
       .backward = backward_copy,
       .example = "x: bf16[64, 256] {ranks=4}"},
      {.name = "context_all_gather",
       .doc = "keys or values of all context-parallel ranks",
       .aten = "c10d::allgather_",
       .attributes = along_dimension(),
       .infer = infer_gathered,
       .work = work_collective,
       .backward = backward_context_gather,
       .shard = shard_like_first,
       .example = "x: bf16[2, 8, 64, 128] {ranks=4, dim=2}"},
      {.name = "context_reduce_scatter",
       .doc = "gradients of keys or values, to the context-parallel ranks that computed them",
       .aten = "c10d::reduce_scatter_",
       .attributes = along_dimension(),
       .infer = infer_scattered,
       .work = work_collective,
       .example = "x: bf16[2, 8, 64, 128] {ranks=4, dim=2}"},
      {.name = "data_all_gather",
       .doc = "tokens of all data-parallel ranks of a server: [b, …] to [ranks · b, …]",
       .aten = "c10d::allgather_",
       .attributes = along_dimension(),
       .infer = infer_gathered,
       .work = work_collective,
       .shard = shard_dispatch,
       .example = "x: bf16[64, 256] {ranks=4}"},
      {.name = "data_reduce_scatter",
       .doc = "sums over the data-parallel ranks of a server, to the ranks of the tokens",
       .aten = "c10d::reduce_scatter_",
       .attributes = along_dimension(),
       .infer = infer_scattered,
       .work = work_collective,
       .shard = shard_like_first,
       .example = "x: bf16[64, 256] {ranks=4}"},
      {.name = "sequence_all_to_all",
       .doc = "sequences that ranks share: all tokens of a share of the heads, or back",
       .aten = "c10d::alltoall_",
       .attributes = {ranks_attribute(),
                      {.name = "dim",
                       .doc = "the dimension that becomes whole",
                       .default_value = int64_t{1},
                       .min = 0},
                      {.name = "scatter",
                       .doc = "the dimension that ranks share afterwards",
                       .default_value = int64_t{2},
                       .min = 0}},
       .infer = infer_exchanged,
       .work = work_collective,
       .backward = backward_exchanged,
       .sizes = collective_sizes(),
       .operands = exchange_operands,
       .shard = shard_like_first,
       .example = "x: bf16[2, 64, 8, 128] {ranks=4}"},
      {.name = "ring_exchange",
       .doc = "keys and values to the next rank of a ring, and those of the one before",
       .aten = "c10d::send",
       .attributes = {ranks_attribute()},
       .infer = infer_same,
       .work = work_ring_exchange,
       .example = "x: bf16[2, 64, 8, 128] {ranks=4}"},
  };
}

}  // namespace tilecast
