#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <numeric>
#include <set>
#include <vector>

#include "base/rng.h"
#include "ops/builder.h"
#include "ops/expert_load.h"
#include "ops/gradient.h"
#include "ops/notation.h"
#include "ops/op_def.h"
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

std::vector<Kernel> lower_first(const std::string& text) {
  const Graph graph = parse_graph(text, "test");
  std::vector<Kernel> kernels;
  lower_node(graph, graph.nodes.front(), kernels);
  return kernels;
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

TEST(Linear, WorkIsCountedByHand) {
  const auto kernels = lower_first(
      "input x: fp32[4, 128, 256]\nweight w: fp32[512, 256]\nweight b: fp32[512]\ny = linear(x, w, "
      "b)\n");
  ASSERT_EQ(kernels.size(), 1u);
  EXPECT_EQ(kernels[0].flops, 2 * 512 * 512 * 256);
  EXPECT_EQ(kernels[0].read_bytes, 4 * (512 * 256 + 512 * 256 + 512));
  EXPECT_EQ(kernels[0].write_bytes, 4 * 512 * 512);
}

TEST(Pointwise, BroadcastInputsAreReadOnceAndTheSameInputOnce) {
  auto kernels = lower_first("input x: fp32[8, 64]\ninput y: fp32[64]\nz = add(x, y)\n");
  EXPECT_EQ(kernels[0].read_bytes, 4 * (8 * 64 + 64));
  kernels = lower_first("input x: fp32[8, 64]\nz = mul(x, x)\n");
  EXPECT_EQ(kernels[0].read_bytes, 4 * 8 * 64);
}

TEST(Views, LaunchNothingAndShareMemory) {
  const Graph graph = parse_graph("input x: fp32[4, 6]\ny = transpose(x) {order=[1, 0]}\n", "t");
  EXPECT_EQ(graph.tensor(graph.outputs[0]).storage, 0);
  EXPECT_FALSE(graph.tensor(graph.outputs[0]).contiguous);
  std::vector<Kernel> kernels;
  lower_node(graph, graph.nodes[0], kernels);
  EXPECT_TRUE(kernels.empty());
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

/// Pairs of one head and sequence, counted one by one.
int64_t counted_pairs(int64_t queries, int64_t keys, bool causal, int64_t window) {
  int64_t pairs = 0;
  for (int64_t i = 0; i < queries; ++i) {
    const int64_t last = causal ? keys - queries + i : keys - 1;
    const int64_t seen = last + 1;
    pairs += window == 0 ? seen : std::min(seen, window);
  }
  return pairs;
}

TEST(SizesTest, BytesBeyond64BitsAreRefused) {
  // Reads and writes fit one by one, their sum does not.
  EXPECT_ERROR(kernels_of_sizes("sin", DType::kInt8,
                                {{"rows", int64_t{1} << 31}, {"columns", int64_t{1} << 31}}),
               kInput, "does not fit in 64 bits");
}

TEST(Attention, FlopsAreFourForEachPairAndElementOfAHead) {
  for (const int64_t queries : {1, 7, 100}) {
    for (const int64_t past : {0, 5, 200}) {
      for (const int64_t window : {0, 3, 64, 1000}) {
        for (const bool causal : {false, true}) {
          const SizeList sizes = {
              {"batch", 2}, {"queries", queries}, {"keys", queries + past}, {"head_dim", 64},
              {"heads", 8}, {"kv_heads", 2},      {"window", window},       {"causal", causal}};
          const Kernel kernel = kernels_of_sizes("attention", DType::kBf16, sizes).front();
          EXPECT_EQ(kernel.flops,
                    4 * 64 * 8 * 2 * counted_pairs(queries, queries + past, causal, window))
              << queries << " " << past << " " << window << " " << causal;
        }
      }
    }
  }
}

TEST(Attention, ADecodeReadsTheCacheOnceInItsOwnType) {
  SizeList sizes = {{"batch", 4},  {"keys", 1024},  {"head_dim", 128},
                    {"heads", 32}, {"kv_heads", 8}, {"kv_dtype", DType::kFp8}};
  const Kernel kernel = kernels_of_sizes("cached_attention", DType::kBf16, sizes).front();
  EXPECT_TRUE(kernel.as<Attention>()->is_decode());
  EXPECT_EQ(kernel.read_bytes, 4 * 1024 * 2 * 8 * 128 + 4 * 32 * 128 * 2);
  EXPECT_EQ(kernel.write_bytes, 4 * 32 * 128 * 2);
  integer_in(sizes, "kv_heads") = 5;
  EXPECT_ERROR(kernels_of_sizes("cached_attention", DType::kBf16, sizes), kInput,
               "5 kv_heads do not divide 32 heads");
}

TEST(Attention, ValuesMayHaveAnotherSizeThanKeys) {
  SizeList sizes = {{"batch", 2}, {"queries", 3},   {"keys", 10},
                    {"heads", 4}, {"head_dim", 48}, {"v_head_dim", 32}};
  const Kernel kernel = kernels_of_sizes("attention", DType::kBf16, sizes).front();
  EXPECT_EQ(kernel.as<Attention>()->v_head_dim, 32);
  EXPECT_EQ(kernel.flops, 2 * (48 + 32) * 3 * 10 * 4 * 2);
  EXPECT_EQ(kernel.read_bytes, 2 * 2 * 4 * (3 * 48 + 10 * (48 + 32)));
  EXPECT_EQ(kernel.write_bytes, 2 * 2 * 4 * 3 * 32);
  const Kernel backward = kernels_of_sizes("attention_backward", DType::kBf16, sizes).front();
  EXPECT_EQ(backward.flops, kernel.flops / 2 * 5);
  integer_in(sizes, "v_head_dim") = 0;
  EXPECT_EQ(kernels_of_sizes("attention", DType::kBf16, sizes).front().as<Attention>()->v_head_dim,
            48);
}

TEST(Attention, ALatentCacheHoldsOneVectorPerTokenForAllHeads) {
  SizeList sizes = {{"batch", 2}, {"keys", 10}, {"heads", 4}, {"head_dim", 48}, {"v_head_dim", 32}};
  const Kernel plain = kernels_of_sizes("cached_attention", DType::kBf16, sizes).front();
  EXPECT_FALSE(plain.as<Attention>()->latent);
  EXPECT_EQ(plain.read_bytes, 2 * 2 * (4 * 48 + 10 * 4 * (48 + 32)));
  sizes.push_back({"latent", 1});
  const Kernel latent = kernels_of_sizes("cached_attention", DType::kBf16, sizes).front();
  EXPECT_TRUE(latent.as<Attention>()->latent);
  EXPECT_EQ(latent.as<Attention>()->kv_heads, 1);
  EXPECT_EQ(latent.flops, plain.flops);
  EXPECT_EQ(latent.read_bytes, 2 * 2 * (4 * 48 + 10 * 48));
  sizes.push_back({"kv_heads", 2});
  EXPECT_ERROR(kernels_of_sizes("cached_attention", DType::kBf16, sizes), kInput,
               "a latent cache has 1 kv_heads and a v_head_dim of at most head_dim, found 2 and 32 "
               "of 48");
}

TEST(Matmul, AQuantizedOperandIsStoredAsTheSchemeHasIt) {
  SizeList sizes = {{"batch", 3}, {"m", 4}, {"n", 5}, {"k", 64}};
  const Kernel plain = kernels_of_sizes("matmul", DType::kBf16, sizes).front();
  EXPECT_EQ(plain.scheme, QuantScheme::kNone);
  sizes.push_back({"scheme", QuantScheme::kFp8});
  const Kernel kernel = kernels_of_sizes("matmul", DType::kBf16, sizes).front();
  EXPECT_EQ(kernel.shape, plain.shape);
  EXPECT_EQ(kernel.flops, plain.flops);
  EXPECT_EQ(kernel.compute_dtype(), DType::kFp8);
  EXPECT_EQ(plain.bytes() - kernel.bytes(), 3 * 64 * 5) << "a byte for each weight";
  EXPECT_ERROR(parse_graph("input x: bf16[2, 4, 8]\ninput w: bf16[2, 8, 4]\n"
                           "y = matmul(x, w) {scheme=fp8}\n",
                           "a.tcg"),
               kInput, "expected a weight of fp8, found bf16");
}

TEST(Experts, ReadTheWeightsOfBusyExpertsOnly) {
  SizeList sizes = {
      {"tokens", 2}, {"ffn_dim", 512}, {"hidden_dim", 256}, {"num_experts", 64}, {"top_k", 4}};
  const Kernel kernel = kernels_of_sizes("experts", DType::kBf16, sizes).front();
  EXPECT_EQ(kernel.as<Experts>()->active_experts, 8);
  EXPECT_EQ(kernel.flops, 2 * 8 * 3 * 512 * 256);
  EXPECT_EQ(kernel.read_bytes, 8 * 3 * 512 * 256 * 2 + 2 * 256 * 2);
  sizes.push_back({"scheme", QuantScheme::kFp8});
  EXPECT_EQ(kernels_of_sizes("experts", DType::kBf16, sizes).front().read_bytes,
            8 * 3 * 512 * 256 + 2 * 256 * 2);
}

TEST(Experts, ASkewedLoadLeavesSomeIdleAndFillsOneRank) {
  const ExpertLoad even = expert_load(256, 8, 256, 8, 0);
  const ExpertLoad skewed = expert_load(256, 8, 256, 8, 120);
  EXPECT_EQ(even.active_experts, 32);
  EXPECT_EQ(even.assignments, 256);
  EXPECT_LT(skewed.active_experts, 32);
  EXPECT_GT(skewed.assignments, 256);
  // All ranks together do all the work.
  EXPECT_NEAR(expert_load(256, 8, 256, 1, 120).assignments, 2048, 1);
}

/// Of random layers: every pair is computed by an expert, no expert gets a token twice, and the
/// busiest rank has at least the mean and never less with a larger exponent.
TEST(Experts, ASkewedLoadKeepsAllTokensAndGrowsWithTheExponent) {
  Rng rng(19);
  int capped = 0;
  for (int trial = 0; trial < 300; ++trial) {
    const int64_t ranks = int64_t{1} << rng.below(6);
    const int64_t experts = ranks * static_cast<int64_t>(1 + rng.below(12));
    const int64_t top_k =
        1 + static_cast<int64_t>(rng.below(static_cast<uint64_t>(std::min<int64_t>(experts, 10))));
    const int64_t tokens = rng.log_uniform(18);
    const auto all = static_cast<double>(tokens * top_k);
    double before = all / static_cast<double>(ranks);
    for (int64_t skew = 1; skew <= 300; skew += static_cast<int64_t>(1 + rng.below(40))) {
      const std::vector<double> pairs = expert_pairs(tokens, top_k, experts, skew);
      double sum = 0;
      for (size_t i = 0; i < pairs.size(); ++i) {
        sum += pairs[i];
        EXPECT_LE(pairs[i], static_cast<double>(tokens));
        if (i > 0) {
          EXPECT_LE(pairs[i], pairs[i - 1] * (1 + 1e-9));
        }
      }
      capped += pairs[0] == static_cast<double>(tokens) ? 1 : 0;
      EXPECT_NEAR(sum, all, 1e-9 * all);
      const ExpertLoad busiest = expert_load(tokens, top_k, experts, ranks, skew);
      const double own = static_cast<double>(experts) / static_cast<double>(ranks);
      EXPECT_GE(busiest.assignments, before * (1 - 1e-9))
          << tokens << " " << top_k << " " << experts << " " << ranks << " " << skew;
      EXPECT_LE(busiest.assignments, std::min(own * static_cast<double>(tokens), all) * (1 + 1e-9));
      const int64_t measured = std::min<int64_t>(skew, 120);
      EXPECT_EQ(busiest.active_experts,
                expert_load(tokens, top_k, experts, ranks, measured).active_experts);
      EXPECT_GT(busiest.active_experts, 0);
      EXPECT_LE(busiest.active_experts, own);
      before = busiest.assignments;
    }
  }
  EXPECT_GT(capped, 100);
}

TEST(Experts, ASmallExponentIsFarFromEven) {
  const std::vector<double> pairs = expert_pairs(32768, 2, 8, 1);
  EXPECT_NEAR(pairs.front() / 8192, 1.88, 0.02);
  EXPECT_NEAR(pairs.back() / 8192, 0.12, 0.02);
}

/// Against placements drawn at random.
TEST(Experts, TheBusiestRankIsThatOfRandomPlacements) {
  Rng rng(7);
  for (const auto& [experts, top_k, ranks] :
       {std::array<int64_t, 3>{64, 6, 8}, {256, 8, 32}, {128, 8, 64}, {8, 2, 4}}) {
    for (const int64_t skew : {1, 60, 101, 120}) {
      std::vector<double> load = expert_pairs(8192, top_k, experts, skew);
      const auto own = static_cast<size_t>(experts / ranks);
      constexpr int kDraws = 400;
      double sum = 0;
      for (int draw = 0; draw < kDraws; ++draw) {
        rng.shuffle(load);
        double most = 0;
        for (size_t i = 0; i < load.size(); i += own)
          most = std::max(most, std::accumulate(load.begin() + static_cast<int64_t>(i),
                                                load.begin() + static_cast<int64_t>(i + own), 0.0));
        sum += most;
      }
      EXPECT_NEAR(expert_load(8192, top_k, experts, ranks, skew).assignments / (sum / kDraws), 1,
                  0.35)
          << experts << " " << skew;
    }
  }
}

TEST(Schemes, BytesHoldTheScales) {
  EXPECT_EQ(scheme_bytes(QuantScheme::kNone, 1024, DType::kBf16), 2048);
  EXPECT_EQ(scheme_bytes(QuantScheme::kFp8, 1024, DType::kBf16), 1024);
  EXPECT_EQ(scheme_bytes(QuantScheme::kInt4WeightOnly, 1024, DType::kBf16), 512 + 8 * 20 / 8);
  EXPECT_EQ(scheme_bytes(QuantScheme::kFp4WeightOnly, 1024, DType::kBf16), 512 + 32);
  EXPECT_EQ(compute_dtype(QuantScheme::kInt4WeightOnly, DType::kBf16), DType::kBf16);
  EXPECT_EQ(compute_dtype(QuantScheme::kFp8Block, DType::kBf16), DType::kFp8);
}

constexpr const char* kTwoLayers = R"(graph two
input x: fp32[4, 128]
weight e: fp32[128, 128]
segment layers x2
  weight w: fp32[128, 128]
  y = linear(x, w) "mlp.fc"
  z = relu(y)
  carry x -> z
segment head x1
  o = linear(z, e)
output o
)";

TEST(Notation, RoundTrips) {
  const Graph graph = parse_graph(kTwoLayers, "two.tcg");
  EXPECT_EQ(graph.segments.size(), 2u);
  EXPECT_EQ(graph.segments[0].repeat, 2);
  EXPECT_EQ(graph.nodes[0].name, "mlp.fc");
  const std::string once = format_graph(graph);
  EXPECT_EQ(format_graph(parse_graph(once, "again")), once);
}

TEST(Notation, AttributesAreReadAndWrittenByTheirType) {
  const Graph graph = parse_graph(
      "input x: bf16[4, 128]\nweight w: fp8[64, 128]\nbuffer s: fp32[1]\n"
      "y = quantized_linear(x, w, s) {scheme=fp8_block}\nc = cast(y) {dtype=fp16}\n"
      "v = view(c) {shape=[256]}\na, b = split(v) {parts=2}\n",
      "g");
  EXPECT_EQ(attribute<QuantScheme>(graph.nodes[0], "scheme"), QuantScheme::kFp8Block);
  EXPECT_EQ(attribute<DType>(graph.nodes[1], "dtype"), DType::kFp16);
  EXPECT_EQ(attribute<Shape>(graph.nodes[2], "shape"), Shape{256});
  EXPECT_EQ(attribute<int64_t>(graph.nodes[3], "parts"), 2);
  const std::string text = format_graph(graph);
  for (const char* part : {"{scheme=fp8_block}", "{dtype=fp16}", "{shape=[256]}", "{parts=2}"})
    EXPECT_NE(text.find(part), std::string::npos) << text;
  EXPECT_EQ(format_graph(parse_graph(text, "again")), text);
}

constexpr const char* kTracedStep = R"(graph step
input x: fp32[8, 16]
weight w: fp32[32, 16]
weight f: fp32[32] frozen
gradient w.grad: fp32[32, 16]
segment forward x1
  y = linear(x, w, f)
  v = alias(y) {shape=[32, 8], dense=0}
  r = relu(y) into y
  s, i = stream(r) {outputs="fp32[8] int64[8]", flops=256, unmapped="aten.frob"}
  e = allocate() {outputs="bf16[4]"}
segment backward x1
  phase backward
  d = activation_backward(r, r)
  h = hold(v, s)
  g = gemm(d, x) {transpose_a=1}
  a = add_(w.grad, g)
output s
)";

