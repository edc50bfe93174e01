#include "passes/passes.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <map>

#include "memory/by_purpose.h"
#include "ops/notation.h"
#include "ops/op_def.h"
#include "passes/main_gradients.h"
#include "test_support.h"

namespace tilecast {
namespace {

constexpr const char* kModel = R"(graph model
input x: fp32[4, 16, 64]
weight w: fp32[64, 64]
segment layers x3
  weight w1: fp32[256, 64]
  weight b1: fp32[256]
  weight w2: fp32[64, 256]
  h = linear(x, w1, b1)
  a = gelu(h)
  y = linear(a, w2)
  r = add(y, x)
  carry x -> r
segment head x1
  o = linear(r, w)
output o
)";

struct Totals {
  int64_t flops = 0, bytes = 0, launches = 0;
  std::map<std::string, int64_t> ops;
};

Totals totals(const Graph& graph, std::optional<Phase> phase = {}) {
  Totals t;
  for (const Segment& segment : graph.segments) {
    for (int32_t i = 0; i < segment.node_count; ++i) {
      const Node& node = graph.nodes[static_cast<size_t>(segment.first_node + i)];
      if (phase && node.phase != *phase) continue;
      std::vector<Kernel> kernels;
      lower_node(graph, node, kernels);
      for (const Kernel& kernel : kernels) {
        if (kernel.is_product()) t.flops += kernel.flops * segment.repeat;
        t.bytes += kernel.bytes() * segment.repeat;
        t.launches += segment.repeat;
        t.ops[std::string(op_def(kernel.op).name)] += segment.repeat;
      }
    }
  }
  return t;
}

TEST(Backward, MatrixProductsCostTwiceTheForwardLessTheFirstInput) {
  Graph graph = parse_graph(kModel, "model");
  const int64_t forward = totals(graph).flops;
  add_backward(graph);
  // x is an input: but it is carried, so the body computes its gradient in every layer.
  EXPECT_EQ(totals(graph, Phase::kBackward).flops, 2 * forward);
}

TEST(Backward, FrozenExpertsGetNoGradients) {
  // 64 tokens, 2 experts each; up has 64 rows of 64, down 64 of 32.
  constexpr int64_t kProducts = int64_t{2} * 64 * 2 * (64 * 64 + 64 * 32);
  for (const char* frozen : {"", " frozen"}) {
    Graph graph = parse_graph(
        fmt::format("input x: fp32[64, 64]\nweight w: fp32[64, 64]\nweight r: fp32[4, 64]\n"
                    "weight u: fp32[4, 64, 64]{0}\nweight d: fp32[4, 64, 32]{0}\n"
                    "h = linear(x, w)\ns = linear(h, r)\nt = softmax(s)\n"
                    "y = experts(h, u, d, t) {{top_k=2}}\noutput y\n",
                    frozen),
        "g");
    add_backward(graph);
    const Node* backward = nullptr;
    for (const Node& node : graph.nodes) {
      if (op_def(node.op).name == "experts_backward") backward = &node;
    }
    ASSERT_NE(backward, nullptr);
    std::vector<Kernel> kernels;
    lower_node(graph, *backward, kernels);
    int64_t flops = 0;
    for (const Kernel& kernel : kernels) flops += kernel.flops;
    const bool trained = *frozen == 0;
    EXPECT_EQ(flops, (trained ? 2 : 1) * kProducts) << frozen;
    // Gradients of x, both weights and the router's.
    EXPECT_EQ(backward->outputs.size(), trained ? 4 : 2) << frozen;
    EXPECT_EQ(graph.tensor(backward->outputs.back()).shape, (Shape{64, 4})) << frozen;
    EXPECT_EQ(totals(graph, Phase::kBackward).ops["add_"], trained ? 4 : 2) << "w, r, and u, d";
  }
}

TEST(Backward, AccumulatesEveryWeightOnce) {
  Graph graph = parse_graph(kModel, "model");
  add_backward(graph);
  EXPECT_EQ(totals(graph, Phase::kBackward).ops["add_"], 3 * 3 + 1);
}

TEST(Backward, ResidualGradientsAreAdded) {
  Graph graph = parse_graph(kModel, "model");
  add_backward(graph);
  EXPECT_EQ(totals(graph, Phase::kBackward).ops["add"], 3);
}

TEST(Backward, ACarriedTensorWithoutAWeightUpstreamStillGetsAGradient) {
  // Found by fuzzing: marking what wants a gradient did not end here.
  Graph graph = parse_graph(R"(input x: fp32[4, 8]
a = add(x, x)
segment layers x3
  weight w: fp32[8, 8]
  y = linear(a, w)
  carry a -> y
)",
                            "g");
  add_backward(graph);
  EXPECT_EQ(totals(graph, Phase::kBackward).ops["gemm"], 3 * 2);
}

