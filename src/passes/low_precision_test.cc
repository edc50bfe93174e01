#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "memory/by_purpose.h"
#include "ops/notation.h"
#include "ops/op_def.h"
#include "passes/passes.h"
#include "test_support.h"

namespace tilecast {
namespace {

constexpr int64_t kRows = 64, kHidden = 256, kInner = 1024, kLayers = 3, kClasses = 128;

constexpr const char* kTwoLinears = R"(graph model
input x: bf16[64, 256]
weight w: bf16[128, 256]
segment layers x3
  weight w1: bf16[1024, 256]
  weight w2: bf16[256, 1024]
  h = linear(x, w1)
  a = gelu(h)
  y = linear(a, w2)
  r = add(y, x)
  carry x -> r
segment head x1
  o = linear(r, w)
output o
)";

struct Products {
  int64_t wide = 0, narrow = 0;  ///< FLOPs in 16 bits and in fewer
  int64_t casts = 0;             ///< launches
};

Products products_of(const Graph& graph) {
  Products sum;
  for (const Segment& segment : graph.segments) {
    for (int32_t i = 0; i < segment.node_count; ++i) {
      std::vector<Kernel> kernels;
      const Node& node = graph.nodes[static_cast<size_t>(segment.first_node + i)];
      lower_node(graph, node, kernels);
      for (const Kernel& kernel : kernels) {
        if (node.op == require_op("fp8_cast") || node.op == require_op("fp4_cast"))
          sum.casts += segment.repeat;
        if (!kernel.is_product()) continue;
        const DType dtype = kernel.compute_dtype();
        (dtype == DType::kFp8 || dtype == DType::kFp4 ? sum.narrow : sum.wide) +=
            kernel.flops * segment.repeat;
      }
    }
  }
  return sum;
}

Graph trained(const LowPrecisionForm* form) {
  Graph graph = parse_graph(kTwoLinears, "model");
  if (form != nullptr) train_in_low_precision(graph, *form);
  add_backward(graph);
  if (form != nullptr) cast_weights(graph, *form);
  return graph;
}

TEST(Fp8Training, LayersMultiplyInFp8ForwardAndBackwardAndTheOutputLayerDoesNot) {
  const LowPrecisionForm form{.recipe = Fp8Recipe::kTensorwise, .transposes = true};
  const Products before = products_of(trained(nullptr)), after = products_of(trained(&form));
  const int64_t head = 2 * kRows * kHidden * kClasses * 3;
  EXPECT_EQ(after.wide, head) << "forward, both gradients";
  EXPECT_EQ(after.wide + after.narrow, before.wide) << "work does not depend on the dtype";
}

TEST(Fp8Training, TheOutputLayerStaysWideWhereItsLogitsAreScaledOrHeld) {
  const LowPrecisionForm form{.transposes = true};
  constexpr std::string_view kOutput = "  o = linear(r, w)\noutput o\n";
  for (const char* head : {"  l = linear(r, w) {role=output}\n  o = mul_scalar(l)\noutput o\n",
                           "  l = linear(r, w)\n  o = keep(l, r)\noutput o\n"}) {
    std::string text = kTwoLinears;
    text.replace(text.find(kOutput), kOutput.size(), head);
    Graph graph = parse_graph(text, "model");
    train_in_low_precision(graph, form);
    EXPECT_EQ(products_of(graph).wide, 2 * kRows * kHidden * kClasses) << head;
  }
}

TEST(Fp8Training, ATableThatIsNotTrainedIsNoSignOfAdapters) {
  std::string text = kTwoLinears;
  text.replace(text.find("r = add(y, x)"), 13, "p = add(y, t)\n  r = add(p, x)");
  text.replace(text.find("segment"), 0, "weight t: bf16[64, 256] frozen\n");
  Graph graph = parse_graph(text, "model");
  train_in_low_precision(graph, {.transposes = true});
  EXPECT_EQ(products_of(graph).narrow, 2 * 2 * kRows * kHidden * kInner * kLayers);
}

TEST(Fp8Training, EachTensorIsCastOnceAndWeightsOnceInAStep) {
  // x and a forward, the gradients of h and y backward, two kernels each where the scale is found
  // first; all weights together.
  for (const auto& [recipe, kernels] :
       {std::pair{Fp8Recipe::kTensorwise, 2}, std::pair{Fp8Recipe::kDelayed, 1}}) {
    const LowPrecisionForm form{.recipe = recipe, .transposes = true};
    EXPECT_EQ(products_of(trained(&form)).casts, kernels * (4 * kLayers + 1));
  }
}

TEST(Fp8Training, FrozenWeightsNeedNoTransposedCopiesOfActivations) {
  // The first layer is trained: gradients go through the frozen ones.
  constexpr const char* kAdapted = R"(graph model
input x: bf16[64, 256]
weight g: bf16[256]
weight w1: bf16[1024, 256]
weight w2: bf16[256, 1024]
n = rms_norm(x, g)
h = linear(n, w1)
a = gelu(h)
y = linear(a, w2)
r = add(y, x)
output r
)";
  const auto written = [](bool frozen) {
    Graph graph = parse_graph(kAdapted, "model");
    for (Tensor& tensor : graph.tensors)
      tensor.frozen = frozen && tensor.kind == TensorKind::kWeight && tensor.name != "g";
    train_in_low_precision(graph, {.transposes = true});
    add_backward(graph);
    int64_t bytes = 0;
    for (const Node& node : graph.nodes) {
      if (node.op != require_op("fp8_cast")) continue;
      std::vector<Kernel> kernels;
      lower_node(graph, node, kernels);
      for (const Kernel& kernel : kernels) bytes += kernel.write_bytes;
    }
    return bytes;
  };
  EXPECT_EQ(written(false), 2 * written(true));
}