TEST(Notation, KeepsTheBackwardPassOfATracedStep) {
  const Graph graph = parse_graph(kTracedStep, "step.tcg");
  EXPECT_EQ(graph.nodes[0].phase, Phase::kForward);
  EXPECT_EQ(graph.nodes.back().phase, Phase::kBackward);
  const auto named = [&](std::string_view name) {
    return std::find_if(graph.tensors.begin(), graph.tensors.end(),
                        [&](const Tensor& tensor) { return tensor.name == name; });
  };
  EXPECT_TRUE(named("f")->frozen);
  EXPECT_EQ(named("w.grad")->kind, TensorKind::kGradient);
  EXPECT_EQ(named("r")->storage, named("y")->storage);  // in place
  EXPECT_EQ(named("v")->storage, named("y")->storage);
  EXPECT_FALSE(named("v")->contiguous);
  EXPECT_EQ(named("i")->dtype, DType::kInt64);
  EXPECT_EQ(named("e")->shape, Shape{4});
  const std::string once = format_graph(graph);
  EXPECT_NE(once.find("frozen"), std::string::npos);
  EXPECT_NE(once.find(" into "), std::string::npos);
  EXPECT_NE(once.find("phase backward"), std::string::npos);
  EXPECT_EQ(format_graph(parse_graph(once, "again")), once);
}

