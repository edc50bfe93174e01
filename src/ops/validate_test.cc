#include "ops/validate.h"

#include <gtest/gtest.h>

#include "ops/builder.h"
#include "ops/notation.h"
#include "test_support.h"

namespace tilecast {
namespace {

Graph two_layers() {
  return parse_graph(R"(graph two
input x: fp32[4, 128]
weight e: fp32[128, 128]
segment layers x2
  weight w: fp32[128, 128]
  y = linear(x, w) "mlp.fc"
  v = view(y) {shape=[512]}
  z = view(v) {shape=[4, 128]}
  carry x -> z
segment head x1
  o = linear(z, e) "head"
output o
)",
                     "two.tcg");
}

/// Expects the message about a graph that `change` breaks to hold `part`.
template <typename Change>
void expect_refused(Change change, const std::string& part) {
  Graph graph = two_layers();
  change(graph);
  EXPECT_ERROR(validate(graph), kInternal, part);
}

TEST(Validate, AGraphOfTheBuilderIsSound) { EXPECT_NO_THROW(validate(two_layers())); }

TEST(Validate, IdsAreInRange) {
  expect_refused([](Graph& g) { g.nodes[0].inputs[0] = 99; },
                 "graph 'two': node 'mlp.fc': input 99 is not a tensor");
  expect_refused([](Graph& g) { g.nodes[0].op = 1000; },
                 "node 'mlp.fc': operator 1000 is not in the table");
  expect_refused([](Graph& g) { g.outputs = {77}; }, "output");
  expect_refused([](Graph& g) { g.tensors[0].segment = 7; }, "segment 7 of 2");
}

TEST(Validate, ATensorIsMadeOnceAndBeforeItIsRead) {
  expect_refused([](Graph& g) { std::swap(g.nodes[0], g.nodes[1]); }, "before it is computed");
  expect_refused([](Graph& g) { g.nodes[3].outputs = g.nodes[0].outputs; }, "node 'head': tensor");
}

TEST(Validate, SegmentsCoverAllNodes) {
  expect_refused([](Graph& g) { g.segments[1].node_count = 0; }, "cover 3 of 4 nodes");
  expect_refused([](Graph& g) { g.segments[1].first_node = 2; },
                 "segment 1 'head': starts at node 2, but the previous one ends at 3");
  expect_refused([](Graph& g) { g.segments[0].reverses = 0; },
                 "does not reverse an earlier segment");
}

TEST(Validate, CarriesAgree) {
  expect_refused([](Graph& g) { g.segments[0].carries[0].next = g.nodes[1].outputs[0]; },
                 "segment 0 'layers': carries 'x' fp32[4, 128] to 'v' fp32[512]");
}

TEST(Validate, MemoryHasAnOwner) {
  expect_refused([](Graph& g) { g.tensor(g.nodes[2].outputs[0]).storage = g.nodes[1].outputs[0]; },
                 "does not own its memory");
  expect_refused(
      [](Graph& g) {
        const TensorId view = g.nodes[2].outputs[0];
        g.tensor(view).storage = view;
      },
      "does not share the memory of its input");
}

TEST(Validate, NodesKeepToTheTable) {
  expect_refused([](Graph& g) { g.nodes[0].inputs.pop_back(); },
                 "node 'mlp.fc' (linear): expected 2 to 3 inputs, found 1");
  expect_refused([](Graph& g) { g.nodes[1].attributes.clear(); }, "attribute 'shape' is missing");
  expect_refused([](Graph& g) { g.nodes[1].set_attribute("shape", Shape{2, 256}); },
                 "view computes fp32[2, 256], but the graph has fp32[512]");
  expect_refused([](Graph& g) { g.tensor(g.nodes[3].outputs[0]).dtype = DType::kBf16; },
                 "node 'head': linear computes fp32[4, 128], but the graph has bf16[4, 128]");
}

TEST(Validate, RolesFitWhatHasThem) {
  expect_refused([](Graph& g) { g.nodes[0].role = Role::kResidual; },
                 "node 'mlp.fc': linear cannot have the role 'residual'");
  expect_refused([](Graph& g) { g.nodes[0].role = Role::kRouter; },
                 "node 'mlp.fc': linear cannot have the role 'router'");
  expect_refused([](Graph& g) { g.tensors[0].role = Role::kRouter; },
                 "tensor 0 'x': cannot have the role 'router'");
  expect_refused([](Graph& g) { g.segments[0].role = Role::kOutput; },
                 "segment 0 'layers': cannot have the role 'output'");
  Graph sound = two_layers();
  sound.nodes[3].role = Role::kOutput;
  sound.tensors[0].role = Role::kReceived;
  sound.tensors[1].role = Role::kRouter;
  sound.segments[0].role = Role::kVision;
  EXPECT_NO_THROW(validate(sound));
}

}  // namespace
}  // namespace tilecast
