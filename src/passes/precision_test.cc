#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <string_view>

#include "memory/by_purpose.h"
#include "ops/notation.h"
#include "ops/op_def.h"
#include "passes/passes.h"
#include "test_support.h"

namespace tilecast {
namespace {

int64_t count_of(const Graph& graph, std::string_view op, DType dtype) {
  return std::count_if(graph.nodes.begin(), graph.nodes.end(), [&](const Node& node) {
    return op_def(node.op).name == op && graph.tensor(node.outputs[0]).dtype == dtype;
  });
}

TEST(Autocast, ProductsRunNarrowAndMastersStayWide) {
  Graph graph = parse_graph(
      "graph x\ninput x: fp32[4, 128]\nweight w: fp32[256, 128]\nweight v: fp32[128, 256]\n"
      "a = linear(x, w)\nb = gelu(a)\nc = linear(b, v)\nd = add(x, c)\ne = softmax(d)\noutput e\n",
      "test");
  autocast(graph, DType::kBf16);
  EXPECT_EQ(count_of(graph, "linear", DType::kBf16), 2);
  EXPECT_EQ(count_of(graph, "cast", DType::kBf16), 3) << "x and both weights";
  EXPECT_EQ(count_of(graph, "gelu", DType::kBf16), 1);
  EXPECT_EQ(count_of(graph, "add", DType::kFp32), 1) << "the wider of the two";
  EXPECT_EQ(count_of(graph, "softmax", DType::kFp32), 1);
  for (const Tensor& tensor : graph.tensors) {
    if (tensor.kind == TensorKind::kWeight) {
      EXPECT_EQ(tensor.dtype, DType::kFp32);
    }
  }
  add_backward(graph);
  EXPECT_EQ(count_of(graph, "gemm", DType::kBf16), 3) << "no gradient of the input";
  EXPECT_EQ(count_of(graph, "gemm", DType::kFp32), 0);
  for (const Tensor& tensor : graph.tensors) {
    if (tensor.kind == TensorKind::kGradient) {
      EXPECT_EQ(tensor.dtype, DType::kFp32);
    }
  }
}

TEST(Autocast, ConvolutionsRunNarrowAndTheListOfFp32StaysWide) {
  Graph graph = parse_graph(R"(graph x
input x: fp32[2, 16, 8, 8]
weight w: fp32[16, 16, 3, 3]
weight b: fp32[16]
weight g: fp32[16]
c = conv2d(x, w, b) {padding=1}
n = group_norm(c, g, b) {groups=4}
u = upsample(c)
e = exp(c)
l = log(c)
d = add(n, c)
output d
)",
                            "test");
  autocast(graph, DType::kFp16);
  EXPECT_EQ(count_of(graph, "conv2d", DType::kFp16), 1);
  for (const char* wide : {"group_norm", "upsample", "exp", "log"})
    EXPECT_EQ(count_of(graph, wide, DType::kFp32), 1) << wide;
  EXPECT_EQ(count_of(graph, "add", DType::kFp32), 1);
  add_backward(graph);
  EXPECT_EQ(count_of(graph, "conv2d_weight_backward", DType::kFp16), 1);
}

/// Variables of a model live for a layer, variables of a module of embeddings end with it; what a
/// node is called does not matter.
TEST(Decompose, ImportersSayWhichEmbeddingsEndWithTheirModule) {
  const auto held = [](const std::string& attributes) {
    const Graph graph =
        decompose(parse_graph("graph x\ninput i: int64[2, 8]\nweight w: fp32[100, 16]\n"
                              "y = embedding(w, i) " +
                                  attributes + " \"embeddings.word_embeddings\"\noutput y\n",
                              "test"),
                  {});
    return graph.tensor(graph.outputs.at(0)).held;
  };
  EXPECT_EQ(held(""), Held::kLayer);
  EXPECT_EQ(held("{inner=1}"), Held::kNo);
}

TEST(Autocast, JoinedAndChosenTensorsTakeTheWiderType) {
  Graph graph = parse_graph(R"(graph x
input x: fp32[4, 8]
input m: bool[4, 8]
weight w: fp32[8, 8]
a = linear(x, w)
c = cat(a, x) {dim=1}
d = where(m, a, x)
e = where(m, a)
output c
)",
                            "test");
  autocast(graph, DType::kBf16);
  EXPECT_EQ(count_of(graph, "cat", DType::kFp32), 1);
  EXPECT_EQ(count_of(graph, "where", DType::kFp32), 1);
  EXPECT_EQ(count_of(graph, "where", DType::kBf16), 1);
}

