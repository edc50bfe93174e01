// Optimizers beside those of passes_test.cc, and the loss that computes the output layer.

#include <gtest/gtest.h>

#include <map>
#include <string>

#include "memory/by_purpose.h"
#include "memory/peak.h"
#include "ops/notation.h"
#include "ops/op_def.h"
#include "passes/passes.h"
#include "test_support.h"

namespace tilecast {
namespace {

constexpr int64_t kWide = 256, kNarrow = 64, kWords = 512, kBlocks = 3;

/// An embedding, layers of two matrices with a bias, and an output layer.
std::string model_in(const std::string& dtype) {
  std::string text = R"(graph model
input ids: int64[8]
weight e: T[512, 64]
weight o: T[512, 64]
x = embedding(e, ids)
segment layers x3
  weight w1: T[256, 64]
  weight b1: T[256]
  weight w2: T[64, 256]
  h = linear(x, w1, b1)
  a = gelu(h)
  y = linear(a, w2)
  r = add(y, x)
  carry x -> r
segment head x1
  z = linear(r, o)
output z
)";
  for (size_t at = 0; (at = text.find(" T[", at)) != std::string::npos;)
    text.replace(at + 1, 1, dtype);
  return text;
}

Graph stepped(const std::string& dtype, const OptimizerStep& step) {
  Graph graph = parse_graph(model_in(dtype), "model");
  mark_hidden_matrices(graph);
  add_backward(graph);
  add_optimizer(graph, step);
  return graph;
}

struct StepWork {
  int64_t launches = 0, product_flops = 0, waits = 0;
  std::map<std::string, int64_t> ops;
};

StepWork work_of_step(const Graph& graph) {
  StepWork work;
  for (const Segment& segment : graph.segments) {
    for (int32_t i = 0; i < segment.node_count; ++i) {
      const Node& node = graph.nodes[static_cast<size_t>(segment.first_node + i)];
      if (node.phase != Phase::kOptimizer) continue;
      std::vector<Kernel> kernels;
      lower_node(graph, node, kernels);
      for (const Kernel& kernel : kernels) {
        work.launches += segment.repeat;
        if (kernel.is_product()) work.product_flops += kernel.flops * segment.repeat;
        if (kernel.host.waits) work.waits += segment.repeat;
        work.ops[std::string(op_def(node.op).name)] += segment.repeat;
      }
    }
  }
  return work;
}

constexpr int64_t kMatrices = 2 * kBlocks, kMatrix = kWide * kNarrow;
constexpr int64_t kRest = 2 * kWords * kNarrow + kBlocks * kWide;  // embeddings, output, biases
constexpr int64_t kAll = kMatrices * kMatrix + kRest;

TEST(Muon, MovesSingularValuesOfTheMatricesOfLayers) {
  const Graph graph =
      stepped("fp32", {.optimizer = Optimizer::kMuon, .impl = OptimizerImpl::kFused});
  const StepWork work = work_of_step(graph);
  // Of the smaller side m and the larger n, five times: X Xᵀ, its square, and their product with X.
  constexpr int64_t kProducts =
      5 * (4 * kNarrow * kNarrow * kWide + 2 * kNarrow * kNarrow * kNarrow);
  EXPECT_EQ(work.product_flops, kMatrices * kProducts);
  // Two averages, a cast, a norm, its limit, a division, 5 x (1 + 2 + 2), weight decay, update;
  // the fused AdamW of all else.
  EXPECT_EQ(work.launches, kMatrices * (6 + 25 + 2) + 1);
  EXPECT_EQ(memory_by_purpose(graph).optimizer_bytes, 4 * (kMatrices * kMatrix + 2 * kRest));
}

TEST(Muon, HoldsOneMatrixMoreThanItsIterationComputes) {
  // The update in fp32, x and the next one in bf16, and two squares.
  const Graph graph =
      stepped("fp32", {.optimizer = Optimizer::kMuon, .impl = OptimizerImpl::kFused});
  EXPECT_EQ(memory_by_purpose(graph).optimizer_temporaries_bytes,
            4 * kMatrix + 2 * 2 * kMatrix + 2 * 2 * kNarrow * kNarrow);
}

TEST(Muon, UpdatesEachMatrixOfExpertsAlone) {
  Graph graph = parse_graph("input x: fp32[8, 64]\nweight w: fp32[4, 256, 64]\ny = relu(x)\n", "g");
  graph.tensors[1].hidden_matrix = true;
  add_optimizer(graph, {.optimizer = Optimizer::kMuon});
  EXPECT_EQ(work_of_step(graph).product_flops,
            4 * 5 * (4 * kNarrow * kNarrow * kWide + 2 * kNarrow * kNarrow * kNarrow));
}

TEST(Muon, StepsOnFp32CopiesOf16BitParameters) {
  const Graph graph = stepped("bf16", {.optimizer = Optimizer::kMuon,
                                       .impl = OptimizerImpl::kFused,
                                       .main_params = MainParams::kFp32});
  EXPECT_EQ(memory_by_purpose(graph).optimizer_bytes,
            4 * kAll + 4 * (kMatrices * kMatrix + 2 * kRest));
}

TEST(Adafactor, KeepsARowAndAColumnOfAMatrix) {
  const Graph graph = stepped("fp32", {.optimizer = Optimizer::kAdafactor});
  constexpr int64_t kFactors = kMatrices * (kWide + kNarrow) + 2 * (kWords + kNarrow);
  EXPECT_EQ(memory_by_purpose(graph).optimizer_bytes, 4 * (kFactors + kBlocks * kWide));
  const StepWork work = work_of_step(graph);
  EXPECT_EQ(work.waits, 2 * (kMatrices + 2 + kBlocks)) << "two norms of each parameter";
  // Two kernels of a norm; 4 of each factor, outer product, 3 of its scale; 3, 2 and the update.
  EXPECT_EQ(work.launches,
            (kMatrices + 2) * (2 + 8 + 4 + 3 + 2 + 1) + kBlocks * (2 + 3 + 3 + 2 + 1));
}

TEST(Adafactor, HoldsTheUpdateOfTheParameterBefore) {
  // The output layer's follows the embedding's.
  const Graph graph = stepped("fp32", {.optimizer = Optimizer::kAdafactor});
  EXPECT_EQ(memory_by_purpose(graph).optimizer_temporaries_bytes, 2 * 4 * kWords * kNarrow + 512)
      << "beside a mean of one number, in a block of the allocator";
}

TEST(EightBitAdam, HasTwoBytesAndTwoMaximaOfEachBlock) {
  const Graph graph = stepped("bf16", {.optimizer = Optimizer::kAdam8Bit});
  constexpr int64_t kLarge = kAll - kBlocks * kWide;  // biases of 256 elements stay in fp32
  EXPECT_EQ(memory_by_purpose(graph).optimizer_bytes,
            2 * (kLarge + 4 * kLarge / 256) + 2 * 4 * kBlocks * kWide + 2 * 4 * 256);
  const StepWork work = work_of_step(graph);
  EXPECT_EQ(work.launches, kMatrices + 2 + kBlocks);
  EXPECT_EQ(work.waits, work.launches);
}

TEST(Lion, HasOneStateInFp32) {
  const Graph graph = stepped("bf16", {.optimizer = Optimizer::kLion});
  EXPECT_EQ(memory_by_purpose(graph).optimizer_bytes, 4 * kAll);
  EXPECT_EQ(work_of_step(graph).launches, kMatrices + 2 + kBlocks);
  // ZeRO's ranks have their share of each.
  const Graph shared = stepped("bf16", {.optimizer = Optimizer::kLion, .shards = 4});
  EXPECT_EQ(memory_by_purpose(shared).optimizer_bytes, kAll);
}

TEST(OffloadedAdam, KeepsFp32ParametersGradientsAndStatesOnTheHost) {
  Graph graph = parse_graph(model_in("bf16"), "model");
  add_backward(graph);
  add_optimizer(
      graph, {.optimizer = Optimizer::kAdamW, .main_params = MainParams::kFp32, .on_host = true});
  const MemoryByPurpose plan = memory_by_purpose(graph);
  EXPECT_EQ(plan.optimizer_bytes, 0);
  EXPECT_EQ(plan.host_bytes, 16 * kAll);
  const StepWork work = work_of_step(graph);
  EXPECT_EQ(work.ops.at("host_copy"), 2) << "gradients, parameters";
  EXPECT_EQ(work.ops.at("host_adam"), 1);
}

constexpr int64_t kLossRows = 4096, kLossInputs = 64, kLossClasses = 1024;

Graph with_loss(CrossEntropy cross_entropy, bool frozen = false) {
  Graph graph = parse_graph(
      "graph head\ninput i: bf16[4096, 64]\nweight n: bf16[64]\nweight w: bf16[1024, 64]\n"
      "x = mul(i, n)\no = linear(x, w)\noutput o\n",
      "head");
  for (Tensor& tensor : graph.tensors) tensor.frozen = frozen && tensor.name == "w";
  add_loss(graph, {.upcast = true, .cross_entropy = cross_entropy});
  add_backward(graph);
  return graph;
}

int64_t product_flops(const Graph& graph) {
  int64_t flops = 0;
  for (const Node& node : graph.nodes) {
    std::vector<Kernel> kernels;
    lower_node(graph, node, kernels);
    for (const Kernel& kernel : kernels) flops += kernel.is_product() ? kernel.flops : 0;
  }
  return flops;
}

TEST(ChunkedLoss, ComputesTheProductsOfTheOutputLayerAndItsGradients) {
  EXPECT_EQ(product_flops(with_loss(CrossEntropy::kChunked)),
            product_flops(with_loss(CrossEntropy::kLogSoftmax)));
}

TEST(ChunkedLoss, ComputesNoGradientOfAFrozenWeight) {
  const Graph frozen = with_loss(CrossEntropy::kChunked, true);
  EXPECT_EQ(product_flops(frozen), product_flops(with_loss(CrossEntropy::kLogSoftmax, true)));
  const MemoryByPurpose plan = memory_by_purpose(frozen);
  constexpr int64_t kChunk = kLossRows / 16, kBytes = 2;
  const int64_t computed = plan.peak.bytes - plan.weights_bytes - plan.inputs_bytes;
  EXPECT_NEAR(static_cast<double>(computed),
              static_cast<double>(kBytes * (kChunk * kLossClasses + 2 * kLossRows * kLossInputs)),
              2048);
  EXPECT_EQ(plan.gradients_bytes, kBytes * kLossInputs);
}

TEST(ChunkedLoss, HoldsTheLogitsOfOneChunk) {
  const Graph graph = with_loss(CrossEntropy::kChunked);
  const MemoryByPurpose plan = memory_by_purpose(graph);
  // 1024 / 64 = 16 times fewer rows at once; x and both gradients beside.
  constexpr int64_t kChunk = kLossRows / 16, kBytes = 2;
  const int64_t computed = plan.peak.bytes - plan.weights_bytes - plan.inputs_bytes;
  EXPECT_NEAR(static_cast<double>(computed),
              static_cast<double>(kBytes * (kChunk * kLossClasses + 2 * kLossRows * kLossInputs +
                                            kLossClasses * kLossInputs)),
              2048);
  EXPECT_EQ(plan.gradients_bytes, kBytes * (kLossClasses * kLossInputs + kLossInputs));
}

TEST(ChunkedLoss, RefusesLogitsThatAreReadElsewhere) {
  Graph graph = parse_graph(
      "graph head\ninput x: bf16[64, 64]\nweight w: bf16[128, 64]\no = linear(x, w)\n"
      "c = tanh(o)\ns = mul_scalar(c)\noutput s\n",
      "head");
  EXPECT_ERROR(add_loss(graph, {.cross_entropy = CrossEntropy::kChunked}), kUnsupported,
               "head: `cross-entropy` chunked computes an output layer without bias whose logits "
               "nothing else reads, scales or caps; use another `cross-entropy`");
}

}  // namespace
}  // namespace tilecast
