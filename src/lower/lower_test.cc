#include <gtest/gtest.h>

#include "lower/program.h"
#include "ops/builder.h"

namespace tilecast {
namespace {

/// Three layers of two alike additions, then a product: forward only.
Graph layered() {
  Graph graph;
  GraphBuilder b(graph);
  const TensorId x = b.input("x", {8, 16}, DType::kFp32);
  b.begin_segment("layers", 3);
  const TensorId y = b.op("add", {x, x}, "first");
  const TensorId z = b.op("add", {y, y}, "second");
  b.carry(x, z);
  b.begin_segment("head", 1);
  const TensorId w = b.weight("w", {16, 4}, DType::kFp32);
  b.op("matmul", {z, w}, "product");
  return graph;
}

TEST(LowerTest, AlikeKernelsAreHeldOnceAndRepetitionsStayFolded) {
  const Graph graph = layered();
  const Program program = lower(graph);
  ASSERT_EQ(program.launches.size(), 3u);
  EXPECT_EQ(program.kernels.size(), 2u);
  ASSERT_EQ(program.blocks.size(), 2u);
  EXPECT_EQ(program.blocks[0].launch_count, 2u);
  EXPECT_EQ(program.blocks[0].repeat, 3);
  EXPECT_EQ(program.blocks[1].first_launch, 2u);
  EXPECT_EQ(program.count(program.launches[1]), 3);
  EXPECT_EQ(program.launches[1].node->name, "second");
  EXPECT_EQ(program.kernel_counts(), (std::vector<double>{6, 1}));
}

TEST(LowerTest, APhaseBeginsABlockOfItsOwn) {
  Graph graph = layered();
  graph.nodes[1].phase = Phase::kBackward;
  const Program program = lower(graph);
  ASSERT_EQ(program.blocks.size(), 3u);
  EXPECT_EQ(program.blocks[0].phase, Phase::kForward);
  EXPECT_EQ(program.blocks[1].phase, Phase::kBackward);
  EXPECT_EQ(program.blocks[1].repeat, 3);
}

}  // namespace
}  // namespace tilecast
