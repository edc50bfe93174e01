// Kernels of torch.compile: counts and bytes by hand, from Inductor's rules of fusion.

#include <gtest/gtest.h>

#include "ops/notation.h"
#include "ops/op_def.h"
#include "ops/validate.h"
#include "passes/passes.h"

namespace tilecast {
namespace {

struct Compiled {
  std::vector<std::string> ops;
  std::vector<int64_t> bytes;  ///< of each kernel
};

Compiled compiled(const std::string& text) {
  Graph graph = parse_graph(text, "test");
  compile_with_inductor(graph);
  validate(graph);
  Compiled found;
  for (const Node& node : graph.nodes) {
    std::vector<Kernel> kernels;
    lower_node(graph, node, kernels);
    if (kernels.empty()) continue;
    found.ops.emplace_back(op_def(node.op).name);
    found.bytes.push_back(kernels[0].bytes());
  }
  return found;
}

using Ops = std::vector<std::string>;

TEST(Inductor, JoinsBothSidesOfASumWithTheirNorms) {
  // A residual block's end: two convolutions, two norms, their sum and an activation.
  const Compiled found = compiled(R"(input x: fp16[2, 128, 8, 8]
weight v: fp16[128, 128, 1, 1]
weight w: fp16[128, 128, 1, 1]
weight g: fp32[128]
weight b: fp32[128]
buffer m: fp32[128]
buffer s: fp32[128]
y = conv2d(x, v)
n = batch_norm(y, g, b, m, s)
z = conv2d(x, w)
k = batch_norm(z, g, b, m, s)
a = add(n, k)
r = relu(a)
output r
)");
  EXPECT_EQ(found.ops, (Ops{"conv2d", "conv2d", "fused_pointwise"}));
  const int64_t image = 2 * 2 * 128 * 64;
  EXPECT_EQ(found.bytes[2], 3 * image + 4 * 4 * 128);  // two images and the statistics in, one out
}

TEST(Inductor, WritesAChainInPlaceOnce) {
  // b goes where a was: eager PyTorch moves 4 + 4 bytes an element, one kernel 4.
  const Compiled found = compiled(R"(input x: fp16[4096]
weight w: fp16[4096]
a = relu(x)
b = mul(a, w) into a
output b
)");
  EXPECT_EQ(found.ops, (Ops{"fused_pointwise"}));
  EXPECT_EQ(found.bytes[0], 3 * 2 * 4096);  // x and w in, b out
}

TEST(Inductor, LetsNoKernelWaitForItself) {
  // The sum needs the product, which needs the activation: they cannot be one kernel.
  const Compiled found = compiled(R"(input x: fp16[64, 64]
weight w: fp16[64, 64]
a = relu(x)
y = linear(a, w)
s = add(a, y)
output s
)");
  EXPECT_EQ(found.ops, (Ops{"relu", "linear", "add"}));
}

TEST(Inductor, ComputesWhatFollowsANormWithIt) {
  const Compiled found = compiled(R"(input x: fp16[64, 256]
input y: fp16[64, 256]
s = add(x, y)
n = layer_norm(s)
g = gelu(n)
output g
)");
  EXPECT_EQ(found.ops, (Ops{"fused_layer_norm"}));
  EXPECT_EQ(found.bytes[0], 3 * 2 * 64 * 256 + 2 * 4 * 64);  // x, y in, g and the statistics out
}

TEST(Inductor, ReadsAConcatenationAsItsParts) {
  const Compiled found = compiled(R"(input x: fp16[2, 16, 8, 8]
input y: fp16[2, 16, 8, 8]
c = cat(x, y) {dim=1}
r = relu(c)
output r
)");
  EXPECT_EQ(found.ops, (Ops{"fused_pointwise"}));
  EXPECT_EQ(found.bytes[0], 2 * 2 * (2 * 32 * 64));
}

TEST(Inductor, ComputesWhatOneReaderNeedsWhereItIsRead) {
  // The shortcut's norm is ready long before the sum, which alone reads it.
  const Compiled found = compiled(R"(input x: fp16[64, 64]
weight w: fp16[64, 64]
weight v: fp16[64, 64]
s = tanh(x)
y = linear(x, w)
z = linear(y, v)
g = gelu(z)
a = add(g, s)
output a
)");
  EXPECT_EQ(found.ops, (Ops{"linear", "linear", "fused_pointwise"}));
}

TEST(Inductor, WritesNothingThatOnlyAVariableHolds) {
  const Compiled found = compiled(R"(input x: fp32[64, 256]
n = layer_norm(x)
h = cast(n) {dtype=fp16}
k = hold(n)
output h
)");
  EXPECT_EQ(found.ops, (Ops{"fused_layer_norm"}));
  EXPECT_EQ(found.bytes[0], 4 * 64 * 256 + 2 * 64 * 256 + 2 * 4 * 64);
}

TEST(Inductor, SumsWhatItComputes) {
  // The mean of an activation, alone and beside a reader that needs the mean.
  const Compiled alone = compiled(R"(input x: fp16[4, 16, 8, 8]
a = relu(x)
m = reduce_mean(a) {shape=[4, 16, 1, 1]}
output m
)");
  EXPECT_EQ(alone.ops, (Ops{"fused_pointwise"}));
  EXPECT_EQ(alone.bytes[0], 2 * 4 * 16 * (64 + 1));
  const Compiled gated = compiled(R"(input x: fp16[4, 16, 8, 8]
a = relu(x)
m = reduce_mean(a) {shape=[4, 16, 1, 1]}
g = sigmoid(m)
y = mul(a, g)
output y
)");
  EXPECT_EQ(gated.ops, (Ops{"fused_pointwise", "sigmoid", "mul"}));
  EXPECT_EQ(gated.bytes[0], 2 * 4 * 16 * (2 * 64 + 1));
  // What a product made has no group to join.
  const Compiled product = compiled(R"(input x: fp16[64, 64]
weight w: fp16[64, 64]
y = linear(x, w)
m = reduce_sum(y) {shape=[64, 1]}
output m
)");
  EXPECT_EQ(product.ops, (Ops{"linear", "reduce_sum"}));
}

TEST(Inductor, KeepsAViewThatOthersRead) {
  const Compiled found = compiled(R"(input x: fp16[64, 64]
weight w: fp16[64, 64]
a = relu(x)
b = tanh(a)
v = alias(b) {shape=[64, 64], dense=0}
y = gemm(v, w)
output y
)");
  EXPECT_EQ(found.ops, (Ops{"fused_pointwise", "gemm"}));
}

TEST(Inductor, StoresImagesByPixelUnlessGroupsPrevail) {
  const auto layouts = [](const char* groups, const char* weight) {
    Graph graph =
        parse_graph(std::string("input x: fp16[2, 128, 8, 8]\nweight w: fp16[128, ") + weight +
                        ", 3, 3]\ny = conv2d(x, w) {padding=1, groups=" + groups + "}\noutput y\n",
                    "test");
    compile_with_inductor(graph);
    return integer_or(graph.nodes[0], "channels_last", 0);
  };
  EXPECT_EQ(layouts("1", "128"), 1);
  EXPECT_EQ(layouts("4", "32"), 0);
}

TEST(MemoryFormat, IsThatOfConvolutionsAndNormsOfImages) {
  Graph graph = parse_graph(R"(input x: fp16[2, 8, 8, 8]
weight w: fp16[8, 8, 3, 3]
input s: fp16[2, 8, 64]
weight v: fp16[8, 8, 3]
weight a: fp32[8]
weight b: fp32[8]
y = conv2d(x, w) {padding=1, channels_last=1}
z = conv(s, v) {pads=[1]}
n = batch_norm(y, a, b) {training=1}
output n
output z
)",
                            "test");
  EXPECT_EQ(set_memory_format(graph, MemoryFormat::kChannelsFirst), 2);
  EXPECT_EQ(integer_or(graph.nodes[0], "channels_last", -1), 0);
  EXPECT_EQ(integer_or(graph.nodes[1], "channels_last", -1), -1);
  EXPECT_EQ(integer_or(graph.nodes[2], "channels_last", -1), 0);
}

}  // namespace
}  // namespace tilecast