TEST(Backward, SegmentsRunInReverse) {
  Graph graph = parse_graph(kModel, "model");
  add_backward(graph);
  ASSERT_EQ(graph.segments.size(), 4u);
  EXPECT_EQ(graph.segments[2].reverses, 1);
  EXPECT_EQ(graph.segments[3].reverses, 0);
  EXPECT_EQ(graph.segments[3].repeat, 3);
  EXPECT_EQ(graph.segments[3].carries.size(), 1u);
}

TEST(Backward, AGraphWithoutWeightsIsRefused) {
  Graph graph = parse_graph("input x: fp32[4]\ny = relu(x)\n", "g");
  EXPECT_ERROR(add_backward(graph), kUnsupported, "nothing to train");
}

/// Names of the weights that an optimizer leaves out.
std::vector<std::string> frozen_after_backward(const std::string& body) {
  Graph graph = parse_graph("graph g\ninput x: fp32[16, 64]\nweight w: fp32[64, 64]\n" + body, "t");
  add_backward(graph);
  std::vector<std::string> names;
  for (const Tensor& tensor : graph.tensors) {
    if (tensor.frozen) names.push_back(tensor.name);
  }
  return names;
}

TEST(Backward, WeightsThatAreReadButGetNoGradientAreFrozen) {
  using Names = std::vector<std::string>;
  EXPECT_EQ(frozen_after_backward("y = linear(x, w)\noutput y\n"), Names{});
  EXPECT_EQ(frozen_after_backward("weight indexer: fp32[64, 64]\nscores = linear(x, indexer)\n"
                                  "y = linear(x, w)\noutput y\n"),
            Names{"indexer"});
  EXPECT_EQ(frozen_after_backward("weight unread: fp32[64, 64]\ny = linear(x, w)\noutput y\n"),
            Names{});
}

TEST(Backward, OnlyTheFirstInputOfKeepGetsAGradient) {
  const char* body =
      "weight v: fp32[64, 64]\nh = linear(x, v)\na = linear(x, w)\n"
      "y = keep(a, h)\noutput y\n";
  EXPECT_EQ(frozen_after_backward(body), std::vector<std::string>{"v"});
}

TEST(Fusion, KeepsFlopsAndSavesTraffic) {
  Graph graph = parse_graph(R"(input x: fp32[1024]
weight b: fp32[1024]
y = add(x, b)
z = gelu(y)
w = mul(z, x)
)",
                            "g");
  const Totals before = totals(graph);
  fuse_pointwise(graph);
  const Totals after = totals(graph);
  EXPECT_EQ(after.launches, 1);
  EXPECT_EQ(before.launches, 3);
  EXPECT_EQ(after.bytes, 4 * 1024 * 3);  // x and b in, w out
  std::vector<Kernel> kernels;
  lower_node(graph, graph.nodes[0], kernels);
  EXPECT_EQ(kernels[0].flops, 1024 * (1 + 5 + 1));
}

