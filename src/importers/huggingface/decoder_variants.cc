// Fields that single families have, beyond the common ones: functions of the table of families
// (decoder_families.cc).

#include <fmt/format.h>

#include "importers/huggingface/decoder_reading.h"
#include "importers/huggingface/layers.h"
#include "tilecast/error.h"

namespace tilecast {

using QkNorm = DecoderTraits::QkNorm;

/// `use_bias`, or another field, switches all biases.
static void all_biases(const JsonObject& c, DecoderConfig& config, const std::string& key,
                       bool fallback) {
  config.qkv_bias = config.out_bias = config.mlp_bias = c.boolean(key, fallback);
}

void use_bias(const JsonObject& c, DecoderConfig& config) {
  all_biases(c, config, "use_bias", false);
}

void moe(const JsonObject& c, DecoderConfig& config) {
  read_experts(c, config);
  read_shared_experts(c, config);
}

void mixtral(const JsonObject& c, DecoderConfig& config) {
  read_experts(c, config, {"num_local_experts", "num_experts"}, "intermediate_size");
  config.experts.shared_ffn_dim =
      c.optional_integer({"shared_intermediate_size"}, 0, kLargestConfigSize).value_or(0);
  config.head_bias = c.boolean("lm_head_bias", false);
}

void qwen2_moe(const JsonObject& c, DecoderConfig& config) {
  config.qkv_bias = c.boolean("qkv_bias", true);
  read_experts(c, config, {"num_experts", "num_local_experts"}, "moe_intermediate_size");
  config.experts.shared_ffn_dim =
      c.integer({"shared_expert_intermediate_size"}, 0, kLargestConfigSize);
  config.experts.shared_gate = true;
}

void qwen3_moe(const JsonObject& c, DecoderConfig& config) {
  read_experts(c, config, {"num_experts", "num_local_experts"}, "moe_intermediate_size");
}

void softcaps(const JsonObject& c, DecoderConfig& config) {
  const auto caps = [&](const char* key) { return c.has(key) && c.number(key) != 0; };
  config.attention_softcap = caps("attn_logit_softcapping");
  config.logit_softcap = caps("final_logit_softcapping");
}

void gemma3(const JsonObject& c, DecoderConfig& config) {
  softcaps(c, config);
  read_windows(
      c, config, "sliding_window",
      c.optional_integer({"sliding_window_pattern", "_sliding_window_pattern"}, 1, kMaxLayers)
          .value_or(6));
}

void gpt_oss(const JsonObject& c, DecoderConfig& config) {
  read_experts(c, config, {"num_local_experts", "num_experts"}, "intermediate_size");
  config.experts.bias = true;
  config.experts.clamped = true;  // transformers' GptOssExperts: limit 7, whatever the config says
}

void glm4_moe(const JsonObject& c, DecoderConfig& config) {
  if (c.boolean("use_qk_norm", false)) config.qk_norm = QkNorm::kHead;
  read_experts(c, config, {"n_routed_experts"}, "moe_intermediate_size");
  read_shared_experts(c, config);
}

void deepseek(const JsonObject& c, DecoderConfig& config) {
  read_latent(c, config);
  read_experts(c, config, {"n_routed_experts"}, "moe_intermediate_size");
  read_shared_experts(c, config);
}

void deepseek_sparse(const JsonObject& c, DecoderConfig& config) {
  deepseek(c, config);
  read_indexer(c, config);
}

void minimax_m2(const JsonObject& c, DecoderConfig& config) {
  for (const Json& type : c.json().value("attn_type_list", Json::array())) {
    if (type != 1)
      throw Error(ErrorKind::kUnsupported,
                  c.where() + ": 'attn_type_list': linear attention is not forecast");
  }
  if (c.boolean("use_qk_norm", true)) config.qk_norm = QkNorm::kAllHeads;
  read_experts(c, config, {"num_local_experts"}, "intermediate_size");
}

void llama4(const JsonObject& c, DecoderConfig& config) {
  read_experts(c, config, {"num_local_experts"}, "intermediate_size");
  config.experts.shared_ffn_dim = config.experts.ffn_dim;
  config.ffn_dim = c.integer({"intermediate_size_mlp"}, 1, kLargestConfigSize);
  if (c.boolean("use_qk_norm", true)) config.qk_norm = QkNorm::kHeadNoWeight;
  read_windows(c, config, "attention_chunk_size", 4);
}

/// Heads, positions and biases of Falcon are in fields of their own.
void falcon(const JsonObject& c, DecoderConfig& config) {
  const bool grouped = c.boolean("new_decoder_architecture", false);
  config.kv_heads = grouped ? c.integer({"num_kv_heads", "n_head_kv"}, 1, kLargestConfigSize)
                    : c.boolean("multi_query", true) ? 1
                                                     : config.heads;
  if (config.heads % config.kv_heads != 0)
    c.fail("num_kv_heads",
           fmt::format("{} does not divide the {} attention heads", config.kv_heads, config.heads));
  config.head_dim =
      head_dim_of(c, "hidden_size", config.hidden_dim, "num_attention_heads", config.heads);
  config.ffn_dim = c.optional_integer({"ffn_hidden_size"}, 1, kLargestConfigSize)
                       .value_or(4 * config.hidden_dim);
  config.activation = c.optional_string({"activation"}).value_or("gelu");
  check_activation(c, "activation", config.activation);
  config.parallel_attention = grouped || c.boolean("parallel_attn", true);
  config.parallel_norm =
      grouped &&
      c.optional_integer({"num_ln_in_parallel_attn"}, 1, kLargestConfigSize).value_or(2) == 2;
  config.equal_heads = !grouped;  // else keys are copied to all heads
  // Beside each other, the sum of both results is dropped once.
  config.mixer_dropout = !config.parallel_attention && drops(c, "attention_dropout", 0);
  config.rotary = !c.boolean("alibi", false);
  if (config.rotary) config.attention_dropout = false;  // its code drops scores with ALiBi alone
  all_biases(c, config, "bias", false);
}

namespace {

void parallel_residual(const JsonObject& c, DecoderConfig& config) {
  config.parallel_attention = c.boolean("use_parallel_residual", config.parallel_attention);
}

}  // namespace

void gpt_neox(const JsonObject& c, DecoderConfig& config) {
  parallel_residual(c, config);
  config.embedding_dropout = drops(c, "hidden_dropout", 0);
}

void stablelm(const JsonObject& c, DecoderConfig& config) {
  parallel_residual(c, config);
  config.mixer_dropout = false;
  config.qkv_bias = c.boolean("use_qkv_bias", false);
  if (c.boolean("qk_layernorm", false)) config.qk_norm = QkNorm::kAllHeads;
}

void phi(const JsonObject& c, DecoderConfig& config) {
  if (c.boolean("qk_layernorm", false)) config.qk_norm = QkNorm::kHeadLayerNorm;
}

void persimmon(const JsonObject& c, DecoderConfig& config) {
  config.mixer_dropout = false;
  if (!c.boolean("qk_layernorm", true)) config.qk_norm = QkNorm::kNone;
}

void cohere(const JsonObject& c, DecoderConfig& config) {
  if (c.boolean("use_qk_norm", false)) config.qk_norm = QkNorm::kAllHeads;
  if (c.has("num_experts")) moe(c, config);
}

void gpt_bigcode(const JsonObject& c, DecoderConfig& config) {
  config.kv_heads = c.boolean("multi_query", true) ? 1 : config.heads;
}

/// `attention_layers` lists "global" and "local".
void gpt_neo(const JsonObject& c, DecoderConfig& config) {
  const std::vector<std::string> kinds =
      layer_words(c, config, "attention_layers", {"global", "local"});
  for (size_t i = 0; i < kinds.size(); ++i) {
    if (kinds[i] == "local")
      config.layers[i].window = c.integer({"window_size"}, 1, kLargestConfigSize);
  }
}

void mpt(const JsonObject& c, DecoderConfig& config) {
  config.ffn_dim = config.hidden_dim *
                   c.optional_integer({"expansion_ratio"}, 1, kLargestConfigSize).value_or(4);
  // One probability for all; its code does not use `resid_pdrop` and `emb_pdrop`.
  config.attention_dropout =
      c.has("attn_config") && drops(c.object("attn_config"), "attn_pdrop", 0);
  config.dropout = config.mixer_dropout = config.attention_dropout;
}

void seed_oss(const JsonObject& c, DecoderConfig& config) {
  config.out_bias = c.boolean("attention_out_bias", false);
}

void starcoder2(const JsonObject& c, DecoderConfig& config) {
  all_biases(c, config, "use_bias", true);
}

void exaone4(const JsonObject& c, DecoderConfig& config) {
  read_windows(c, config, "sliding_window", c.has("layer_types") ? 4 : 0);
}

void balanced_moe(const JsonObject& c, DecoderConfig& config) {
  use_bias(c, config);
  moe(c, config);
  config.experts.score_correction_bias = true;
}

void afmoe(const JsonObject& c, DecoderConfig& config) {
  moe(c, config);
  config.experts.score_correction_bias = true;
}

}  // namespace tilecast