TEST(Notation, SaysWhatIsWrongWithAPhaseOrATarget) {
  EXPECT_ERROR(parse_graph("input x: fp32[4]\nphase backwards\ny = relu(x)\n", "g"), kInput,
               "g:2: expected a phase (forward, backward, optimizer), found 'backwards'");
  EXPECT_ERROR(parse_graph("input x: fp32[4]\ny = relu(x) into z\n", "g"), kInput,
               "g:2: unknown tensor 'z'");
  EXPECT_ERROR(parse_graph("input x: fp32[4]\ny = stream(x) {outputs=\"fp32\"}\n", "g"), kInput,
               "expected a dtype and a shape like 'fp32[2, 3]', found 'fp32'");
}

TEST(Stream, ReadsAndWritesItsTensorsOnce) {
  const std::vector<Kernel> kernels = lower_first(
      "input x: fp32[8, 16]\nv, i = stream(x) {outputs=\"fp32[8] int64[8]\", flops=128}\n");
  ASSERT_EQ(kernels.size(), 1u);
  EXPECT_EQ(kernels[0].read_bytes, 8 * 16 * 4);
  EXPECT_EQ(kernels[0].write_bytes, 8 * 4 + 8 * 8);
  EXPECT_EQ(kernels[0].flops, 128);
  EXPECT_EQ(lower_first("input x: fp32[8, 16]\nv = stream(x) {outputs=\"fp32[2]\", "
                        "read_bytes=12}\n")[0]
                .read_bytes,
            12);
}

