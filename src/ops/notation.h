#pragma once

// Tilecast's text notation of a graph, accepted as a model file (.tcg) and used by tests:
//
//   graph two_layers
//   input x: fp32[4, 128]
//   weight w: fp32[128, 128]
//   segment layers x2
//     weight v: fp32[128, 128]
//     y = linear(x, v) "mlp.fc"
//     z = relu(y)
//     carry x -> z
//   segment head x1
//     o = linear(z, w)
//   output o
//
// One statement per line; '#' starts a comment. A `buffer` is a stored tensor that is not trained,
// and `weight w: fp32[4] frozen` has no gradient.
// Attributes follow the inputs in braces; the operator table declares their types: `v = view(x)
// {shape=[4, 64, 2]}`, `c = cast(x) {dtype=bf16}`, `{scheme=fp8_block}`. Operators with several
// outputs name them all: `a, b = split(x) {parts=2}`. `y = relu(x) into x` writes y to the memory
// of x. The quoted text is a label. Facts of a node that memory and times need beside its operator
// is its role (src/graph/role.h): `z = add(x, y) {role=residual}`, `weight w: fp32[4] role=router`,
// `input x: fp32[4] role=received`, `segment tower x2 role=vision`.
//
// A graph may contain its own backward pass, as PyTorch runs it:
//
//   weight w: fp32[128, 128]
//   gradient w.grad: fp32[128, 128]
//   ...
//   segment backward x1
//     phase backward
//     dw = gemm(dy, x) {transpose_a=1}
//     g = add_(w.grad, dw)
//
// `phase` (forward, backward, optimizer) holds for the nodes after it. A `gradient` is what the
// optimizer reads; as in PyTorch, the first tensor that is added becomes the gradient.

#include <string>
#include <string_view>

#include "graph/graph.h"

namespace tilecast {

/// Parses and checks a graph. Throws Error{kInput} with line number.
Graph parse_graph(std::string_view text, const std::string& where);

/// The notation of a graph without optimizer step; parse_graph(format_graph(g)) gives an equal
/// graph up to the names of tensors.
std::string format_graph(const Graph& graph);

}  // namespace tilecast
