#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "importers/model.h"
#include "memory/allocator.h"
#include "memory/by_purpose.h"
#include "memory/peak.h"
#include "memory/replay.h"
#include "memory/stack.h"
#include "memory/structure.h"
#include "ops/notation.h"
#include "ops/op_def.h"
#include "passes/passes.h"
#include "tilecast/error.h"

namespace tilecast {
namespace {

constexpr int64_t kMiB = int64_t{1} << 20;
constexpr int64_t kTensor = 4 * 64 * 64;  // of all tensors of the graphs below

int64_t of(const MemoryByPurpose& memory, MemoryUse use) {
  return memory.peak.by_use[static_cast<size_t>(use)];
}

Graph one_layer() {
  return parse_graph(
      "input x: fp32[64, 64]\nweight w: fp32[64, 64]\nh = linear(x, w)\ny = tanh(h)\noutput y\n",
      "g");
}

/// Five layers y = tanh(x w).
Graph five_layers() {
  return parse_graph(R"(input x: fp32[64, 64]
segment layers x5
  weight w: fp32[64, 64]
  h = linear(x, w)
  y = tanh(h)
  carry x -> y
output y
)",
                     "g");
}

TEST(CachingAllocator, RoundsBlocksAndSegments) {
  // The rules of c10/cuda/CUDACachingAllocator.cpp.
  EXPECT_EQ(segment_bytes(512), 2 * kMiB);
  EXPECT_EQ(segment_bytes(kMiB), 2 * kMiB);
  EXPECT_EQ(segment_bytes(kMiB + 512), 20 * kMiB);
  EXPECT_EQ(segment_bytes(10 * kMiB), 10 * kMiB);
  EXPECT_EQ(segment_bytes(11 * kMiB), 12 * kMiB);
  CachingAllocator allocator;
  allocator.allocate(1);
  allocator.allocate(513);
  EXPECT_EQ(allocator.allocated_bytes(), 512 + 1024);
  EXPECT_EQ(allocator.reserved_bytes(), 2 * kMiB) << "both are cut from one segment";
  allocator.allocate(5 * kMiB);
  allocator.allocate(5 * kMiB);
  EXPECT_EQ(allocator.reserved_bytes(), 22 * kMiB) << "two of 5 MiB share a segment of 20";
  allocator.allocate(11 * kMiB);
  EXPECT_EQ(allocator.reserved_bytes(), 34 * kMiB);
  // A rest of 1 MiB stays with the block.
  EXPECT_EQ(allocator.allocated_bytes(), 512 + 1024 + 22 * kMiB);
}

TEST(CachingAllocator, ABlockOfOneMebibyteIsASmallOne) {
  CachingAllocator allocator;
  allocator.allocate(512);
  allocator.allocate(kMiB);
  EXPECT_EQ(allocator.reserved_bytes(), 2 * kMiB) << "both are cut from a segment of small blocks";
}

TEST(CachingAllocator, JoinsFreeNeighboursAndUsesTheSmallestThatFits) {
  CachingAllocator allocator;
  const auto a = allocator.allocate(6 * kMiB), b = allocator.allocate(6 * kMiB);
  allocator.allocate(8 * kMiB);  // the rest of the segment of 20 MiB
  EXPECT_EQ(allocator.reserved_bytes(), 20 * kMiB);
  allocator.free(b);
  allocator.free(a);
  allocator.allocate(12 * kMiB);
  EXPECT_EQ(allocator.reserved_bytes(), 20 * kMiB) << "6 + 6 MiB were joined";
  allocator.allocate(2 * kMiB);
  EXPECT_EQ(allocator.reserved_bytes(), 40 * kMiB);
  EXPECT_EQ(allocator.max_allocated_bytes(), 22 * kMiB);
}

TEST(MemoryCourse, PeakIsTheMaximumOfTheSumNotTheSumOfMaxima) {
  Graph graph = one_layer();
  add_backward(graph);
  add_optimizer(graph, {.optimizer = Optimizer::kAdamW});
  const MemoryByPurpose memory = memory_by_purpose(graph);
  // While the gradient of w is computed: w, two states, x, the output y, the gradient of h, and the
  // gradient of w. In the optimizer step: w, two states, x, the gradient, the denominator.
  EXPECT_EQ(memory.peak.bytes, 7 * kTensor);
  EXPECT_EQ(of(memory, MemoryUse::kWeights), kTensor);
  EXPECT_EQ(of(memory, MemoryUse::kOptimizer), 2 * kTensor);
  EXPECT_EQ(of(memory, MemoryUse::kLoss), kTensor) << "the output";
  EXPECT_EQ(of(memory, MemoryUse::kInputs), kTensor);
  EXPECT_EQ(of(memory, MemoryUse::kTemporaries) + of(memory, MemoryUse::kGradients), 2 * kTensor);
  EXPECT_EQ(graph.nodes[static_cast<size_t>(memory.peak_node)].phase, Phase::kBackward);
}

TEST(MemoryCourse, FilledGradientsAreThereAllTheTime) {
  Graph graph = one_layer();
  add_backward(graph);
  // The stored gradient and the one that is added to it.
  const MemoryByPurpose none = memory_by_purpose(graph);
  const MemoryByPurpose zeros = memory_by_purpose(graph, {.zero_grad = ZeroGrad::kZeros});
  EXPECT_EQ(none.peak.bytes, 5 * kTensor);
  EXPECT_EQ(zeros.peak.bytes, 6 * kTensor);
  EXPECT_EQ(of(zeros, MemoryUse::kGradients), kTensor);
}

TEST(MemoryCourse, OptimizersDifferInTheirTemporaries) {
  const auto peak = [](OptimizerImpl impl) {
    Graph graph = five_layers();
    add_backward(graph);
    add_optimizer(graph, {.optimizer = Optimizer::kAdamW, .impl = impl});
    for (Node& node : graph.nodes) {  // the step alone
      if (node.phase != Phase::kOptimizer) node.counts = Counts::kTimeOnly;
    }
    return memory_by_purpose(graph).peak.bytes;
  };
  const int64_t permanent = 3 * 5 * kTensor + kTensor;  // weights, states, x
  EXPECT_EQ(peak(OptimizerImpl::kForeach), permanent + 5 * kTensor) << "of all parameters";
  EXPECT_EQ(peak(OptimizerImpl::kForLoop), permanent + kTensor) << "of one";
  EXPECT_EQ(peak(OptimizerImpl::kFused), permanent);
}

TEST(MemoryCourse, CheckpointingKeepsTheInputsOfLayers) {
  // With a gelu in each layer, whose input autograd keeps too. Tensors are larger than weights, so
  // that the peak is at the start of the backward pass.
  constexpr int64_t kLarge = 4 * 256 * 64;
  const auto peak = [](Checkpointing checkpointing) {
    Graph graph = parse_graph(R"(input x: fp32[256, 64]
segment layers x5
  weight w: fp32[64, 64]
  h = linear(x, w)
  g = gelu(h)
  y = tanh(g)
  carry x -> y
output y
)",
                              "g");
    add_backward(graph, checkpointing);
    return memory_by_purpose(graph).peak;
  };
  const MemoryPeak all = peak(Checkpointing::kNone), inputs = peak(Checkpointing::kFull);
  const auto activations = static_cast<size_t>(MemoryUse::kActivations);
  // At the start of backward h and y of five layers are kept; the last y is the output.
  EXPECT_EQ(all.by_use[activations], (5 + 4) * kLarge);
  // Only y of four layers; x is an input.
  EXPECT_EQ(inputs.by_use[activations], 4 * kLarge);
  EXPECT_LT(inputs.bytes, all.bytes);
}