TEST(Attributes, ThoseThatAreMissingHaveTheTablesDefault) {
  const Graph graph = parse_graph(
      "input x: fp32[1, 2, 8, 8]\nweight w: fp32[2, 2, 3, 3]\ny = conv2d(x, w) {stride=2}\n", "g");
  EXPECT_EQ(attribute<int64_t>(graph.nodes[0], "stride"), 2);
  EXPECT_EQ(attribute<int64_t>(graph.nodes[0], "padding"), 0);
  EXPECT_EQ(attribute<int64_t>(graph.nodes[0], "groups"), 1);
}

TEST(Attributes, ValuesAreReadAsTheirTypesAreWritten) {
  for (const AttributeValue& value :
       {AttributeValue(int64_t{-3}), AttributeValue(0.25), AttributeValue(1e-5),
        AttributeValue(DType::kFp8), AttributeValue(QuantScheme::kNone),
        AttributeValue(QuantScheme::kInt4WeightOnly)})
    EXPECT_EQ(parse_value(static_cast<AttributeType>(value.index()), format_value(value), "x"),
              value)
        << format_value(value);
  EXPECT_EQ(parse_value(AttributeType::kText, "tanh", "x"), AttributeValue(std::string("tanh")));
  EXPECT_ERROR(parse_value(AttributeType::kNumber, "0.5x", "x"), kInput,
               "x: expected a number, found '0.5x'");
}