TEST(Fusion, WritesWhatIsUsedOutside) {
  Graph graph = parse_graph(R"(input x: fp32[64, 64]
weight v: fp32[64, 64]
y = tanh(x)
z = relu(y)
a = linear(y, v)
b = add(a, z)
)",
                            "g");
  fuse_pointwise(graph);
  ASSERT_EQ(graph.nodes.size(), 3u);
  EXPECT_EQ(graph.nodes[0].outputs.size(), 2u);
}

TEST(Fusion, EndsAChainInTheRowsThatReadIt) {
  Graph graph = parse_graph(R"(input x: fp32[64, 256]
input m: fp32[1, 256]
weight v: fp32[256, 256]
s = div_scalar(x)
t = add(s, m)
p = softmax(t)
y = linear(p, v)
r = add(y, x)
n = layer_norm(r)
z = mul(n, r)
)",
                            "g");
  fuse_pointwise(graph);
  std::vector<std::string> ops;
  for (const Node& node : graph.nodes) ops.emplace_back(op_def(node.op).name);
  EXPECT_EQ(ops, (std::vector<std::string>{"fused_softmax", "linear", "fused_layer_norm", "mul"}));
  std::vector<Kernel> kernels;
  lower_node(graph, graph.nodes[0], kernels);
  EXPECT_EQ(kernels[0].shape, KernelVariant(Rows{64, 256, Rows::Function::kSoftmax}));
  EXPECT_EQ(kernels[0].flops, 64 * 256 * (1 + 1 + 5));
  EXPECT_EQ(kernels[0].bytes(), 4 * (2 * 64 * 256 + 256));  // x and m in, p out
  lower_node(graph, graph.nodes[2], kernels);
  // y and x in; the norm, its statistics and the sum that is read again out.
  EXPECT_EQ(kernels[1].bytes(), 4 * (4 * 64 * 256 + 2 * 64));
}

TEST(OptimizerStep, TrafficFollowsPyTorchsMultiTensorKernels) {
  Graph graph =
      parse_graph("input x: fp32[8, 64]\nweight w: fp32[64, 64]\ny = linear(x, w)\n", "g");
  const int64_t parameters = 64 * 64;
  Graph sgd = graph;
  add_optimizer(sgd, {.optimizer = Optimizer::kSgd});
  EXPECT_EQ(totals(sgd, Phase::kOptimizer).bytes, 12 * parameters);
  add_optimizer(graph, {.optimizer = Optimizer::kAdam});
  EXPECT_EQ(totals(graph, Phase::kOptimizer).bytes, (12 + 8 + 12 + 8 + 8 + 8 + 16) * parameters);
  EXPECT_EQ(memory_by_purpose(graph).optimizer_bytes, 8 * parameters);
}

TEST(OptimizerStep, StatesAndTrafficHaveTheParametersType) {
  // torch.optim: exp_avg = zeros_like(parameter); one launch a step for each type of parameters.
  Graph graph = parse_graph(
      "input x: bf16[8, 64]\nweight w: bf16[64, 64]\nweight v: fp32[32]\ny = linear(x, w)\n", "g");
  add_optimizer(graph, {.optimizer = Optimizer::kAdam});
  EXPECT_EQ(memory_by_purpose(graph).optimizer_bytes, 2 * (2 * 64 * 64 + 4 * 32));
  const Totals step = totals(graph, Phase::kOptimizer);
  EXPECT_EQ(step.launches, 2 * 7);
  EXPECT_EQ(step.bytes, (12 + 8 + 12 + 8 + 8 + 8 + 16) * (64 * 64 / 2 + 32));
}