TEST(MemoryCourse, WhatTakesTimeOnlyHasNoMemory) {
  Graph graph =
      parse_graph("input x: fp32[64, 64]\na = relu(x)\nb = exp(a)\nc = relu(b)\noutput c\n", "g");
  EXPECT_EQ(memory_by_purpose(graph).activations_bytes, 2 * kTensor);
  graph.nodes[1].counts = Counts::kTimeOnly;
  graph.nodes[2].counts = Counts::kTimeOnly;
  EXPECT_EQ(memory_by_purpose(graph).activations_bytes, kTensor) << "c is a";
}

TEST(Storage, WhatTakesTimeOnlyPassesOnItsInputOfTheSameSize) {
  Graph graph = parse_graph(
      "input x: fp32[64, 64]\nweight w: fp32[64]\na = relu(x)\nb = add(a, w)\noutput b\n", "g");
  graph.nodes[1].counts = Counts::kTimeOnly;
  const TensorId a = graph.nodes[0].outputs[0], b = graph.nodes[1].outputs[0];
  EXPECT_EQ(find_storage(graph)[static_cast<size_t>(b)], a) << "not the weight, the last input";
}

TEST(MemoryPeak, CopiesOfFoldedRepetitionsCountFromTheirFirstStepToTheirLast) {
  constexpr auto kSaved = static_cast<size_t>(MemoryUse::kActivations),
                 kOther = static_cast<size_t>(MemoryUse::kTemporaries);
  for (const int32_t step : {1, 3}) {
    Lifetimes lifetimes;
    lifetimes.steps.resize(5);
    lifetimes.optimizer_from = 5;
    lifetimes.lifetimes = {
        {.bytes = 512,
         .use = MemoryUse::kActivations,
         .last = 4,
         .more = 2,
         .more_born = 1,
         .more_last = 3},
        {.bytes = 512, .use = MemoryUse::kTemporaries, .born = step, .last = step}};
    const MemoryPeak peak = find_peak(lifetimes);
    EXPECT_EQ(peak.step, step);
    EXPECT_EQ(peak.bytes, 4 * 512);
    EXPECT_EQ(peak.by_use[kSaved], 3 * 512);
    EXPECT_EQ(peak.by_use[kOther], 512);
  }
}

