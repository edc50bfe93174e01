// ONNX files made in memory.

#include <gtest/gtest.h>

#include "importers/model.h"
#include "onnx_graph.h"
#include "ops/builder.h"
#include "ops/validate.h"
#include "passes/passes.h"
#include "test_support.h"

namespace tilecast {
namespace {

using namespace onnx_writer;

const Tensor& result(const Graph& graph) { return graph.tensor(graph.outputs.at(0)); }

Writer linear_layer() {
  Writer w;
  w.input("x", {"batch", 8, 16}).weight("fc.weight", {16, 32}).weight("fc.bias", {32});
  w.node("MatMul", {"x", "fc.weight"}, {"y"}).node("Add", {"y", "fc.bias"}, {"z"}).output("z");
  return w;
}

TEST(Onnx, ALinearLayerIsAProductWithItsBias) {
  const Graph graph = build(linear_layer(), {.batch = 4});
  EXPECT_EQ(ops_of(graph), (Names{"linear", "add"}));
  EXPECT_EQ(result(graph).shape, (Shape{4, 8, 32}));
  EXPECT_EQ(graph.parameter_count(), 16 * 32 + 32);
  EXPECT_EQ(graph.nodes[0].name, "fc");
  const Graph whole = recognize(graph);
  EXPECT_EQ(ops_of(whole), Names{"linear"});
  EXPECT_EQ(whole.nodes[0].inputs.size(), 3u);
  validate(whole);
}

TEST(Onnx, TheRequestDecidesTheDtypeOfFloats) {
  const Graph graph = build(linear_layer(), {.dtype = DType::kBf16});
  EXPECT_EQ(result(graph).dtype, DType::kBf16);
  EXPECT_EQ(graph.tensor(graph.nodes[0].inputs[1]).dtype, DType::kBf16);
}

TEST(Onnx, SymbolicDimensionsAreBoundByName) {
  Writer w;
  w.input("ids", {"batch", "tokens"}, kInt64).weight("wte.weight", {100, 16});
  w.node("Gather", {"wte.weight", "ids"}, {"y"}).output("y");
  EXPECT_ERROR(build(w), kInput,
               "model.onnx: input 'ids': dimension 1 is the symbol 'tokens', which has no size; "
               "give one with `dim` 'tokens=N'");
  const Graph graph = build(w, {.batch = 2, .dims = {{"tokens", 12}}});
  EXPECT_EQ(ops_of(graph), Names{"embedding"});
  EXPECT_EQ(result(graph).shape, (Shape{2, 12, 16}));
  EXPECT_ERROR(build(w, {.dims = {{"token", 12}}}), kInput, "give one with `dim` 'tokens=N'");
  EXPECT_ERROR(build(linear_layer(), {.dims = {{"seq", 12}}}), kInput,
               "`dim` seq: no input has this symbolic dimension; known: batch");
  EXPECT_EQ(result(build(linear_layer(), {.dims = {{"batch", 3}}})).shape[0], 3);
}

TEST(Onnx, FixedShapesRefuseABatch) {
  Writer w;
  w.input("x", {2, 8}).node("Relu", {"x"}, {"y"}).output("y");
  EXPECT_EQ(result(build(w)).shape, (Shape{2, 8}));
  EXPECT_ERROR(build(w, {.batch = 4}), kInput, "the file fixes its shapes; omit `batch`");
}

TEST(Onnx, ShapesAreComputedBeforeTheModelRuns) {
  Writer w;
  w.input("x", {"batch", 6, 4});
  w.initializer(integers("zero", {0})).initializer(integers("rest", {-1}));
  w.initializer(integers("axes", {0})).initializer(integers("two", {2}));
  w.node("Shape", {"x"}, {"s"})
      .node("Gather", {"s", "zero"}, {"b"})
      .node("Mul", {"b", "two"}, {"b2"})
      .node("Concat", {"b2", "rest"}, {"to"}, attribute("axis", 0))
      .node("Reshape", {"x", "to"}, {"y"})
      .node("Relu", {"y"}, {"z"})
      .output("z");
  const Graph graph = build(w, {.batch = 5});
  EXPECT_EQ(ops_of(graph), (Names{"view", "relu"}));
  EXPECT_EQ(result(graph).shape, (Shape{10, 12}));
}

TEST(Onnx, AShapeThatDependsOnDataIsRefused) {
  Writer w;
  w.input("x", {4}).input("s", {2}, kInt64).node("Reshape", {"x", "s"}, {"y"}).output("y");
  EXPECT_ERROR(build(w), kUnsupported,
               "node 'n_y' (Reshape): the shape ('s') is computed from the data");
}

TEST(Onnx, CopiesAreLeftToTheStridesOfTensors) {
  Writer w;
  w.input("x", {2, 8, 16}).initializer(integers("heads", {0, 0, 4, 4}));
  w.initializer(integers("flat", {2, 8, 16}));
  w.node("Reshape", {"x", "heads"}, {"h"})
      .node("Transpose", {"h"}, {"t"}, list_attribute("perm", {0, 2, 1, 3}))
      .node("Reshape", {"t", "flat"}, {"y"})
      .output("y");
  EXPECT_EQ(ops_of(build(w)), (Names{"view", "transpose", "view"}));
}

TEST(Onnx, AConditionThatIsKnownSelectsABranch) {
  const auto branch = [](const std::string& op) {
    Writer b;
    b.node(op, {"x"}, {"r"});
    return b.graph + bytes(12, value_info("r", kFloat, {}));
  };
  Writer w;
  w.input("x", {"batch", 8}).initializer(integers("zero", {0})).initializer(integers("one", {1}));
  w.node("Shape", {"x"}, {"s"})
      .node("Gather", {"s", "zero"}, {"b"})
      .node("Equal", {"b", "one"}, {"c"})
      .node("If", {"c"}, {"y"},
            graph_attribute("then_branch", branch("Relu")) +
                graph_attribute("else_branch", branch("Tanh")))
      .output("y");
  EXPECT_EQ(ops_of(build(w, {.batch = 1})), Names{"relu"});
  EXPECT_EQ(ops_of(build(w, {.batch = 2})), Names{"tanh"});
  Writer data;
  data.input("x", {4}).input("c", {1}, kBool).node("If", {"c"}, {"y"}, "").output("y");
  EXPECT_ERROR(build(data), kUnsupported, "its condition depends on the data");
}

TEST(Onnx, ALoopOfKnownLengthIsWrittenOut) {
  Writer body;
  body.node("Relu", {"state"}, {"next"})
      .node("Identity", {"go"}, {"go_on"})
      .node("Neg", {"next"}, {"scan"});
  body.graph +=
      bytes(11, value_info("i", kInt64, {})) + bytes(11, value_info("go", kBool, {})) +
      bytes(11, value_info("state", kFloat, {})) + bytes(12, value_info("go_on", kBool, {})) +
      bytes(12, value_info("next", kFloat, {})) + bytes(12, value_info("scan", kFloat, {}));
  Writer w;
  w.input("x", {3, 8}).initializer(integers("trips", {3}));
  w.node("Loop", {"trips", "", "x"}, {"y", "all"}, graph_attribute("body", body.graph))
      .node("Add", {"y", "all"}, {"z"})
      .output("z");
  const Graph graph = build(w);
  EXPECT_EQ(ops_of(graph), (Names{"relu", "neg", "relu", "neg", "relu", "neg", "view", "view",
                                  "view", "cat", "add"}));
  EXPECT_EQ(result(graph).shape, (Shape{3, 3, 8}));
}

TEST(Onnx, ConvolutionsOfAnyKind) {
  Writer w;
  w.input("x", {1, 8, 20, 20}).weight("a.weight", {16, 8, 3, 3}).weight("b.weight", {16, 1, 3, 3});
  w.weight("c.weight", {16, 4, 2, 2});
  w.node("Conv", {"x", "a.weight"}, {"a"}, list_attribute("pads", {1, 1, 1, 1}))
      .node("Conv", {"a", "b.weight"}, {"b"},
            attribute("group", 16) + list_attribute("dilations", {2, 2}) +
                list_attribute("strides", {2, 1}))
      .node("ConvTranspose", {"b", "c.weight"}, {"c"},
            list_attribute("strides", {2, 2}) + attribute("group", 2))
      .node("MaxPool", {"c"}, {"d"},
            list_attribute("kernel_shape", {3, 3}) + list_attribute("strides", {2, 2}) +
                attribute("auto_pad", std::string("SAME_UPPER")))
      .node("GlobalAveragePool", {"d"}, {"e"})
      .output("e");
  const Graph graph = build(w);
  EXPECT_EQ(ops_of(graph), (Names{"conv2d", "conv", "conv", "max_pool", "reduce_mean"}));
  EXPECT_EQ(graph.tensor(graph.nodes[1].outputs[0]).shape, (Shape{1, 16, 8, 16}));
  EXPECT_EQ(graph.tensor(graph.nodes[2].outputs[0]).shape, (Shape{1, 8, 16, 32}));
  EXPECT_EQ(graph.tensor(graph.nodes[3].outputs[0]).shape, (Shape{1, 8, 8, 16}));
  EXPECT_EQ(result(graph).shape, (Shape{1, 8, 1, 1}));
}

/// As in PyTorch, which launches its kernel for equal sizes too.
TEST(Onnx, ResizingToTheSameSizeIsAKernel) {
  Writer w;
  w.input("x", {1, 8, 14, 14}).initializer(integers("sizes", {1, 8, 14, 14}));
  w.node("Resize", {"x", "", "", "sizes"}, {"y"}).output("y");
  EXPECT_EQ(ops_of(build(w)), Names{"resize"});
}

TEST(Onnx, EinsumIsAProduct) {
  Writer w;
  w.input("a", {2, 5, 4, 8}).input("b", {2, 7, 4, 8});
  w.node("Einsum", {"a", "b"}, {"y"}, attribute("equation", std::string("bqhd,bkhd->bhqk")))
      .output("y");
  const Graph graph = build(w);
  EXPECT_EQ(result(graph).shape, (Shape{2, 4, 5, 7}));
  std::vector<Kernel> kernels;
  for (const Node& node : graph.nodes) lower_node(graph, node, kernels);
  int64_t flops = 0;
  for (const Kernel& kernel : kernels) flops += kernel.flops;
  EXPECT_EQ(flops, 2 * 2 * 4 * 5 * 7 * 8);
}

TEST(Onnx, ARecurrentLayerHasAProductForEachStep) {
  Writer w;
  w.input("x", {5, 2, 8}).weight("w", {1, 64, 8}).weight("r", {1, 64, 16});
  w.node("LSTM", {"x", "w", "r"}, {"y"}, attribute("hidden_size", 16)).output("y");
  const Graph graph = build(w);
  EXPECT_EQ(ops_of(graph)[0], "recurrent");
  EXPECT_EQ(result(graph).shape, (Shape{5, 1, 2, 16}));
  EXPECT_EQ(graph.parameter_count(), 64 * 8 + 64 * 16);
}

// Files without what is expected.

TEST(Onnx, UnknownOperatorsNameTheNodeAndTheirShare) {
  Writer w;
  w.input("x", {4, 16}).node("Relu", {"x"}, {"a"});
  w.node("Mystery", {"a"}, {"b"}, "", "com.example").node("Tanh", {"b"}, {"y"}).output("y");
  EXPECT_ERROR(build(w), kUnsupported,
               "model.onnx: node 'n_b': the operator 'com.example.Mystery' is not supported; not "
               "supported in all: com.example.Mystery (1): 1 of 3 nodes, which read and write 33.3 "
               "% of the bytes; `skip-unsupported` forecasts the rest");
  EXPECT_EQ(ops_of(build(w, {.skip_unsupported = true})), (Names{"relu", "empty", "tanh"}));
  const Model model = import_model(w.file(), "model.onnx");
  const auto remarks = model.remarks({.skip_unsupported = true});
  ASSERT_EQ(remarks.size(), 1u);
  EXPECT_NE(remarks[0].find("33.3 % of the bytes"), std::string::npos) << remarks[0];
}

TEST(Onnx, ACycleIsFound) {
  Writer w;
  w.input("x", {4}).node("Add", {"x", "c"}, {"a"}).node("Relu", {"a"}, {"b"});
  w.node("Tanh", {"b"}, {"c"}).output("c");
  EXPECT_ERROR(build(w), kInput,
               "the nodes form a cycle: 'n_a' reads from 'n_c' reads from 'n_b' reads from 'n_a'");
  Writer unsorted;
  unsorted.input("x", {4}).node("Relu", {"a"}, {"y"}).node("Tanh", {"x"}, {"a"}).output("y");
  EXPECT_ERROR(build(unsorted), kInput, "a later node computes; expected sorted nodes");
  Writer open;
  open.input("x", {4}).node("Relu", {"z"}, {"y"}).output("y");
  EXPECT_ERROR(build(open), kInput,
               "node 'n_y' (Relu) reads 'z', which no node, input or initializer defines");
}

TEST(Onnx, EveryPlaceMayBeTheEnd) {
  const std::string file = linear_layer().file();
  for (size_t length = 0; length < file.size(); ++length) {
    try {
      import_model(file.substr(0, length), "model.onnx").build({.batch = 4});
    } catch (const Error& error) {
      EXPECT_NE(static_cast<int>(error.kind()), static_cast<int>(ErrorKind::kInternal))
          << length << ": " << error.what();
    }
  }
  EXPECT_ERROR(import_model(file.substr(0, file.size() - 20), "model.onnx"), kInput,
               "expected a whole ONNX file; is the download complete?");
}

TEST(Onnx, OtherOperatorSetsAreRefused) {
  Writer w = linear_layer();
  w.opset = 24;
  EXPECT_ERROR(build(w), kUnsupported,
               "model.onnx: operator set 24; expected 11 to 23; export the model with an older "
               "`opset_version`");
  w.opset = 9;
  EXPECT_ERROR(build(w), kUnsupported, "operator set 9; expected 11 to 23; export the model again");
}

TEST(Onnx, AbsurdSizesAndTypesAreRefused) {
  Writer w;
  w.input("x", {4, int64_t{1} << 62}).node("Relu", {"x"}, {"y"}).output("y");
  EXPECT_ERROR(build(w), kInput, "64 bits");
  Writer negative;
  negative.initializer(tensor("w", {-4}, kFloat)).output("w");
  EXPECT_ERROR(build(negative), kInput, "tensor 'w' has a dimension of -4; expected 0 or more");
  Writer huge;
  huge.weight("w", {int64_t{1} << 40, int64_t{1} << 40}).output("w");
  EXPECT_ERROR(build(huge), kInput, "the number of elements does not fit in 64 bits");
  Writer type;
  type.input("x", {4}, kText).node("Relu", {"x"}, {"y"}).output("y");
  EXPECT_ERROR(build(type), kUnsupported,
               "'x' has data type 8 (text); expected numbers of 4 to 64 bits");
  Writer twice;
  twice.input("x", {4}).node("Relu", {"x"}, {"y"}).node("Tanh", {"x"}, {"y"}).output("y");
  EXPECT_ERROR(build(twice), kInput, "its output 'y' is already the output of another node");
  Writer shapes;
  shapes.input("x", {4, 3}).input("y", {4, 5}).node("Add", {"x", "y"}, {"z"}).output("z");
  EXPECT_ERROR(build(shapes), kInput,
               "model.onnx: node 'n_z' (Add): node 'n_z' (add): shapes do not broadcast");
}

TEST(Onnx, WeightsInAnotherFileAreNotNeeded) {
  Writer w;
  w.input("x", {1, 4096}).initializer(external("a.weight", {4096, 65536}, 0));
  w.initializer(external("b.weight", {65536, 4096}, 1 << 30));
  w.node("MatMul", {"x", "a.weight"}, {"h"}).node("MatMul", {"h", "b.weight"}, {"y"}).output("y");
  EXPECT_EQ(build(w).parameter_count(), int64_t{2} * 4096 * 65536);
}

TEST(Onnx, TiedWeightsCountOnce) {
  // The same elements at the same place, and the transpose of a matrix that is in the file.
  Writer w;
  w.input("ids", {1, 4}, kInt64);
  constexpr int64_t kRows = 128, kColumns = 160;
  std::string table, transposed(kRows * kColumns * sizeof(float), '\0');
  for (int64_t i = 0; i < kRows * kColumns; ++i) {
    const auto value = static_cast<float>(i);
    table.append(reinterpret_cast<const char*>(&value), sizeof(value));
    const int64_t at = i % kColumns * kRows + i / kColumns;
    std::memcpy(transposed.data() + at * static_cast<int64_t>(sizeof(value)), &value,
                sizeof(value));
  }
  w.initializer(tensor("wte.weight", {kRows, kColumns}, kFloat, table));
  w.initializer(tensor("onnx::MatMul_9", {kColumns, kRows}, kFloat, transposed));
  w.node("Gather", {"wte.weight", "ids"}, {"h"})
      .node("MatMul", {"h", "onnx::MatMul_9"}, {"y"})
      .output("y");
  EXPECT_EQ(build(w).parameter_count(), kRows * kColumns);
}

}  // namespace
}  // namespace tilecast
