// Adapters under tensor parallelism. Their memory: src/memory/memory_test.cc.

#include <gtest/gtest.h>

#include <map>
#include <string>

#include "importers/model.h"
#include "ops/op_def.h"
#include "passes/passes.h"

namespace tilecast {
namespace {

constexpr int64_t kRank = 16;

/// Shapes of the weights of one layer by their names; of adapters all, of other layers the linear
/// ones.
std::map<std::string, Shape> weights_of_a_layer(const Graph& graph) {
  std::map<std::string, Shape> shapes;
  for (const Tensor& tensor : graph.tensors) {
    if (tensor.kind == TensorKind::kWeight && graph.repeat_of(tensor.segment) > 1 &&
        tensor.shape.size() == 2)
      shapes[tensor.name] = tensor.shape;
  }
  return shapes;
}

Shape with_name(const Graph& graph, const std::string& end) {
  for (const auto& [name, shape] : weights_of_a_layer(graph)) {
    if (name.ends_with(end)) return shape;
  }
  ADD_FAILURE() << "no weight '" << end << "'";
  return {};
}

Graph adapted(const std::string& model, int64_t ranks, bool sequence_parallel = false) {
  Graph graph = load_model(model).build({.batch = 1, .seq = 128, .dtype = DType::kBf16});
  add_lora(graph, {.rank = kRank, .targets = {"all-linear"}});
  return shard(graph, {.ranks = ranks, .training = true, .sequence_parallel = sequence_parallel});
}

TEST(LoraShards, AdaptersAreDividedLikeTheirLayers) {
  // [outputs, inputs]: q 4096, k 1024 and ffn 14336 of a hidden dimension of 4096, on 8 ranks.
  for (const bool sequence_parallel : {false, true}) {
    const Graph graph = adapted("llama-3-8b", 8, sequence_parallel);
    EXPECT_EQ(with_name(graph, "q_proj.weight"), (Shape{512, 4096}));
    EXPECT_EQ(with_name(graph, "q_proj.lora_A.weight"), (Shape{kRank, 4096})) << "replicated";
    EXPECT_EQ(with_name(graph, "q_proj.lora_B.weight"), (Shape{512, kRank}));
    EXPECT_EQ(with_name(graph, "k_proj.lora_B.weight"), (Shape{128, kRank}));
    EXPECT_EQ(with_name(graph, "up_proj.lora_B.weight"), (Shape{1792, kRank}));
    EXPECT_EQ(with_name(graph, "o_proj.lora_A.weight"), (Shape{kRank, 512}));
    EXPECT_EQ(with_name(graph, "o_proj.lora_B.weight"), (Shape{4096, kRank})) << "replicated";
    EXPECT_EQ(with_name(graph, "down_proj.lora_A.weight"), (Shape{kRank, 1792}));
  }
}

TEST(LoraShards, WeightsStoredAsInputsByOutputsToo) {
  // Conv1D of GPT-2 stores [inputs, outputs]; c_attn has queries, keys and values in a row.
  const Graph graph = adapted("gpt2_large", 4);
  EXPECT_EQ(with_name(graph, "c_attn.weight"), (Shape{1280, 960}));
  EXPECT_EQ(with_name(graph, "c_attn.lora_A.weight"), (Shape{kRank, 1280}));
  EXPECT_EQ(with_name(graph, "c_attn.lora_B.weight"), (Shape{960, kRank}));
  EXPECT_EQ(with_name(graph, "c_fc.lora_B.weight"), (Shape{1280, kRank}));
  EXPECT_EQ(with_name(graph, "mlp.c_proj.lora_A.weight"), (Shape{kRank, 1280}));
  EXPECT_EQ(with_name(graph, "mlp.c_proj.lora_B.weight"), (Shape{1280, kRank}));
}

TEST(LoraShards, RanksSumWhatARowParallelAdapterComputes) {
  // The result of A and that of the layer are partial sums, of A with `kRank` columns.
  const Graph graph = adapted("llama-3-8b", 2);
  int summed = 0;
  for (const Node& node : graph.nodes) {
    if (op_def(node.op).name != "all_reduce" || !node.name.ends_with("lora_A.all_reduce")) continue;
    EXPECT_EQ(graph.tensor(node.outputs[0]).shape.back(), kRank) << node.name;
    ++summed;
  }
  EXPECT_EQ(summed, 2) << "of o_proj and down_proj, in one layer";
}

}  // namespace
}  // namespace tilecast