TEST(MemoryCourse, FoldedLayersHaveThePeakOfAllLayers) {
  for (const char* name : {"gpt2_med", "bert_large", "opt_13", "llama-3.2-1b", "t5-large"}) {
    const Model model = load_model(name);
    for (const int64_t batch : {1, 4}) {
      for (const Checkpointing checkpointing :
           {Checkpointing::kNone, Checkpointing::kSelective, Checkpointing::kFull}) {
        Graph graph = decompose(model.build({.batch = batch, .seq = 128, .dtype = DType::kFp32}),
                                {.training = true});
        add_loss(graph, {.upcast = true});
        add_backward(graph, checkpointing);
        add_optimizer(graph, {.optimizer = Optimizer::kAdamW});
        const MemoryPeak folded = memory_by_purpose(graph).peak;
        const MemoryPeak all = memory_by_purpose(graph, {.folded = false}).peak;
        EXPECT_EQ(folded.bytes, all.bytes) << name << " " << batch;
        EXPECT_EQ(folded.by_use, all.by_use) << name << " " << batch;
      }
    }
  }
}

TEST(MemoryCourse, ReplayedAllocationsNeedAtLeastThePeak) {
  Graph graph = five_layers();
  add_backward(graph);
  add_optimizer(graph, {.optimizer = Optimizer::kAdam});
  const Lifetimes lifetimes = find_lifetimes(graph, {.folded = false});
  const MemoryPeak peak = find_peak(lifetimes);
  const AllocatorResult result =
      replay_allocations(graph, lifetimes, ZeroGrad::kSetToNone, 8 * kMiB);
  EXPECT_EQ(result.allocated_bytes, peak.bytes + 8 * kMiB) << "small blocks have no rest";
  // All tensors are small: one segment of 2 MiB, and one of 20 MiB for the workspace.
  EXPECT_EQ(result.reserved_bytes, 22 * kMiB);
}

TEST(Loss, KeepsLogitsLogProbabilitiesAndTheirGradients) {
  Graph graph = parse_graph(
      "input x: fp32[64, 64]\nweight w: fp32[64, 64]\ny = linear(x, w)\noutput y\n", "g");
  add_loss(graph, {});
  ASSERT_EQ(graph.losses.size(), 1U);
  add_backward(graph);
  const MemoryByPurpose memory = memory_by_purpose(graph);
  // In the backward pass of log_softmax: logits, log-probabilities, two gradients; the loss.
  EXPECT_EQ(of(memory, MemoryUse::kLoss), 4 * kTensor + 512);
  EXPECT_EQ(of(memory, MemoryUse::kInputs), kTensor + 8 * 64) << "x and labels";
}