TEST(Attributes, ErrorsNameNodeAttributeAndWhatWasExpected) {
  const auto cast = [](std::vector<Attribute> attributes) {
    Graph graph;
    GraphBuilder b(graph);
    b.begin_segment("main", 1);
    b.op("cast", {b.input("x", {4}, DType::kFp32)}, "to", std::move(attributes));
  };
  EXPECT_NO_THROW(cast({{"dtype", DType::kBf16}}));
  EXPECT_ERROR(cast({{"dtype", 3}}), kInput,
               "node 'to' (cast): attribute 'dtype': expected a dtype, found 3");
  EXPECT_ERROR(cast({}), kInput, "attribute 'dtype' is missing");
  EXPECT_ERROR(cast({{"dtype", DType::kBf16}, {"dtype", DType::kFp16}}), kInput,
               "attribute 'dtype' is given twice");
  EXPECT_ERROR(cast({{"type", DType::kBf16}}), kInput, "unknown attribute 'type'; known: dtype");
  const auto parse = [](const std::string& node) {
    parse_graph("input x: fp32[1, 2, 8, 8]\nweight w: fp32[2, 2, 3, 3]\n" + node, "g");
  };
  EXPECT_ERROR(parse("y = conv2d(x, w) {stride=0}"), kInput,
               "g:3: node 'y' (conv2d): attribute 'stride': expected a whole number ≥ 1, found 0");
  EXPECT_ERROR(parse("y = matmul(x, x) {transpose_b=2}"), kInput,
               "attribute 'transpose_b': expected a whole number from 0 to 1, found 2");
  EXPECT_ERROR(parse("y = cast(x) {dtype=bf17}"), kInput,
               "g:3: attribute 'dtype': unknown dtype 'bf17'");
  EXPECT_ERROR(parse("y = cast(x) {dtype=3}"), kInput, "g:3: attribute 'dtype': unknown dtype '3'");
  EXPECT_ERROR(parse("y = conv2d(x, w) {stride=-1}"), kInput, "≥ 1, found -1");
  EXPECT_ERROR(parse("y = conv2d(x, w) {stride=fast}"), kInput,
               "g:3: attribute 'stride': expected a whole number, found 'fast'");
  EXPECT_ERROR(parse("y = conv2d(x, w) {stride=}"), kInput, "expected a whole number, found '}'");
  EXPECT_ERROR(parse("y = relu(x) {slope=3}"), kInput,
               "g:3: relu: unknown attribute 'slope'; known: none");
}

