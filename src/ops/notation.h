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
// One statement per line; '#' starts a comment. A `buffer` is a stored tensor that is not trained.
// Attributes follow the inputs in braces; the operator table declares their types: `v = view(x)
// {shape=[4, 64, 2]}`, `c = cast(x) {dtype=bf16}`, `{scheme=fp8_block}`. Operators with several
// outputs name them all: `a, b = split(x) {parts=2}`. The quoted text is the node's name.

#include <string>
#include <string_view>

#include "graph/graph.h"

namespace tilecast {

/// Parses and checks a graph. Throws Error{kInput} with line number.
Graph parse_graph(std::string_view text, const std::string& where);

/// The notation of a graph of the forward phase; parse_graph(format_graph(g)) gives an equal graph
/// up to the names of tensors.
std::string format_graph(const Graph& graph);

}  // namespace tilecast