/// Attention of 2 query heads to `kv_heads` key heads, one sequence of 64 tokens, heads of 64.
Graph attention(const char* dtype, int kv_heads, bool causal_mask, const EagerForm& form) {
  const std::string text = fmt::format(
      "input q: {0}[1, 2, 64, 64]\ninput k: {0}[1, {1}, 64, 64]\ninput v: {0}[1, {1}, 64, 64]\n"
      "{2}y = sdpa(q, k, v{3}) {{softmax_fp32=1, causal=1, scale=\"none\"}}\noutput y\n",
      dtype, kv_heads, causal_mask ? fmt::format("input m: {}[1, 1, 64, 64]\n", dtype) : "",
      causal_mask ? ", m" : "");
  return decompose(parse_graph(text, "g"), form);
}

std::vector<std::string> ops_of(const Graph& graph) {
  std::vector<std::string> ops;
  for (const Node& node : graph.nodes) {
    if (op_def(node.op).work != nullptr) ops.emplace_back(op_def(node.op).name);
  }
  return ops;
}

TEST(Softmax, IsCastToFp32AndBack) {
  using Ops = std::vector<std::string>;
  const Graph bf16 = attention("bf16", 2, true, {});
  EXPECT_EQ(ops_of(bf16), (Ops{"matmul", "add", "cast", "softmax", "cast", "matmul", "copy"}));
  // The kernel reads FP16 and writes FP32.
  EXPECT_EQ(ops_of(attention("fp16", 2, true, {})),
            (Ops{"matmul", "add", "softmax", "cast", "matmul", "copy"}));
  EXPECT_EQ(ops_of(attention("fp32", 2, true, {})),
            (Ops{"matmul", "add", "softmax", "matmul", "copy"}));
  // During the softmax: masked scores (2 bytes), their copy and the result (4 bytes each) of 2
  // heads.
  const MemoryByPurpose memory = memory_by_purpose(bf16);
  EXPECT_EQ(of(memory, MemoryUse::kTemporaries), (2 + 4 + 4) * 2 * 64 * 64);
}

TEST(Softmax, GradientsPassTheCasts) {
  Graph graph = attention("fp16", 2, true, {.training = true});
  graph.tensors[0].kind = TensorKind::kWeight;  // q
  add_backward(graph);
  bool found = false;
  for (const Node& node : graph.nodes) {
    if (node.op != require_op("softmax_backward")) continue;
    found = true;
    EXPECT_EQ(graph.tensor(node.inputs[0]).dtype, DType::kFp32);
    EXPECT_EQ(graph.tensor(node.outputs[0]).dtype, DType::kFp16) << "the kernel converts";
  }
  EXPECT_TRUE(found);
}

TEST(FusedAttention, OfFp32WithSharedKeyHeadsRunsStepByStep) {
  const EagerForm fused{.fused_attention = true};
  const auto is_fused = [](const Graph& graph) {
    const std::vector<std::string> ops = ops_of(graph);
    return std::find(ops.begin(), ops.end(), "attention") != ops.end();
  };
  EXPECT_FALSE(is_fused(attention("fp32", 1, false, fused)));
  EXPECT_TRUE(is_fused(attention("fp32", 2, false, fused)));
  EXPECT_TRUE(is_fused(attention("bf16", 1, false, fused)));
  EXPECT_TRUE(is_fused(attention("fp32", 1, true, fused))) << "a mask: keys are repeated";
  EXPECT_TRUE(is_fused(attention("fp32", 1, false, {.fused_attention = true, .autocast = true})));
}

TEST(MemoryCourse, FrozenWeightsHaveNoGradientAndNoState) {
  Graph graph = parse_graph(
      "input x: fp32[64, 64]\nweight w: fp32[64, 64]\nweight u: fp32[64, 64]\nh = linear(x, w)\n"
      "y = linear(h, u)\noutput y\n",
      "g");
  graph.tensors[1].frozen = true;  // w
  add_backward(graph);
  add_optimizer(graph, {.optimizer = Optimizer::kAdamW});
  const MemoryByPurpose memory = memory_by_purpose(graph);
  EXPECT_EQ(memory.weights_bytes, 2 * kTensor);
  EXPECT_EQ(memory.gradients_bytes, kTensor);
  EXPECT_EQ(memory.optimizer_bytes, 2 * kTensor);
}