TEST(Fp8Training, CopiesOfWeightsAreInMemoryInOneOrTwoLayouts) {
  const int64_t weights = 2 * kHidden * kInner * kLayers;
  for (const bool transposes : {false, true}) {
    const LowPrecisionForm form{.transposes = transposes};
    Graph graph = parse_graph(kTwoLinears, "model");
    const int64_t before = memory_by_purpose(graph).weights_bytes;
    train_in_low_precision(graph, form);
    EXPECT_EQ(memory_by_purpose(graph).weights_bytes - before, weights * (transposes ? 2 : 1));
  }
}

constexpr LowPrecisionForm kNvfp4 = {.dtype = DType::kFp4, .transposes = true};

TEST(Nvfp4Training, ForwardAndBothGradientsMultiplyIn4BitsAndTheOutputLayerDoesNot) {
  const Products before = products_of(trained(nullptr)), after = products_of(trained(&kNvfp4));
  EXPECT_EQ(after.wide, 2 * kRows * kHidden * kClasses * 3) << "forward, both gradients";
  EXPECT_EQ(after.wide + after.narrow, before.wide);
}

TEST(Nvfp4Training, TheLargestValueIsFoundFirstAndColumnsAreTransformedByAKernelOfTheirOwn) {
  // Activations x and a, gradients of h and y: largest value, rows, columns. Weights, whose columns
  // are not transformed: largest value, both layouts.
  EXPECT_EQ(products_of(trained(&kNvfp4)).casts, 3 * 4 * kLayers + 2);
}

TEST(Nvfp4Training, CopiesHaveAScaleOf8BitsFor16Elements) {
  const int64_t weights = 2 * kHidden * kInner * kLayers;
  Graph graph = parse_graph(kTwoLinears, "model");
  const int64_t before = memory_by_purpose(graph).weights_bytes;
  train_in_low_precision(graph, kNvfp4);
  EXPECT_EQ(memory_by_purpose(graph).weights_bytes - before, 2 * (weights / 2 + weights / 16));
  // Saved for the gradients: x and a in one layout, with scales.
  const MemoryByPurpose wide = memory_by_purpose(trained(nullptr)),
                        narrow = memory_by_purpose(trained(&kNvfp4));
  EXPECT_LT(narrow.activations_bytes, wide.activations_bytes);
}

