// The two forms of a decoder, as eager PyTorch runs it and as serving software does, are one model:
// same parameters, same matrix products.

#include <gtest/gtest.h>

#include <algorithm>

#include "importers/huggingface/decoder.h"
#include "importers/model.h"
#include "ops/builder.h"
#include "ops/op_def.h"
#include "passes/serving.h"

namespace tilecast {
namespace {

constexpr int64_t kBatch = 3, kSeq = 16, kWidth = 64, kVocabulary = 96;

/// Llama-Nemotron's layers: some without attention or MLP.
Json blocks() {
  Json all = Json::array();
  for (int i = 0; i < 5; ++i)
    all.push_back(
        {{"attention", {{"no_op", i == 1}, {"n_heads_in_group", i == 1 ? Json() : Json(2)}}},
         {"ffn", {{"no_op", i == 2}, {"ffn_mult", 3.0}}}});
  return all;
}

/// A config that has the fields of all families; each reads its own.
Json config_of(const std::string& type) {
  return {{"model_type", type},
          {type == "gemma" ? "hidden_act" : "", "silu"},  // its default is a gelu
          {"hidden_size", kWidth},
          {"num_attention_heads", 4},
          {"num_key_value_heads", 2},
          {"head_dim", 16},
          {"num_hidden_layers", 5},
          {"intermediate_size", 128},
          {"intermediate_size_mlp", 112},
          {"moe_intermediate_size", 32},
          {"dense_intermediate_size", 128},
          {"shared_intermediate_size", 32},
          {"shared_expert_intermediate_size", 48},
          {"max_position_embeddings", 128},
          {"vocab_size", kVocabulary},
          {"num_experts", 8},
          {"num_local_experts", 8},
          {"n_routed_experts", 8},
          {"n_shared_experts", 2},
          {"num_experts_per_tok", 2},
          {"first_k_dense_replace", 1},
          {"sliding_window", 8},
          {"attn_logit_softcapping", 50.0},
          {"final_logit_softcapping", 30.0},
          {"ffn_dim", 144},
          {"new_decoder_architecture", true},
          {"num_kv_heads", 2},
          {"activation_function", "relu"},
          {"use_qk_norm", true},
          {"use_routing_bias", true},
          {"kv_lora_rank", 24},
          {"q_lora_rank", 40},
          {"qk_nope_head_dim", 16},
          {"qk_rope_head_dim", 8},
          {"v_head_dim", 12},
          {"share_expert_dim", 32},
          {"window_size", 8},
          {"multi_query", false},
          // recurrent layers
          {"linear_num_value_heads", 4},
          {"linear_value_head_dim", 16},
          {"linear_num_key_heads", 2},
          {"linear_key_head_dim", 8},
          {"linear_conv_kernel_dim", 4},
          {"linear_num_heads", 4},
          {"linear_head_dim", 16},
          {"mamba_n_heads", 8},
          {"mamba_d_head", 16},
          {"mamba_n_groups", 2},
          {"mamba_d_state", 8},
          {"mamba_d_conv", 4},
          {"attn_layer_indices", {1, 3}},
          {"mamba_num_heads", 8},
          {"mamba_head_dim", 16},
          {"n_groups", 2},
          {"ssm_state_size", 8},
          {"conv_kernel", 4},
          {"num_heads", 8},
          {"state_size", 8},
          {"hybrid_override_pattern", "ME*-M"},
          {"mlp_hidden_act", "relu"},
          {"moe_latent_size", 24},
          // sparse and compressed attention
          {"index_n_heads", 4},
          {"index_head_dim", 8},
          {"index_topk", 2048},
          {"index_block_size", 8},
          {"index_topk_blocks", 16},
          {"hc_mult", 2},
          {"o_groups", 2},
          {"o_lora_rank", 8},
          {"compress_ratios", {0, 4, 8, 4, 8}},
          // layers that differ
          {"block_configs", blocks()},
          {"num_kv_shared_layers", 1},
          {"hidden_size_per_layer_input", 8},
          {"enable_moe_block", true},
          {"attention_k_eq_v", true}};
}

bool is_output_layer(const Node& node) { return node.name == "lm_head"; }

/// Operators that eager PyTorch computes by products, and serving software in other kernels: the
/// scores of an indexer, the mixing of residual streams.
bool is_other_kernel(const Node& node) {
  return node.name.ends_with("indexer.select") || node.name.ends_with("_hc.update");
}

/// FLOPs of the matrix products of all layers; products of a table of angles are left out, for
/// serving software makes it once and for all.
int64_t product_flops(const Graph& graph) {
  int64_t total = 0;
  for (const Segment& segment : graph.segments) {
    for (int32_t i = 0; i < segment.node_count; ++i) {
      const Node& node = graph.nodes[static_cast<size_t>(segment.first_node + i)];
      std::vector<Kernel> kernels;
      lower_node(graph, node, kernels);
      for (const Kernel& k : kernels) {
        if (k.uses_matrix_units() && node.name != "rotary_emb" && !is_output_layer(node) &&
            !is_other_kernel(node))
          total += k.flops * segment.repeat;
      }
    }
  }
  return total;
}

/// How often an operator runs.
int64_t count_of(const Graph& graph, std::string_view op) {
  int64_t count = 0;
  for (const Segment& segment : graph.segments) {
    for (int32_t i = 0; i < segment.node_count; ++i) {
      const Node& node = graph.nodes[static_cast<size_t>(segment.first_node + i)];
      if (op_def(node.op).name == op && !is_other_kernel(node)) count += segment.repeat;
    }
  }
  return count;
}

Graph eager(const Model& model) {
  return decompose(model.build({.batch = kBatch, .seq = kSeq, .dtype = DType::kBf16}),
                   {.fused_attention = true});
}

Graph step(const Model& model, std::vector<StepRequest::Group> groups) {
  return fuse(model.build({.dtype = DType::kBf16}), {.groups = std::move(groups)});
}

Model import(const Json& config) { return import_model(config.dump(), "config.json"); }

class EveryDecoder : public testing::TestWithParam<std::string> {
 protected:
  void expect_one_model(const Json& config) {
    const Model model = import(config);
    const Graph whole = eager(model), prompts = step(model, {{kBatch, kSeq, 0}});
    EXPECT_EQ(prompts.parameter_count(), whole.parameter_count());
    EXPECT_EQ(step(model, {{2, 1, 8}, {1, 8, 0}}).parameter_count(), whole.parameter_count());
    EXPECT_EQ(product_flops(prompts), product_flops(whole));
    for (const char* op : {"sigmoid", "tanh", "gelu", "relu", "experts", "softmax", "layer_norm"})
      EXPECT_EQ(count_of(prompts, op), count_of(whole, op)) << op;
  }
};

TEST_P(EveryDecoder, IsTheSameModelEagerAndServed) {
  Json config = config_of(GetParam());
  expect_one_model(config);
  for (const char* key : {"tie_word_embeddings", "attention_bias", "mlp_bias", "alibi"}) {
    config[key] = true;
    SCOPED_TRACE(key);
    expect_one_model(config);
  }
  if (GetParam() == "deepseek_v4") return;  // its queries always have a latent vector
  config["q_lora_rank"] = nullptr;
  config["word_embed_proj_dim"] = 32;
  config["do_layer_norm_before"] = false;
  expect_one_model(config);
}

/// Heads, inner columns and words of the configs above are even: two ranks do half of each product,
/// but for what every rank makes whole.
TEST_P(EveryDecoder, IsDividedByTwoRanks) {
  const Model model = import(config_of(GetParam()));
  const Graph modules = model.build({.batch = kBatch, .seq = kSeq, .dtype = DType::kBf16});
  const Graph half = shard(modules, 2);
  const StepRequest request{.groups = {{kBatch, kSeq, 0}, {2, 1, 5}}};
  int64_t less = 0;
  for (const WeightSplit& split : modules.splits) {
    const Tensor& whole = modules.tensor(split.weight);
    if (whole.kind != TensorKind::kWeight) continue;  // keys of another layer
    less += element_count(whole.shape) / 2 * modules.repeat_of(whole.segment);
  }
  EXPECT_EQ(half.parameter_count(), modules.parameter_count() - less);
  EXPECT_EQ(fuse(half, request).parameter_count(), half.parameter_count());
  const Graph eager_half = decompose(half, {.fused_attention = true});
  EXPECT_EQ(eager_half.parameter_count(), half.parameter_count());
  EXPECT_EQ(product_flops(eager_half), product_flops(fuse(half, {.groups = {{kBatch, kSeq, 0}}})));
  int64_t undivided = 0;  // products whose weight every rank holds
  for (const Segment& segment : modules.segments) {
    for (int32_t i = 0; i < segment.node_count; ++i) {
      const Node& node = modules.nodes[static_cast<size_t>(segment.first_node + i)];
      const auto is_weight = [&](const WeightSplit& s) { return s.weight == node.inputs[1]; };
      if (op_def(node.op).name != "linear" ||
          std::any_of(modules.splits.begin(), modules.splits.end(), is_weight))
        continue;
      undivided +=
          2 * kBatch * kSeq * element_count(modules.tensor(node.inputs[1]).shape) * segment.repeat;
    }
  }
  EXPECT_EQ(2 * product_flops(eager_half), product_flops(eager(model)) + undivided);
}

std::vector<std::string> all_types() {
  std::vector<std::string> types = {"gpt2", "opt"};
  for (const DecoderFamily& family : decoder_families()) types.emplace_back(family.model_type);
  return types;
}

INSTANTIATE_TEST_SUITE_P(Families, EveryDecoder, testing::ValuesIn(all_types()),
                         [](const auto& info) {
                           std::string name = info.param;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

TEST(Decoder, BothFormsHaveTheGateOfSharedExperts) {
  const Model model = import(config_of("qwen2_moe"));
  for (const Graph& graph : {eager(model), step(model, {{2, 1, 8}})})
    EXPECT_EQ(count_of(graph, "sigmoid"), 4);  // the first layer is dense
}

/// FalconAttention of transformers 5.24 calls scaled_dot_product_attention with one key head and
/// without `enable_gqa`: neither fused kernel takes that. The new architecture copies keys to all
/// heads first.
TEST(Decoder, KeyHeadsThatSdpaIsNotToldOfTakeTheMathPath) {
  const auto softmaxes = [](bool grouped, bool one_key_head) {
    Json config = config_of("falcon");
    config["new_decoder_architecture"] = grouped;
    config["multi_query"] = one_key_head;
    return count_of(eager(import(config)), "softmax");
  };
  EXPECT_EQ(softmaxes(false, true), 5);
  EXPECT_EQ(softmaxes(false, false), 0);
  EXPECT_EQ(softmaxes(true, false), 0);
}

/// Dropouts of the graph: of embeddings, then of a layer.
std::pair<int64_t, int64_t> dropouts(Json config) {
  const auto count = [&](int64_t layers) {
    config["num_hidden_layers"] = layers;
    return count_of(import(config).build({.batch = kBatch, .seq = kSeq}), "dropout");
  };
  const int64_t one = count(1), layer = count(2) - one;
  return {one - layer, layer};
}

/// The fields of transformers 5.24, and where modeling_*.py drops.
TEST(Decoder, EachFamilyDropsWhatItsFieldsSay) {
  using Counts = std::pair<int64_t, int64_t>;
  const auto with = [](const char* type, const Json& fields) {
    Json config = {{"model_type", type},           {"hidden_size", 64},
                   {"num_attention_heads", 4},     {"num_hidden_layers", 2},
                   {"intermediate_size", 128},     {"vocab_size", 96},
                   {"max_position_embeddings", 64}};
    config.update(fields);
    return dropouts(config);
  };
  const Json hidden = {{"hidden_dropout", 0.1}};
  EXPECT_EQ(with("starcoder2", {{"residual_dropout", 0.1}}), Counts(0, 2));
  EXPECT_EQ(with("starcoder2", {{"embedding_dropout", 0.1}}), Counts(1, 0));
  EXPECT_EQ(with("gpt_neo", {{"resid_dropout", 0.1}}), Counts(0, 2));
  EXPECT_EQ(with("gpt_neo", {{"embed_dropout", 0.1}}), Counts(1, 0));
  EXPECT_EQ(with("bloom", hidden), Counts(0, 2));
  EXPECT_EQ(with("gpt_neox", hidden), Counts(1, 2));
  EXPECT_EQ(with("persimmon", hidden), Counts(0, 1)) << "not attention's result";
  EXPECT_EQ(with("stablelm", hidden), Counts(0, 1));
  EXPECT_EQ(with("mpt", {{"attn_config", {{"attn_pdrop", 0.1}}}}), Counts(0, 2));
  EXPECT_EQ(with("mpt", {{"resid_pdrop", 0.1}}), Counts(0, 0)) << "not used";
  EXPECT_EQ(with("falcon", hidden), Counts(0, 1)) << "the sum of both results";
  Json in_turn = hidden;
  in_turn["parallel_attn"] = false;
  EXPECT_EQ(with("falcon", in_turn), Counts(0, 1));
  in_turn["attention_dropout"] = 0.1;
  EXPECT_EQ(with("falcon", in_turn), Counts(0, 2));
}

TEST(Decoder, ServingScalesTheEmbeddingAndCapsTheLogits) {
  const Graph graph = step(import(config_of("gemma2")), {{2, 1, 8}});
  EXPECT_EQ(count_of(graph, "tanh"), 1);
  EXPECT_EQ(count_of(graph, "mul_scalar"), 2);
}

TEST(Decoder, ServingRunsTheActivationOfTheConfig) {
  Json config = config_of("falcon");
  for (const char* function : {"relu", "gelu", "silu", "tanh"}) {
    config["activation"] = function;
    EXPECT_EQ(count_of(step(import(config), {{2, 1, 8}}), function), 5) << function;
  }
}

TEST(Decoder, AGateCostsWhatItsActivationDoes) {
  const auto flops = [](const char* function) {
    Json config = config_of("llama");
    config["hidden_act"] = function;
    const Graph graph = step(import(config), {{2, 1, 8}});
    for (const Node& node : graph.nodes) {
      std::vector<Kernel> kernels;
      if (op_def(node.op).name != "gated_activation") continue;
      lower_node(graph, node, kernels);
      return kernels.front().flops;
    }
    return int64_t{0};
  };
  EXPECT_EQ(flops("silu"), 2 * 128 * 5);
  EXPECT_EQ(flops("gelu"), 2 * 128 * 6);
  EXPECT_EQ(flops("relu"), 2 * 128 * 2);
}

TEST(Decoder, ProductsWhoseInputAFusedKernelQuantizesAreMarked) {
  const Model model = import(config_of("llama"));
  const auto marked = [&](QuantScheme scheme, StepFusions fusions,
                          std::vector<StepRequest::Group> groups) {
    const Graph graph = fuse(model.build({.dtype = DType::kBf16}),
                             {.groups = std::move(groups),
                              .scheme_of = [&](std::string_view, Role) { return scheme; },
                              .fusions = fusions});
    std::vector<std::string> names;
    for (const Node& node : graph.nodes) {
      std::vector<Kernel> kernels;
      if (op_def(node.op).name != "quantized_linear") continue;
      lower_node(graph, node, kernels);
      if (kernels.front().quantized_input)
        names.push_back(node.name.substr(node.name.rfind('.') + 1));
    }
    return names;
  };
  using Names = std::vector<std::string>;
  const std::vector<StepRequest::Group> decode = {{2, 1, 8}}, mixed = {{2, 1, 8}, {1, 8, 0}};
  const QuantScheme fp8 = QuantScheme::kFp8;
  EXPECT_EQ(marked(fp8, {}, decode), Names{});
  EXPECT_EQ(marked(fp8, {.norms_quantize = true}, decode), (Names{"qkv_proj", "gate_up_proj"}));
  EXPECT_EQ(marked(fp8, {.gates_quantize = true}, decode), Names{"down_proj"});
  EXPECT_EQ(marked(fp8, {.gates_quantize = true, .compiles_gates = true}, decode),
            Names{"down_proj"});
  EXPECT_EQ(marked(fp8, {.attention_quantizes = true}, decode), Names{"o_proj"});
  EXPECT_EQ(marked(fp8, {.attention_quantizes = true}, mixed), Names{"o_proj"});
  const StepFusions all = {
      .norms_quantize = true, .gates_quantize = true, .attention_quantizes = true};
  StepFusions with_fp4 = all;
  with_fp4.to_fp4 = true;
  // Their scales follow from the values: a kernel before the product finds them.
  EXPECT_EQ(marked(QuantScheme::kFp8Block, all, decode), Names{});
  EXPECT_EQ(marked(QuantScheme::kFp4, all, decode), Names{});
  EXPECT_EQ(marked(QuantScheme::kFp4, with_fp4, decode).size(), 4);
}

}  // namespace
}  // namespace tilecast
