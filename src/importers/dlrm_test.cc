#include <gtest/gtest.h>

#include <algorithm>

#include "importers/model.h"
#include "lower/program.h"
#include "memory/by_purpose.h"
#include "ops/op_def.h"
#include "passes/passes.h"
#include "test_support.h"

namespace tilecast {
namespace {

constexpr const char* kSmall = R"({
 "model_type": "dlrm", "dense_features": 4, "bottom_mlp": [16, 8], "top_mlp": [10, 1],
 "interaction": "dot", "embedding_dim": 8,
 "tables": [{"name": "a", "rows": 100, "pooling": 2}, {"name": "b", "rows": 50}]})";

std::string with(std::string text, const std::string& from, const std::string& to) {
  return text.replace(text.find(from), from.size(), to);
}

int64_t count_ops(const Graph& graph, const char* op) {
  return std::count_if(graph.nodes.begin(), graph.nodes.end(),
                       [&](const Node& node) { return op_def(node.op).name == op; });
}

TEST(DlrmConfig, BuildsMlpsTablesAndInteraction) {
  const Model model = import_model(kSmall, "small.json");
  EXPECT_EQ(model.family, "dlrm");
  const Graph graph = model.build({.batch = 6});
  // Bottom 4·16+16 + 16·8+8; top: 8 + 3 products of pairs, 11·10+10 + 10+1; tables.
  EXPECT_EQ(graph.parameter_count(), 80 + 136 + 120 + 11 + 800 + 400);
  EXPECT_EQ(graph.tensor(graph.outputs.front()).shape, (Shape{6, 1}));
  EXPECT_EQ(count_ops(graph, "embedding_bags"), 1);
  EXPECT_EQ(count_ops(graph, "linear"), 4);
  EXPECT_EQ(count_ops(graph, "matmul"), 1);
}

TEST(DlrmConfig, TablesAreUpdatedInTheBackwardPassWithoutGradients) {
  Graph graph = import_model(kSmall, "small.json").build({.batch = 6});
  const MemoryByPurpose inference = memory_by_purpose(graph);
  add_backward(graph, Checkpointing::kNone);
  EXPECT_EQ(count_ops(graph, "embedding_bags_backward"), 1);
  const MemoryByPurpose training = memory_by_purpose(graph);
  EXPECT_EQ(training.weights_bytes, inference.weights_bytes);
  // One fp32 state per row; gradients of MLPs alone, in blocks of 512 bytes.
  EXPECT_EQ(training.optimizer_bytes, 4 * 150);
  EXPECT_LT(training.gradients_bytes, 4 * 512 + 4 * 512);
  EXPECT_GT(training.gradients_bytes, 0);
  const Program program = lower(graph);
  const auto is_bag = [](const Kernel& kernel) { return kernel.is<EmbeddingBag>(); };
  EXPECT_EQ(std::count_if(program.kernels.begin(), program.kernels.end(), is_bag), 3);
}

TEST(DlrmConfig, RanksReceiveTheSumsOfOtherRanks) {
  const Model model = import_model(kSmall, "small.json");
  ASSERT_TRUE(model.recommendation);
  Graph graph = model.recommendation->build_dense({.batch = 6});
  EXPECT_EQ(count_ops(graph, "embedding_bags"), 0);
  EXPECT_EQ(graph.parameter_count(), 80 + 136 + 120 + 11);
  add_backward(graph, Checkpointing::kNone);
  EXPECT_EQ(count_ops(graph, "embedding_bags_backward"), 0);
}

TEST(DlrmConfig, CrossLayersAreOfLowRank) {
  const Model model = import_model(
      with(kSmall, R"("dot")", R"("dcn", "cross_layers": 2, "cross_rank": 5)"), "small.json");
  const Graph graph = model.build({.batch = 6});
  // Vectors of 24: V 5·24, W 24·5 + 24, twice; the top MLP gets 24.
  EXPECT_EQ(graph.parameter_count(), 80 + 136 + 2 * (120 + 144) + 24 * 10 + 10 + 11 + 1200);
}

TEST(DlrmConfig, MlperfsModelHasItsPublishedSize) {
  const Model model = load_model("dlrm_mlperf");
  ASSERT_TRUE(model.recommendation);
  int64_t rows = 0;
  double pooling = 0;
  for (const EmbeddingTable& table : model.recommendation->tables.tables) {
    rows += table.rows;
    pooling += table.pooling;
  }
  EXPECT_EQ(rows, 204'184'588);  // MLCommons: 26 tables of the Criteo data, at most 40 M rows
  EXPECT_EQ(pooling, 214);       // ids of a sample
}

TEST(DlrmConfig, SaysWhatIsWrong) {
  EXPECT_ERROR(import_model(with(kSmall, R"("dot")", R"("fm")"), "d.json"), kInput,
               "d.json: 'interaction': expected dot, cat, dcn, found 'fm'");
  EXPECT_ERROR(import_model(with(kSmall, "[16, 8]", "[16, 9]"), "d.json"), kInput,
               "the bottom MLP ends in 9, table 'a' has dim 8");
  EXPECT_ERROR(import_model(with(kSmall, R"("dense_features": 4, )", ""), "d.json"), kInput,
               "dense_features");
  EXPECT_ERROR(import_model(with(kSmall, "[10, 1]", "[]"), "d.json"), kInput,
               "expected a list of layer widths");
  EXPECT_ERROR(import_model(with(kSmall, R"("dot")", R"("dot", "colour": 1)"), "d.json"), kInput,
               "colour");
}

}  // namespace
}  // namespace tilecast