TEST(OptimizerStep, MainCopiesReadTheGradientsThatTheBackwardPassAddedInFp32) {
  const int64_t parameters = 64 * 64;
  const auto graph_in = [](const std::string& dtype) {
    Graph graph = parse_graph(
        "input x: " + dtype + "[8, 64]\nweight w: " + dtype + "[64, 64]\ny = linear(x, w)\n", "g");
    add_backward(graph);
    return graph;
  };
  for (const bool bf16 : {true, false}) {
    Graph graph = graph_in(bf16 ? "bf16" : "fp16");
    accumulate_in_fp32(graph);
    const int64_t narrow = totals(graph_in("fp16"), Phase::kBackward).bytes;
    // The sum is read and written in fp32 where it was in 16 bits.
    EXPECT_EQ(totals(graph, Phase::kBackward).bytes - narrow, bf16 ? 4 * parameters : 0);
    add_optimizer(graph, {.optimizer = Optimizer::kAdam,
                          .impl = OptimizerImpl::kFused,
                          .main_params = MainParams::kFp32});
    // Four fp32 tensors read, three written; the parameters are converted, fp16 gradients before.
    EXPECT_EQ(totals(graph, Phase::kOptimizer).bytes,
              ((4 + 3) * 4 + (4 + 2) + (bf16 ? 0 : 2 + 4)) * parameters);
    const MemoryByPurpose plan = memory_by_purpose(graph);
    EXPECT_EQ(plan.gradients_bytes, (bf16 ? 4 : 2) * parameters);
    EXPECT_EQ(plan.optimizer_bytes, (bf16 ? 12 : 16) * parameters);
  }
}

TEST(OptimizerStep, ScaledGradientsAreReadAndWrittenOnceMore) {
  Graph graph =
      parse_graph("input x: fp32[8, 64]\nweight w: fp32[64, 64]\ny = linear(x, w)\n", "g");
  add_optimizer(graph, {.optimizer = Optimizer::kSgd, .scaled_gradients = true});
  EXPECT_EQ(totals(graph, Phase::kOptimizer).bytes, (12 + 8) * 64 * 64);
}

TEST(Memory, AChainHoldsTwoTensorsAtOnce) {
  const Graph graph =
      parse_graph("input x: fp32[256]\na = relu(x)\nb = relu(a)\nc = relu(b)\n", "g");
  const MemoryByPurpose plan = memory_by_purpose(graph);
  EXPECT_EQ(plan.activations_bytes, 2 * 1024);
  EXPECT_EQ(plan.inputs_bytes, 1024);
}

TEST(Memory, TrainingKeepsWhatBackwardReads) {
  // y = tanh(x w): backward reads x (input), w and tanh's output.
  Graph graph = parse_graph(R"(input x: fp32[32, 64]
segment layers x5
  weight w: fp32[64, 64]
  h = linear(x, w)
  y = tanh(h)
  carry x -> y
)",
                            "g");
  const int64_t tensor = 4 * 32 * 64;
  EXPECT_EQ(memory_by_purpose(graph).activations_bytes, 2 * tensor);
  add_backward(graph);
  const MemoryByPurpose plan = memory_by_purpose(graph);
  EXPECT_EQ(plan.weights_bytes, 5 * 4 * 64 * 64);
  EXPECT_EQ(plan.gradients_bytes, plan.weights_bytes);
  // Five saved outputs at the turn; then a step of backward holds dy, dh and the temporaries of the
  // last layer on top of them.
  EXPECT_GE(plan.activations_bytes, 5 * tensor + 2 * tensor);
  EXPECT_LE(plan.activations_bytes, 5 * tensor + 2 * tensor + 4 * 64 * 64 + tensor);
}

TEST(Memory, PeakIsAtLeastTheLargestLiveSetOfOneKernel) {
  Graph graph = parse_graph(kModel, "model");
  add_backward(graph);
  int64_t largest = 0;
  for (const Node& node : graph.nodes) {
    // The first gradient of a weight becomes the stored one.
    if (graph.tensor(node.inputs[0]).kind == TensorKind::kGradient) continue;
    int64_t live = 0;
    for (const auto* ids : {&node.inputs, &node.outputs}) {
      for (TensorId id : *ids) {
        const Tensor& tensor = graph.tensor(id);
        if (tensor.kind == TensorKind::kActivation && tensor.storage == id)
          live += tensor_bytes(tensor);
      }
    }
    largest = std::max(largest, live);
  }
  EXPECT_GE(memory_by_purpose(graph).activations_bytes, largest);
}

}  // namespace
}  // namespace tilecast