TEST(WideLayers, FirstAndLastLayersMultiplyIn16BitsAndNothingElseChanges) {
  // The first layer reads what depends on a weight, so that it gets a gradient as the others.
  std::string text = kTwoLinears;
  text.replace(text.find("segment layers"), 0,
               "segment start x1\n  weight e: bf16[64, 256]\n  s = add(x, e)\n");
  text.replace(text.find("h = linear(x"), 12, "h = linear(s");
  text.replace(text.find("add(y, x)"), 9, "add(y, s)");
  text.replace(text.find("carry x"), 7, "carry s");
  const Graph whole = parse_graph(text, "model");
  Graph plain = whole;
  add_backward(plain);
  const Products all = products_of(plain);
  const int64_t layer = 2 * 2 * kRows * kHidden * kInner * 3, head = all.wide - kLayers * layer;
  for (const WideLayers& kept :
       {WideLayers{1, 0}, WideLayers{0, 2}, WideLayers{1, 1}, WideLayers{2, 1}}) {
    Graph graph = keep_in_16_bits(whole, kept);
    EXPECT_EQ(graph.parameter_count(), whole.parameter_count());
    train_in_low_precision(graph, kNvfp4);
    add_backward(graph);
    const Products products = products_of(graph);
    EXPECT_EQ(products.wide, head + (kept.at_start + kept.at_end) * layer);
    EXPECT_EQ(products.wide + products.narrow, all.wide);
  }
  Graph cut = keep_in_16_bits(whole, {1, 1});
  add_backward(cut);
  EXPECT_EQ(memory_by_purpose(cut).peak.bytes, memory_by_purpose(plain).peak.bytes);
  EXPECT_ERROR(keep_in_16_bits(whole, {2, 2}), kInput, "are more than the model's 3 layers");
}

TEST(Fp8Training, WeightsAreTransposedInTheBackwardPassWhereTheirCopiesAreNotKept) {
  const int64_t weights = 2 * kHidden * kInner * kLayers;
  const auto sums = [&](bool keeps) {
    const LowPrecisionForm form{.transposes = true, .keeps_transposed = keeps};
    const Graph graph = trained(&form);
    int64_t copied = 0;
    for (const Segment& segment : graph.segments) {
      for (int32_t i = 0; i < segment.node_count; ++i) {
        const Node& node = graph.nodes[static_cast<size_t>(segment.first_node + i)];
        if (node.op == require_op("copy") && node.phase == Phase::kBackward)
          copied += segment.repeat * element_count(graph.tensor(node.outputs[0]).shape);
      }
    }
    return std::pair{memory_by_purpose(graph).weights_bytes, copied};
  };
  const auto [kept_bytes, kept_copies] = sums(true);
  const auto [bytes, copies] = sums(false);
  EXPECT_EQ(kept_bytes - bytes, weights);
  EXPECT_EQ(kept_copies, 0);
  EXPECT_EQ(copies, weights);
}

TEST(Fp8Training, ActivationsAreSavedIn8Bits) {
  const LowPrecisionForm form{.transposes = true};
  // Of a layer: x and a of the products in one byte instead of two; h for gelu's gradient as
  // before.
  const MemoryByPurpose wide = memory_by_purpose(trained(nullptr)),
                        narrow = memory_by_purpose(trained(&form));
  EXPECT_LT(narrow.activations_bytes, wide.activations_bytes);
}

TEST(CrossEntropy, InPlaceHoldsOneCopyInFp32) {
  constexpr const char* kHead =
      "graph head\ninput x: bf16[4096, 64]\nweight w: bf16[32768, 64]\no = linear(x, w)\n"
      "output o\n";
  const int64_t logits = 4096 * int64_t{32768};
  const auto peak = [&](CrossEntropy cross_entropy) {
    Graph graph = parse_graph(kHead, "head");
    add_loss(graph, {.upcast = true, .cross_entropy = cross_entropy});
    add_backward(graph);
    const MemoryByPurpose plan = memory_by_purpose(graph);
    return plan.peak.bytes - plan.weights_bytes - plan.inputs_bytes;
  };
  const auto copies = [&](CrossEntropy cross_entropy) {
    return static_cast<double>(peak(cross_entropy)) / static_cast<double>(logits);
  };
  // Bytes for each logit: the copy, and the logits or their gradient in 16 bits. Compiled, a copy
  // of the gradient more. PyTorch's: logits, their copy, log-probabilities, two gradients.
  EXPECT_NEAR(copies(CrossEntropy::kInPlace), 4 + 2, 0.1);
  EXPECT_NEAR(copies(CrossEntropy::kCompiled), 4 + 4 + 2, 0.1);
  EXPECT_GT(copies(CrossEntropy::kLogSoftmax), 12);
}