TEST(MemoryCourse, ExpertsKeepTheirRows) {
  // 64 tokens, 2 of 4 experts each: 128 rows of x (64), gate and up (2 x 32), the activation and
  // its product (32 each) and the result (64).
  Graph graph = decompose(
      parse_graph("input x: fp32[64, 64]\nweight u: fp32[4, 64, 64]\nweight d: fp32[4, 64, 32]\n"
                  "y = experts(x, u, d) {top_k=2}\noutput y\n",
                  "g"),
      {.training = true});
  add_backward(graph);
  EXPECT_EQ(of(memory_by_purpose(graph), MemoryUse::kActivations),
            4 * 128 * (64 + 64 + 32 + 32 + 64));
}

TEST(MemoryCourse, FrozenExpertsKeepNoOperandsOfTheirWeightsGradients) {
  // As above, without the rows of x and the product that the second weight multiplies: autograd
  // keeps these for the weights' gradients only.
  Graph graph =
      decompose(parse_graph("input x: fp32[64, 64]\nweight w: fp32[64, 64]\n"
                            "weight u: fp32[4, 64, 64] frozen\n"
                            "weight d: fp32[4, 64, 32] frozen\n"
                            "h = linear(x, w)\ny = experts(h, u, d) {top_k=2}\noutput y\n",
                            "g"),
                {.training = true});
  add_backward(graph);
  const auto kept = std::find_if(graph.nodes.begin(), graph.nodes.end(), [](const Node& node) {
    return op_def(node.op).name == "experts";
  });
  ASSERT_NE(kept, graph.nodes.end());
  EXPECT_EQ(graph.tensor(kept->outputs[1]).shape, (Shape{128, 64 + 32 + 64}));
}

TEST(SoftwareStack, SumsWhatWasMeasured) {
  // Steps of fresh processes on an H100: context_bytes of models.3.csv.
  EXPECT_EQ(framework_bytes(default_stack(), false), 728563712) << "llama-3.2-1b inference";
  EXPECT_EQ(framework_bytes(default_stack(), true), 787283968) << "gpt2_large training, FP32";
  EXPECT_EQ(workspace_bytes(default_stack(), true, false), 32 * kMiB);
  EXPECT_EQ(workspace_bytes(default_stack(), true, true), 64 * kMiB);
}

TEST(Lora, TrainsTheAdaptersOnly) {
  // "trainable params: 786,432" of peft, rank 8 on c_attn of GPT-2 medium: 24 layers of
  // 8 (1024 + 3072).
  constexpr int64_t kTrained = 24 * 8 * (1024 + 3072);
  Graph graph = load_model("gpt2_med").build({.batch = 1, .seq = 128, .dtype = DType::kBf16});
  const int64_t base = memory_by_purpose(decompose(graph, {.training = true})).weights_bytes;
  add_lora(graph, {.rank = 8, .targets = {"c_attn"}});
  graph = decompose(std::move(graph), {.training = true});
  add_loss(graph, {.upcast = true});
  add_backward(graph);
  add_optimizer(graph, {.optimizer = Optimizer::kAdamW});
  const MemoryByPurpose memory = memory_by_purpose(graph);
  EXPECT_EQ(memory.weights_bytes, base + 2 * kTrained) << "adapters are BF16, as their layers";
  EXPECT_EQ(memory.gradients_bytes, 2 * kTrained);
  EXPECT_EQ(memory.optimizer_bytes, 4 * kTrained);
}

TEST(Lora, AddsTwoProductsAndNamesWhatItKnows) {
  const char* const text =
      "input x: fp32[64, 64]\nweight w: fp32[32, 64]\nweight u: fp32[16, 32]\nh = linear(x, w)\n"
      "y = linear(h, u)\noutput y\n";
  Graph graph = parse_graph(text, "g");
  add_lora(graph, {.rank = 4, .targets = {"all-linear"}});
  // h, its two products, scale, sum; y is the output layer.
  EXPECT_EQ(ops_of(graph), (std::vector<std::string>{"linear", "linear", "linear", "mul_scalar",
                                                     "add", "linear"}));
  EXPECT_EQ(graph.tensor(graph.nodes[1].inputs[1]).shape, (Shape{4, 64}));
  EXPECT_EQ(graph.tensor(graph.nodes[2].inputs[1]).shape, (Shape{32, 4}));
  graph = parse_graph(text, "g");
  try {
    add_lora(graph, {.rank = 4, .targets = {"q_proj"}});
    FAIL() << "expected an error";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("'q_proj'"), std::string::npos) << error.what();
  }
}

}  // namespace
}  // namespace tilecast
