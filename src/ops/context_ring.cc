// Attention of context-parallel ranks to keys and values that go around a ring, and what that costs
// beside attention. Times of the exchange: src/scenario/parallel/collective_costs.h.

#include <fmt/format.h>

#include "base/checked.h"
#include "ops/builder.h"
#include "ops/collectives.h"
#include "ops/op_def.h"

namespace tilecast {
namespace {

TensorSpec of_length(const OpContext& context) {
  TensorSpec spec{.shape = context.input(0).shape, .dtype = context.input(0).dtype};
  const int64_t dim = context.integer("dim");
  if (dim >= static_cast<int64_t>(spec.shape.size()))
    context.fail(fmt::format("dimension {} of {}", dim, format_shape(spec.shape)));
  spec.shape[static_cast<size_t>(dim)] = context.integer("length");
  return spec;
}

/// context_ring: keys or values of all ranks that a rank attends to, block by block. One block is
/// in memory for the backward pass, beside it the next one while it is sent.
std::vector<TensorSpec> infer_ring(const OpContext& context) {
  TensorSpec spec = of_length(context);
  spec.stored_bytes = tensor_bytes(context.input(0));
  return {spec};
}

/// context_ring_backward: the gradients of the rank's own keys or values.
std::vector<TensorSpec> infer_ring_backward(const OpContext& context) {
  return {of_length(context)};
}

std::vector<TensorSpec> infer_in_place(const OpContext& context) {
  const Tensor& x = context.input(0);
  return {{.shape = x.shape, .dtype = x.dtype, .contiguous = x.contiguous, .view = true}};
}

/// Blocks of `own` that a rank sends to the next one, `blocks` in each of ranks - 1 steps.
void add_ring(const OpContext& context, const Tensor& own, int64_t blocks,
              std::vector<Kernel>& kernels) {
  constexpr int64_t kEnds = 2;
  const int64_t steps = context.integer("ranks") - 1;
  if (steps == 0) return;
  const int64_t sent = checked_multiply(steps, blocks);
  Kernel kernel{.shape = Collective{checked_multiply(sent, element_count(own.shape)), kEnds},
                .dtype = own.dtype};
  kernel.read_bytes = kernel.write_bytes = checked_multiply(sent, tensor_bytes(own));
  kernels.push_back(kernel);
}

void work_ring(const OpContext& context, std::vector<Kernel>& kernels) {
  add_ring(context, context.input(0), 1, kernels);
}

/// Keys or values go around once more, with their gradients.
void work_ring_backward(const OpContext& context, std::vector<Kernel>& kernels) {
  add_ring(context, context.output(0), 2, kernels);
}

/// ring_merge: the results of attention to each block are weighted and added in place.
void work_merge(const OpContext& context, std::vector<Kernel>& kernels) {
  const int64_t ranks = context.integer("ranks");
  if (ranks == 1) return;
  const Tensor& x = context.input(0);
  const int64_t elements = checked_multiply(ranks, element_count(x.shape));
  const int64_t bytes = checked_multiply(ranks, tensor_bytes(x));
  Kernel kernel{.shape = Stream{.elements = elements}, .dtype = x.dtype};
  kernel.flops = checked_multiply(2, elements);
  kernel.read_bytes = checked_multiply(2, bytes);
  kernel.write_bytes = bytes;
  kernel.host.launches = static_cast<int32_t>(ranks);
  kernels.push_back(kernel);
}

void backward_ring(GradientBuilder& g, const Node& node) {
  Node back = node;
  const auto dim = static_cast<size_t>(attribute<int64_t>(node, "dim"));
  back.set_attribute("length", g.tensor(node.inputs[0]).shape[dim]);
  backward_through(g, back, "context_ring_backward");
}
/// The gradients of queries of all blocks are added in the same way.
void backward_merge(GradientBuilder& g, const Node& node) {
  backward_through(g, node, "ring_merge");
}

std::vector<AttributeDef> around_ring() {
  return {
      ranks_attribute(),
      {.name = "dim", .doc = "the dimension", .default_value = int64_t{0}, .min = 0},
      {.name = "length", .doc = "of the result along the dimension", .required = true, .min = 1}};
}

std::vector<SizeDef> ring_sizes() {
  std::vector<SizeDef> sizes = row_sizes();
  sizes.push_back({.name = "ranks", .doc = "of the ring"});
  return sizes;
}

/// A rank's own rows.
Operands ring_operands(GraphBuilder& b, const GivenSizes& s) {
  return {{b.input("x", {s["rows"], s["columns"]}, s.dtype())},
          {{"ranks", s["ranks"]}, {"length", checked_multiply(s["rows"], s["ranks"])}}};
}

Operands ring_backward_operands(GraphBuilder& b, const GivenSizes& s) {
  const int64_t all = checked_multiply(s["rows"], s["ranks"]);
  return {{b.input("x", {all, s["columns"]}, s.dtype())},
          {{"ranks", s["ranks"]}, {"length", s["rows"]}}};
}

Operands merge_operands(GraphBuilder& b, const GivenSizes& s) {
  return {{b.input("x", {s["rows"], s["columns"]}, s.dtype())}, {{"ranks", s["ranks"]}}};
}

}  // namespace

std::vector<OpDef> context_ring_ops() {
  return {
      {.name = "context_ring",
       .doc = "keys or values of all context-parallel ranks, block by block around a ring",
       .aten = "c10d::send",
       .attributes = around_ring(),
       .infer = infer_ring,
       .work = work_ring,
       .backward = backward_ring,
       .sizes = ring_sizes(),
       .operands = ring_operands,
       .shard = shard_like_first,
       .example = "x: bf16[2, 8, 64, 128] {ranks=4, dim=2, length=256}"},
      {.name = "context_ring_backward",
       .doc = "gradients of keys or values around a ring, to the ranks that computed them",
       .aten = "c10d::send",
       .attributes = around_ring(),
       .infer = infer_ring_backward,
       .work = work_ring_backward,
       .sizes = ring_sizes(),
       .operands = ring_backward_operands,
       .example = "x: bf16[2, 8, 256, 128] {ranks=4, dim=2, length=64}"},
      {.name = "ring_merge",
       .doc = "attention to the blocks of a ring, weighted by their sums of exponents and added",
       .attributes = {ranks_attribute()},
       .infer = infer_in_place,
       .work = work_merge,
       .backward = backward_merge,
       .sizes = ring_sizes(),
       .operands = merge_operands,
       .shard = shard_like_first,
       .example = "x: bf16[2, 64, 1024] {ranks=4}"},
  };
}

}  // namespace tilecast
