#include "passes/rematerialize.h"

#include <gtest/gtest.h>

#include <set>

#include "ops/notation.h"
#include "passes/passes.h"
#include "test_support.h"

namespace tilecast {
namespace {

/// NameSet of what the forward pass makes and the backward pass reads.
std::set<std::string> kept(const Graph& graph) {
  std::set<TensorId> made;
  std::set<std::string> names;
  for (const Node& node : graph.nodes) {
    if (node.phase == Phase::kForward) made.insert(node.outputs.begin(), node.outputs.end());
    if (node.phase != Phase::kBackward) continue;
    for (const TensorId id : node.inputs) {
      if (made.contains(id)) names.insert(graph.tensor(id).name);
    }
  }
  return names;
}

/// Tensors that are kept without and with this pass.
struct Kept {
  std::set<std::string> without, with;
};
Kept trained(const char* text) {
  Graph graph = parse_graph(text, "g");
  add_backward(graph);
  const Graph unfused = graph;
  fuse_pointwise(graph);
  Kept k{.without = kept(graph)};
  rematerialize_pointwise(graph, unfused);
  k.with = kept(graph);
  return k;
}

using NameSet = std::set<std::string>;

TEST(Rematerialize, AGatedActivationKeepsItsInputsAndWhatAProductReads) {
  const Kept k = trained(R"(input x: bf16[64, 32]
weight w1: bf16[128, 32]
weight w2: bf16[128, 32]
weight w3: bf16[32, 128]
g = linear(x, w1)
u = linear(x, w2)
s = silu(g)
p = mul(s, u)
y = linear(p, w3)
output y
)");
  EXPECT_EQ(k.without, (NameSet{"g", "u", "s", "p"}));
  EXPECT_EQ(k.with, (NameSet{"g", "u", "p"}));
}

TEST(Rematerialize, AChainOfPowersKeepsItsInputAlone) {
  const Kept k = trained(R"(input x: bf16[64, 32]
weight w: bf16[32, 32]
a = linear(x, w)
b = tanh(a)
c = mul(b, a)
d = exp(c)
e = linear(d, w)
output e
)");
  EXPECT_EQ(k.without, (NameSet{"a", "b", "d"}));
  EXPECT_EQ(k.with, (NameSet{"a", "d"}));
}

/// It would draw other numbers.
TEST(Rematerialize, DropoutIsNotRunAgain) {
  const Kept k = trained(R"(input x: bf16[64, 32]
weight w: bf16[32, 32]
a = linear(x, w)
d, m = dropout(a)
t = tanh(d)
y = linear(t, w)
output y
)");
  EXPECT_EQ(k.with, k.without);
  EXPECT_TRUE(k.with.contains("m"));
}

/// Keeping both inputs would take more than keeping their sum.
TEST(Rematerialize, NothingIsReplacedByMore) {
  const Kept k = trained(R"(input x: bf16[64, 32]
weight w: bf16[32, 32]
weight v: bf16[32, 32]
a = linear(x, w)
b = linear(x, v)
c = add(a, b)
d = tanh(c)
e = mul(c, d)
y = linear(e, w)
output y
)");
  EXPECT_EQ(k.with, (NameSet{"c", "e"}));
}

}  // namespace
}  // namespace tilecast
