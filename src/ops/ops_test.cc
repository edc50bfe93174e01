#include <fmt/format.h>
#include <gtest/gtest.h>

#include <set>
#include <vector>

#include "base/rng.h"
#include "ops/builder.h"
#include "ops/gradient.h"
#include "ops/notation.h"
#include "ops/op_def.h"
#include "ops/sizes.h"
#include "test_support.h"

namespace tilecast {
namespace {

/// The example of a table entry as a graph: declarations, one node, attributes.
Graph example_graph(const OpDef& op) {
  std::string text = "graph example\n";
  std::string inputs;
  std::string rest(op.example);
  std::string attributes;
  if (const size_t brace = rest.find('{'); brace != std::string::npos) {
    attributes = rest.substr(brace);
    rest = rest.substr(0, brace);
  }
  size_t at = 0;
  while ((at = rest.find(':', at)) != std::string::npos) {
    const size_t name = rest.find_last_of(' ', at);
    const size_t start = name == std::string::npos ? 0 : name + 1;
    const size_t end = rest.find(']', at) + 1;
    text += "input " + rest.substr(start, end - start) + "\n";
    inputs += (inputs.empty() ? "" : ", ") + rest.substr(start, at - start);
    at = end;
  }
  text += fmt::format("out = {}({}) {}\n", op.name, inputs, attributes);
  return parse_graph(text, std::string(op.name));
}

class EveryOp : public testing::TestWithParam<size_t> {};

TEST_P(EveryOp, HasAnExampleThatBuildsAndWorkThatAddsUp) {
  const OpDef& op = op_table()[GetParam()];
  SCOPED_TRACE(op.name);
  EXPECT_FALSE(op.doc.empty());
  const Graph graph = example_graph(op);
  std::vector<Kernel> kernels;
  if (op.decompose != nullptr && op.work == nullptr) {
    EXPECT_ERROR(lower_node(graph, graph.nodes.front(), kernels), kInput,
                 "a module has no kernels until it is decomposed or fused");
    return;
  }
  lower_node(graph, graph.nodes.front(), kernels);
  EXPECT_EQ(kernels.empty(), op.work == nullptr);
  for (const Kernel& kernel : kernels) {
    EXPECT_GE(kernel.flops, 0);
    EXPECT_GT(kernel.write_bytes, 0);
    EXPECT_EQ(op_def(kernel.op).name, op.name);
  }
}

TEST(Images, AreAsWideAsHighWhereNoWidthIsGiven) {
  size_t ops = 0;
  for (const OpDef& op : op_table()) {
    const SizeDef* width = find_size(op, "width");
    if (width == nullptr || find_size(op, "height") == nullptr) continue;
    SCOPED_TRACE(op.name);
    ++ops;
    EXPECT_EQ(width->default_rule, "as height");
    const SizeList high = {{"height", 16}}, both = {{"height", 16}, {"width", 16}};
    EXPECT_EQ(kernels_of_sizes(op.name, DType::kFp32, high).front().read_bytes,
              kernels_of_sizes(op.name, DType::kFp32, both).front().read_bytes);
  }
  EXPECT_GE(ops, 5u);
}

TEST_P(EveryOp, GivesTheSameWhenItIsDecomposed) {
  const OpDef& op = op_table()[GetParam()];
  if (op.decompose == nullptr) return;  // what PyTorch launches itself
  SCOPED_TRACE(op.name);
  for (const bool fused : {false, true}) {
    Graph graph = example_graph(op);
    GraphBuilder b(graph);
    const Node node = graph.nodes.front();
    const std::vector<TensorId> outputs =
        op.decompose(b, node, {.fused_attention = fused, .training = true});
    ASSERT_EQ(outputs.size(), node.outputs.size());
    for (size_t i = 0; i < outputs.size(); ++i) {
      if (outputs[i] < 0) continue;  // not needed in this form
      EXPECT_EQ(graph.tensor(outputs[i]).shape, graph.tensor(node.outputs[i]).shape);
      EXPECT_EQ(graph.tensor(outputs[i]).dtype, graph.tensor(node.outputs[i]).dtype);
    }
  }
}

TEST_P(EveryOp, GivesEveryTrainedInputAGradientOfItsShape) {
  const OpDef& op = op_table()[GetParam()];
  if (op.backward == nullptr) return;          // passes no gradient
  if (op.backward == refuse_gradient) return;  // serves inference only
  if (op.updates_in_backward) return;          // tables have no gradients
  SCOPED_TRACE(op.name);
  Graph graph = example_graph(op);
  for (Tensor& tensor : graph.tensors) {
    if (tensor.kind == TensorKind::kInput && tensor.dtype == DType::kFp32)
      tensor.kind = TensorKind::kWeight;
  }
  GradientBuilder g(graph);
  g.mark_requires_grad();
  g.builder().begin_segment("backward", 1);
  const Node node = graph.nodes.front();
  for (TensorId id : node.outputs) {
    const Tensor output = graph.tensor(id);
    g.set_gradient(id, g.builder().input("dy", output.shape, output.dtype));
  }
  op.backward(g, node);
  std::multiset<std::string> accumulated;
  for (const Tensor& tensor : graph.tensors) {
    if (tensor.kind == TensorKind::kGradient) accumulated.insert(tensor.name);
  }
  for (TensorId id : node.inputs) {
    const Tensor& tensor = graph.tensor(id);
    if (tensor.kind == TensorKind::kWeight) {
      EXPECT_EQ(accumulated.count(tensor.name + ".grad"), 1u) << tensor.name;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Table, EveryOp, testing::Range<size_t>(0, op_table().size()),
                         [](const auto& info) { return std::string(op_table()[info.param].name); });

TEST(OpTable, NamesAreUnique) {
  std::set<std::string_view> names;
  for (const OpDef& op : op_table()) EXPECT_TRUE(names.insert(op.name).second) << op.name;
}

TEST(SizesTest, KernelsFollowFromThem) {
  const auto kernels =
      kernels_of_sizes("matmul", DType::kFp32, {{"batch", 8}, {"m", 128}, {"n", 64}, {"k", 32}});
  EXPECT_EQ(kernels[0].flops, int64_t{2} * 8 * 128 * 64 * 32);
  EXPECT_EQ(kernels_of_sizes("linear", DType::kFp32, {{"batch", 3}, {"m", 5}}),
            kernels_of_sizes("linear", DType::kFp32, {{"m", 15}}));
  EXPECT_ERROR(kernels_of_sizes("matmull", DType::kFp32, {}), kNotFound, "did you mean 'matmul'");
  EXPECT_ERROR(kernels_of_sizes("view", DType::kFp32, {}), kUnsupported, "launches no kernel");
}

TEST(SizesTest, ErrorsNameOperatorAndSize) {
  const auto linear = [](const SizeList& sizes) {
    return kernels_of_sizes("linear", DType::kFp32, sizes);
  };
  EXPECT_ERROR(linear({{"m", 0}}), kInput, "linear: m must be at least 1, found 0");
  EXPECT_ERROR(linear({{"m", int64_t{1} << 41}}), kInput, "m must be at most 1099511627776");
  EXPECT_ERROR(linear({{"heads", 9}}), kInput, "linear takes no heads; it takes batch, m, n, k");
  EXPECT_ERROR(linear({{"m", 1}, {"m", 2}}), kInput, "linear: m is given twice");
  EXPECT_ERROR(linear({{"m", DType::kBf16}}), kInput,
               "linear: m: expected a whole number, found bf16");
  EXPECT_ERROR(kernels_of_sizes("quantized_linear", DType::kBf16, {}), kInput,
               "quantized_linear: scheme is needed: fp8, fp8_block");
}

TEST(SizesTest, OldNamesAreRead) {
  EXPECT_EQ(kernels_of_sizes("experts", DType::kBf16,
                             {{"m", 64}, {"n", 128}, {"k", 256}, {"experts", 16}, {"chosen", 4}}),
            kernels_of_sizes("experts", DType::kBf16,
                             {{"tokens", 64},
                              {"ffn_dim", 128},
                              {"hidden_dim", 256},
                              {"num_experts", 16},
                              {"top_k", 4}}));
}

TEST(SizesTest, EveryOperatorThatLaunchesHasAKernelByThem) {
  for (const OpDef& op : op_table()) {
    EXPECT_EQ(op.sizes.empty(), op.work == nullptr) << op.name;
    if (op.work == nullptr) continue;
    SizeList sizes;
    std::set<std::string_view> names;
    for (const SizeDef& size : op.sizes) {
      EXPECT_FALSE(size.doc.empty()) << op.name << " " << size.name;
      EXPECT_TRUE(names.insert(size.name).second) << op.name << " " << size.name;
      for (const std::string_view other : size.other_names)
        EXPECT_TRUE(names.insert(other).second) << op.name << " " << other;
      if (size.type == AttributeType::kScheme)
        sizes.push_back({std::string(size.name), QuantScheme::kInt4WeightOnly});
    }
    EXPECT_NO_THROW(kernels_of_sizes(op.name, DType::kFp32, sizes)) << op.name;
  }
}

TEST(SizesTest, RandomOnesFitEachOtherAndSoDoGrownOnes) {
  Rng rng(1);
  for (const OpDef& op : op_table()) {
    if (!op.random_sizes) continue;
    for (int i = 0; i < 100; ++i) {
      const SizeList sizes = draw_sizes(op, rng);
      EXPECT_NO_THROW(kernels_of_sizes(op.name, DType::kBf16, sizes)) << op.name;
      for (const SizeDef& size : op.sizes) {
        if (!size.grows) continue;
        SizeList grown = sizes;
        integer_in(grown, size.name) *= 2;
        if (op.random_sizes->fit != nullptr) op.random_sizes->fit(grown);
        EXPECT_NO_THROW(kernels_of_sizes(op.name, DType::kBf16, grown)) << op.name;
      }
    }
  }
}

TEST(SizesTest, BytesBeyond64BitsAreRefused) {
  // Reads and writes fit one by one, their sum does not.
  EXPECT_ERROR(kernels_of_sizes("sin", DType::kInt8,
                                {{"rows", int64_t{1} << 31}, {"columns", int64_t{1} << 31}}),
               kInput, "does not fit in 64 bits");
}

}  // namespace
}  // namespace tilecast
