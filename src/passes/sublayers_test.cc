#include "passes/sublayers.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "memory/by_purpose.h"
#include "ops/notation.h"
#include "ops/op_def.h"
#include "passes/passes.h"
#include "test_support.h"

namespace tilecast {
namespace {

constexpr const char* kLayer = R"(graph model
input x: bf16[2, 32, 64]
segment layers x3
  weight g1: bf16[64]
  weight g2: bf16[64]
  weight wv: bf16[64, 64]
  weight w1: bf16[256, 64]
  weight w2: bf16[64, 256]
  n1 = rms_norm(x, g1)
  v = linear(n1, wv)
  h = view(v) {shape=[2, 32, 4, 16]}
  c, l = attention(h, h, h)
  m = view(c) {shape=[2, 32, 64]}
  r1 = add(m, x) {role=residual}
  n2 = rms_norm(r1, g2)
  u = linear(n2, w1)
  a = gelu(u)
  y = linear(a, w2)
  r2 = add(y, r1) {role=residual}
  carry x -> r2
output r2
)";

std::vector<std::string> names_of(const Graph& graph, Sublayer kind) {
  std::vector<std::string> names;
  const std::vector<Sublayer> kinds = sublayers_of(graph.nodes);
  for (size_t i = 0; i < kinds.size(); ++i) {
    if (kinds[i] == kind) names.push_back(graph.nodes[i].name);
  }
  return names;
}

TEST(Sublayers, AnMlpIsWhatMakesAnOperandOfAResidualSumWithoutAttention) {
  const Graph graph = parse_graph(kLayer, "model");
  EXPECT_EQ(names_of(graph, Sublayer::kMlp), (std::vector<std::string>{"n2", "u", "a", "y"}));
  EXPECT_TRUE(names_of(graph, Sublayer::kExperts).empty());
}

TEST(Sublayers, ANormThatGivesTheHiddenStateIsNoPartOfThem) {
  std::string text = kLayer;
  const std::string sum = "r2 = add(y, r1)";
  text.replace(text.find(sum), sum.size(), "r2 = add(y, n2)");
  EXPECT_EQ(names_of(parse_graph(text, "model"), Sublayer::kMlp),
            (std::vector<std::string>{"u", "a", "y"}));
}

int64_t product_flops_of(const Graph& graph) {
  int64_t flops = 0;
  for (const Segment& segment : graph.segments) {
    for (int32_t i = 0; i < segment.node_count; ++i) {
      std::vector<Kernel> kernels;
      lower_node(graph, graph.nodes[static_cast<size_t>(segment.first_node + i)], kernels);
      for (const Kernel& kernel : kernels) {
        if (kernel.is_product()) flops += kernel.flops * segment.repeat;
      }
    }
  }
  return flops;
}

TEST(Sublayers, TheMlpRunsAgainAsAWholeAndKeepsItsInputAlone) {
  Graph kept = parse_graph(kLayer, "model"), again = kept;
  add_backward(kept, Checkpointing::kSelective, {.attention = false});
  add_backward(again, Checkpointing::kSelective, {.attention = false, .mlp = true});
  constexpr int64_t kTokens = 64, kHidden = 64, kInner = 256, kLayers = 3;
  EXPECT_EQ(product_flops_of(again) - product_flops_of(kept),
            kLayers * 2 * 2 * kTokens * kHidden * kInner);
  // The norm's output, u and a. (At the peak one layer has them in either case.)
  const int64_t saved =
      memory_by_purpose(kept).activations_bytes - memory_by_purpose(again).activations_bytes;
  EXPECT_GE(saved, (kLayers - 1) * kTokens * (kHidden + 2 * kInner) * 2);
}

}  // namespace
}  // namespace tilecast