TEST(Autocast, CopiesOfWeightsAreMadeOnceAndLiveThroughTheForwardPass) {
  // Under torch.no_grad the second use of a layer finds the copy of the first (PyTorch 2.13: three
  // _to_copy in the first call of a Linear, one in the second).
  Graph graph = parse_graph(R"(graph x
input x: fp32[1, 8]
weight v: fp32[8, 8]
segment layers x5
  weight w: fp32[8, 8]
  y = linear(x, w)
  e = exp(y)
  carry x -> e
segment head x1
  a = linear(e, v)
  z = linear(a, v)
output z
)",
                            "test");
  autocast(graph, DType::kBf16);
  const auto copies = std::count_if(graph.nodes.begin(), graph.nodes.end(), [](const Node& node) {
    return node.name == "w.cast" || node.name == "v.cast";
  });
  EXPECT_EQ(copies, 2);
  const int64_t copy = block_bytes(2 * 8 * 8), row = block_bytes(4 * 8);
  const int64_t plan = memory_by_purpose(graph).activations_bytes;
  EXPECT_GE(plan, 6 * copy + row) << "five layers and the head";
  EXPECT_LE(plan, 6 * copy + 5 * row);
}

TEST(QuantizeLinears, TakesTransposedWeightsAndExpertsToo) {
  Graph graph = parse_graph(R"(graph x
input x: bf16[4, 128]
weight w: bf16[128, 256]
weight up: bf16[8, 64, 256]
weight down: bf16[8, 256, 32]
weight v: bf16[64, 256]
a = linear(x, w) {weight_layout=1}
e = experts(a, up, down) {top_k=2}
b = linear(e, v)
output b
)",
                            "test");
  quantize_linears(graph, [](std::string_view node, Role) {
    return node == "e" ? QuantScheme::kFp4WeightOnly : QuantScheme::kInt8;
  });
  EXPECT_EQ(count_of(graph, "quantized_linear", DType::kBf16), 1);
  const MemoryByPurpose plan = memory_by_purpose(graph);
  const int64_t experts = 8 * (64 * 256 + 256 * 32);
  EXPECT_EQ(plan.weights_bytes,
            scheme_bytes(QuantScheme::kInt8, 128 * 256, DType::kBf16) + 4 +
                scheme_bytes(QuantScheme::kFp4WeightOnly, experts, DType::kBf16) + 2 * 64 * 256);
}

TEST(QuantizeLinears, StoresAllButTheOutputLayer) {
  Graph graph = parse_graph(
      "graph x\ninput x: bf16[4, 128]\nweight w: bf16[256, 128]\nweight v: bf16[64, 256]\n"
      "a = linear(x, w)\nb = linear(a, v)\noutput b\n",
      "test");
  quantize_linears(graph, [](std::string_view, Role) { return QuantScheme::kInt4WeightOnly; });
  EXPECT_EQ(count_of(graph, "quantized_linear", DType::kBf16), 1);
  EXPECT_EQ(count_of(graph, "linear", DType::kBf16), 1);
  int64_t bytes = 0;
  for (const Tensor& tensor : graph.tensors) {
    if (tensor.kind == TensorKind::kWeight || tensor.kind == TensorKind::kBuffer)
      bytes += tensor_bytes(tensor);
  }
  EXPECT_EQ(bytes,
            scheme_bytes(QuantScheme::kInt4WeightOnly, 256 * 128, DType::kBf16) + 64 * 256 * 2);
}

TEST(QuantizeLinears, LeavesAnOutputLayerWhoseLogitsAreScaledOrHeld) {
  for (const char* head : {"b = linear(a, v) {role=output}\ny = mul_scalar(b)\noutput y\n",
                           "b = linear(a, v)\ny = keep(b, a)\noutput y\n"}) {
    Graph graph =
        parse_graph(std::string("graph x\ninput x: bf16[4, 128]\nweight w: bf16[256, 128]\n"
                                "weight v: bf16[64, 256]\na = linear(x, w)\n") +
                        head,
                    "test");
    quantize_linears(graph, [](std::string_view, Role) { return QuantScheme::kFp8WeightOnly; });
    EXPECT_EQ(count_of(graph, "quantized_linear", DType::kBf16), 1) << head;
  }
}

}  // namespace
}  // namespace tilecast