TEST(Notation, OldNamesOfAttributesAreRead) {
  const auto parse = [](const std::string& attributes) {
    return parse_graph(
        "input x: bf16[64, 256]\nweight a: bf16[8, 1024, 256]\nweight b: bf16[8, 256, 512]\n"
        "y = experts(x, a, b) {" +
            attributes + "}\n",
        "g");
  };
  EXPECT_EQ(parse("chosen=2"), parse("top_k=2"));
  EXPECT_ERROR(parse("chosen=2, top_k=2"), kInput, "attribute 'top_k' is given twice");
}

TEST(Notation, ErrorsNameTheLine) {
  EXPECT_ERROR(parse_graph("input x: fp32[4]\ny = relu(z)\n", "g"), kInput,
               "g:2: unknown tensor 'z'");
  EXPECT_ERROR(
      parse_graph("input x: fp32[4, 8]\nweight w: fp32[3, 9]\ny = linear(x, w)\n", "g"), kInput,
      "g:3: node 'y' (linear): inner dimensions differ: x [4, 8] x weight [3, 9] (8 != 9)");
  EXPECT_ERROR(parse_graph("input x: fp32[4]\ny = rellu(x)\n", "g"), kNotFound,
               "g:2: unknown operator 'rellu'; did you mean 'relu'");
  EXPECT_ERROR(parse_graph("input x: fp32[0]\n", "g"), kInput, "at least 1, found 0");
  EXPECT_ERROR(parse_graph("input x: fp32[4\n", "g"), kInput, "g:1: expected ','");
  EXPECT_ERROR(parse_graph("inptu x: fp32[4]\n", "g"), kInput, "did you mean 'input'");
  EXPECT_ERROR(parse_graph("", "g"), kInput, "the graph has no operator");
  EXPECT_ERROR(parse_graph("input x: fp32[4294967296, 4294967296]\n", "g"), kInput, "64 bits");
}

}  // namespace
}  // namespace tilecast
