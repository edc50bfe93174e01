#include "memory/structure.h"

#include <gtest/gtest.h>

#include "memory/lifetimes.h"
#include "ops/notation.h"

namespace tilecast {
namespace {

/// Nodes whose name starts with "core" are of attention.
Graph marked(const std::string& text) {
  Graph graph = parse_graph(text, "g");
  for (Node& node : graph.nodes) node.attention_core = node.name.starts_with("core");
  return graph;
}

/// The names of the sums that end the layers of the first body.
std::vector<std::string> ends_of(const std::string& text) {
  const Graph graph = marked(text);
  const std::vector<bool> ends = layer_ends(graph, graph.segments.front());
  std::vector<std::string> names;
  for (size_t i = 0; i < ends.size(); ++i) {
    if (ends[i]) names.push_back(graph.nodes[i].name);
  }
  return names;
}

using Names = std::vector<std::string>;

TEST(LayerEnds, AreTheSumsOfSublayersWithoutAttention) {
  EXPECT_EQ(ends_of(R"(input x: fp32[64, 64]
segment layers x1
  core1 = tanh(x)
  a = add(core1, x) {role=residual}
  h1 = relu(a)
  b = add(h1, a) {role=residual}
  core2 = tanh(b)
  c = add(core2, b) {role=residual}
  h2 = relu(c)
  d = add(h2, c) {role=residual}
output d
)"),
            (Names{"b", "d"}));
}

TEST(LayerEnds, AreAllSumsWhereAllSublayersHaveAttention) {
  EXPECT_EQ(ends_of(R"(input x: fp32[64, 64]
segment layers x1
  core1 = tanh(x)
  a = add(core1, x) {role=residual}
  core2 = tanh(a)
  b = add(core2, a) {role=residual}
output b
)"),
            (Names{"a", "b"}));
  EXPECT_EQ(ends_of("input x: fp32[64, 64]\na = add(x, x)\noutput a\n"), Names{}) << "no residual";
}

/// Steps in which the weights of attention of the first repetition live.
int32_t last_step_of_weights(const std::string& end) {
  Graph graph = marked(R"(input x: fp32[64, 64]
segment layers x3
  core = tanh(x)
  a = add(core, x) {role=residual}
  h = relu(a)
  b = add(h, a) {role=residual}
)" + end);
  TensorId weights = -1;
  for (const Node& node : graph.nodes) {
    if (node.attention_core) weights = node.outputs[0];
  }
  graph.tensor(weights).held = Held::kNextLayer;
  for (const Lifetime& life : find_lifetimes(graph, {.folded = false}).lifetimes) {
    if (life.tensor == weights && life.born == 0) return life.last;
  }
  return -1;
}

TEST(Lifetimes, WeightsThatALayerReturnsLiveToTheEndOfTheNextOne) {
  EXPECT_EQ(last_step_of_weights("  carry x -> b\noutput b\n"), 2 * 4 - 1);
  // Variables that are held past the last sum are of the same layer.
  EXPECT_EQ(last_step_of_weights("  y = keep(b, h)\n  carry x -> y\noutput y\n"), 2 * 5 - 1);
}

TEST(Lifetimes, KeepHoldsItsFurtherInputsAndTakesNoMemory) {
  const auto life_of = [](const std::string& name, const std::string& out) {
    const Graph graph = parse_graph(
        "input x: fp32[64, 64]\nh = tanh(x)\na = relu(h)\nb = tanh(a)\ny = keep(b, h)\noutput " +
            out + "\n",
        "g");
    for (const Lifetime& life : find_lifetimes(graph, {}).lifetimes) {
      if (graph.tensor(life.tensor).name == name) return life.last;
    }
    return int32_t{-1};
  };
  EXPECT_EQ(life_of("h", "y"), 3);
  EXPECT_EQ(life_of("a", "y"), 2);
  EXPECT_EQ(life_of("y", "y"), -1) << "its memory is the first input's";
}

}  // namespace
}  // namespace tilecast
