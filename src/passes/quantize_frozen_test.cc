#include <gtest/gtest.h>

#include "memory/by_purpose.h"
#include "ops/notation.h"
#include "ops/op_def.h"
#include "passes/passes.h"
#include "test_support.h"

namespace tilecast {
namespace {

constexpr int64_t kAdapterRank = 4, kFrozenLayers = 3;

constexpr const char* kAdaptedModel = R"(graph model
input x: bf16[4, 16, 64]
weight w: bf16[64, 64]
segment layers x3
  weight w1: bf16[256, 64]
  weight w2: bf16[64, 256]
  up_proj = linear(x, w1)
  a = gelu(up_proj)
  down_proj = linear(a, w2)
  r = add(down_proj, x)
  carry x -> r
segment head x1
  o = linear(r, w)
output o
)";

Graph with_adapters() {
  Graph graph = parse_graph(kAdaptedModel, "model");
  add_lora(graph, {.rank = kAdapterRank, .targets = {"all-linear"}});
  return graph;
}

/// The operators of a phase, with the repetitions of their segments.
int64_t count_of(const Graph& graph, std::string_view op, Phase phase) {
  int64_t count = 0;
  for (const Segment& segment : graph.segments) {
    for (int32_t i = 0; i < segment.node_count; ++i) {
      const Node& node = graph.nodes[static_cast<size_t>(segment.first_node + i)];
      if (node.phase == phase && op_def(node.op).name == op) count += segment.repeat;
    }
  }
  return count;
}

const SchemeOf kFourBits = [](std::string_view, Role) { return QuantScheme::kInt4WeightOnly; };

TEST(QuantizedBase, WeightsAreStoredInFourBits) {
  Graph plain = with_adapters(), quantized = with_adapters();
  quantize_frozen(quantized, kFourBits);
  constexpr int64_t kWeights = kFrozenLayers * 2 * 64 * 256;
  EXPECT_EQ(weights_bytes(plain) - weights_bytes(quantized),
            2 * kWeights - kFrozenLayers * 2 *
                               scheme_bytes(QuantScheme::kInt4WeightOnly, 64 * 256, DType::kBf16));
}

TEST(QuantizedBase, BackwardConvertsWeightsAgain) {
  Graph graph = with_adapters();
  quantize_frozen(graph, kFourBits);
  add_backward(graph);
  EXPECT_EQ(count_of(graph, "dequantize_weight", Phase::kForward), 2 * kFrozenLayers);
  EXPECT_EQ(count_of(graph, "dequantize_weight", Phase::kBackward), 2 * kFrozenLayers);
}

TEST(QuantizedBase, ConvertedWeightsAreNotKept) {
  // The same activations are kept with and without quantization; a converted weight lives only
  // while a product reads it.
  Graph plain = with_adapters(), quantized = with_adapters();
  quantize_frozen(quantized, kFourBits);
  add_backward(plain);
  add_backward(quantized);
  constexpr int64_t kLargestWeight = 2 * 64 * 256;
  EXPECT_LE(memory_by_purpose(quantized).activations_bytes,
            memory_by_purpose(plain).activations_bytes + kLargestWeight);
}

}  // namespace
}  // namespace tilecast
