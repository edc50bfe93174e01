// Where eager PyTorch copies. The expected kernels were read from traces of torch 2.13 under fake
// tensors.

#include <gtest/gtest.h>

#include "ops/notation.h"
#include "ops/op_def.h"
#include "ops/validate.h"
#include "passes/passes.h"

namespace tilecast {
namespace {

using Names = std::vector<std::string>;

/// The operators that launch kernels.
Names kernels(const std::string& text) {
  const Graph graph = place_copies(parse_graph(text, "test"), {});
  validate(graph);
  Names names;
  for (const Node& node : graph.nodes) {
    if (op_def(node.op).work != nullptr) names.emplace_back(op_def(node.op).name);
  }
  return names;
}

TEST(PlaceCopies, OnlyAReshapeThatIsNoViewCopies) {
  EXPECT_EQ(kernels("input x: fp32[2, 8, 4, 16]\nt = transpose(x) {order=[0, 2, 1, 3]}\n"
                    "y = view(t) {shape=[2, 4, 128]}\noutput y\n"),
            Names{"copy"});
  // Fused attention writes [b, s, h, d]; the exporter's transposition is undone by the model's.
  EXPECT_EQ(kernels("input x: fp32[2, 8, 64]\nh = view(x) {shape=[2, 8, 4, 16]}\n"
                    "t = transpose(h) {order=[0, 2, 1, 3]}\n"
                    "u = transpose(t) {order=[0, 2, 1, 3]}\n"
                    "y = view(u) {shape=[2, 8, 64]}\nz = relu(y)\noutput z\n"),
            Names{"relu"});
  EXPECT_EQ(kernels("input x: fp32[2, 64, 7, 7]\ny = view(x) {shape=[2, 64, 49]}\n"
                    "t = transpose(y) {order=[0, 2, 1]}\nu = view(t) {shape=[2, 7, 7, 64]}\n"
                    "z = relu(u)\noutput z\n"),
            Names{"relu"})
      << "a dimension is divided";
}

TEST(PlaceCopies, BatchedProductsTakeTransposedMatrices) {
  const Graph graph =
      place_copies(parse_graph("input x: fp32[6, 8, 16]\ninput y: fp32[6, 10, 16]\n"
                               "t = transpose(y) {order=[0, 2, 1]}\nz = matmul(x, t)\noutput z\n",
                               "test"),
                   {});
  EXPECT_EQ(attribute<int64_t>(graph.nodes.back(), "transpose_b"), 1);
  // Heads are no single dimension of the batch.
  EXPECT_EQ(kernels("input x: fp32[2, 8, 4, 16]\ninput y: fp32[2, 8, 4, 16]\n"
                    "q = transpose(x) {order=[0, 2, 1, 3]}\nk = transpose(y) {order=[0, 2, 3, 1]}\n"
                    "z = matmul(q, k)\noutput z\n"),
            (Names{"copy", "copy", "matmul"}));
}

TEST(PlaceCopies, ALinearLayerOfStridedRowsAddsItsBiasInAKernel) {
  const std::string head =
      "input x: fp32[2, 64, 49]\nweight w: fp32[32, 64]\nweight b: fp32[32]\n"
      "t = transpose(x) {order=[0, 2, 1]}\n";
  EXPECT_EQ(kernels(head + "y = linear(t, w, b)\noutput y\n"), (Names{"copy", "linear", "add"}));
  EXPECT_EQ(kernels(head + "y = linear(t, w)\noutput y\n"), (Names{"copy", "linear"}));
  EXPECT_EQ(kernels("input x: fp32[2, 64, 49]\nweight w: fp32[32, 49]\nweight b: fp32[32]\n"
                    "y = linear(x, w, b)\noutput y\n"),
            Names{"linear"});
}

TEST(PlaceCopies, PointwiseKernelsKeepTheLayoutAndNormsReadRows) {
  const std::string head =
      "input x: fp32[2, 64, 49]\nweight w: fp32[64]\nweight b: fp32[64]\n"
      "t = transpose(x) {order=[0, 2, 1]}\nr = relu(t)\n";
  EXPECT_EQ(kernels(head + "y = layer_norm(r, w, b)\noutput y\n"),
            (Names{"relu", "copy", "layer_norm"}));
  EXPECT_EQ(kernels(head + "u = transpose(r) {order=[0, 2, 1]}\n"
                           "y = view(u) {shape=[2, 64, 7, 7]}\nz = relu(y)\noutput z\n"),
            (Names{"relu", "relu"}));
  EXPECT_EQ(kernels(head + "d = copy(r)\ne = copy(d)\noutput e\n"), (Names{"relu", "copy"}))
      << "what is dense is not copied again";
}

TEST(PlaceCopies, ConvolutionsKeepTheChannelsLast) {
  const std::string head =
      "input x: fp32[2, 7, 7, 64]\nweight w: fp32[32, 64, 3, 3]\n"
      "t = transpose(x) {order=[0, 3, 1, 2]}\n";
  EXPECT_EQ(kernels(head + "y = conv2d(t, w)\nu = transpose(y) {order=[0, 2, 3, 1]}\n"
                           "v = view(u) {shape=[50, 32]}\nz = relu(v)\noutput z\n"),
            (Names{"conv2d", "relu"}));
  EXPECT_EQ(kernels("input x: fp32[2, 64, 7, 7]\nweight w: fp32[32, 64, 3, 3]\n"
                    "y = conv2d(x, w)\nu = transpose(y) {order=[0, 2, 3, 1]}\n"
                    "v = view(u) {shape=[50, 32]}\nz = relu(v)\noutput z\n"),
            (Names{"conv2d", "copy", "relu"}));
}

TEST(PlaceCopies, GroupNormsOfPartsAndOfChannelsLastTakeACopy) {
  const std::string head = "weight w: fp32[32]\nweight b: fp32[32]\n";
  EXPECT_EQ(kernels("input x: fp32[2, 64, 7, 7]\n" + head +
                    "p, q = split(x) {parts=2, dim=1}\ny = group_norm(p, w, b) {groups=1}\n"
                    "output y\n"),
            (Names{"copy", "group_norm"}));
  EXPECT_EQ(kernels("input x: fp32[2, 7, 7, 32]\n" + head +
                    "t = transpose(x) {order=[0, 3, 1, 2]}\ny = group_norm(t, w, b) {groups=4}\n"
                    "output y\n"),
            (Names{"copy", "group_norm"}));
}

TEST(Decompose, FusedAttentionPadsAMaskThatIsNotAligned) {
  const auto ops = [](int64_t keys) {
    const std::string n = std::to_string(keys);
    const std::string kv = ": fp32[2, 4, " + n + ", 32]\n";
    Names names;
    const Graph graph = decompose(
        parse_graph("input q: fp32[2, 4, 8, 32]\ninput k" + kv + "input v" + kv +
                        "input m: fp32[1, 4, 8, " + n + "]\ny = sdpa(q, k, v, m)\n" + "output y\n",
                    "test"),
        {.fused_attention = true});
    for (const Node& node : graph.nodes) {
      if (op_def(node.op).work != nullptr) names.emplace_back(op_def(node.op).name);
    }
    return names;
  };
  EXPECT_EQ(ops(32), Names{"attention"});
  EXPECT_EQ(ops(49), (Names{"pad", "attention"}));
}

}  // namespace
}  // namespace tilecast