TEST(Recompute, NormsAreComputedAgainBeforeTheGradientsThatReadThem) {
  constexpr const char* kNormed = R"(graph model
input x: bf16[64, 256]
segment layers x3
  weight g: bf16[256]
  weight w1: bf16[1024, 256]
  weight w2: bf16[256, 1024]
  n = rms_norm(x, g)
  h = linear(n, w1)
  a = gelu(h)
  y = linear(a, w2)
  r = add(y, x)
  carry x -> r
output r
)";
  const auto with = [&](bool norms) {
    Graph graph = parse_graph(kNormed, "model");
    add_backward(graph, Checkpointing::kSelective, {.attention = true, .norms = norms});
    return graph;
  };
  const OpId norm = require_op("rms_norm");
  const auto count = [&](const Graph& graph) {
    return std::count_if(graph.nodes.begin(), graph.nodes.end(),
                         [&](const Node& node) { return node.op == norm; });
  };
  EXPECT_EQ(count(with(false)), 1);
  EXPECT_EQ(count(with(true)), 2);
  // Each layer keeps a tensor of x's size less, but for the one whose backward pass runs. (At the
  // peak of all, the gradients of all weights are there and activations of one layer.)
  const int64_t saved = memory_by_purpose(with(false)).activations_bytes -
                        memory_by_purpose(with(true)).activations_bytes;
  EXPECT_GE(saved, (kLayers - 1) * kRows * kHidden * 2);
}

TEST(MegatronSums, ProductsAddUpGradientsWithoutTimeAndWithTheirMemory) {
  constexpr const char* kShared = R"(graph model
input x: bf16[64, 256]
weight w0: bf16[256, 256]
weight w1: bf16[256, 256]
weight w2: bf16[256, 256]
h = linear(x, w0)
a = linear(h, w1)
b = linear(h, w2)
y = mul(a, b)
output y
)";
  Graph plain = parse_graph(kShared, "model");
  add_backward(plain);
  Graph fused = plain;
  sum_in_products(fused);
  const auto timed_sums = [&](const Graph& graph) {
    return std::count_if(graph.nodes.begin(), graph.nodes.end(), [&](const Node& node) {
      const bool sum = node.op == require_op("add") || node.op == require_op("add_");
      return sum && node.phase == Phase::kBackward && node.counts == Counts::kAll;
    });
  };
  EXPECT_EQ(timed_sums(plain), 4) << "of h, and of three weights";
  EXPECT_EQ(timed_sums(fused), 0);
  EXPECT_EQ(memory_by_purpose(fused).peak.bytes, memory_by_purpose(plain).peak.bytes);
}

TEST(JoinPointwise, AnActivationMovesToItsProductWithTheGate) {
  constexpr const char* kGated = R"(graph model
input x: bf16[64, 256]
weight w0: bf16[256, 256]
weight w1: bf16[256, 256]
g = linear(x, w0)
a = silu(g)
u = linear(x, w1)
y = mul(a, u)
output y
)";
  Graph graph = parse_graph(kGated, "model");
  join_pointwise(graph);
  EXPECT_EQ(op_def(graph.nodes[2].op).name, "silu");
  fuse_pointwise(graph);
  EXPECT_EQ(op_def(graph.nodes[2].op).name, "fused_pointwise");
  EXPECT_EQ(graph.nodes.size(), 3u);
}

}  // namespace
}  // namespace tilecast
