// config.json of the decoder families → DecoderConfig. Field names and defaults are those of
// transformers' configuration classes.

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "importers/huggingface/decoder.h"
#include "importers/huggingface/layers.h"
#include "tilecast/error.h"

namespace tilecast {
namespace {

constexpr int64_t kMaxLayers = 100000;

using Layer = DecoderConfig::Layer;

void read_attention(const JsonObject& c, DecoderConfig& config) {
  config.hidden_dim = c.integer({"hidden_size"}, 1, kLargestConfigSize);
  config.heads = c.integer({"num_attention_heads"}, 1, kLargestConfigSize);
  config.kv_heads =
      c.optional_integer({"num_key_value_heads"}, 1, kLargestConfigSize).value_or(config.heads);
  if (config.heads % config.kv_heads != 0)
    c.fail("num_key_value_heads",
           fmt::format("{} does not divide the {} attention heads", config.kv_heads, config.heads));
  const std::optional<int64_t> head_dim = c.optional_integer({"head_dim"}, 1, kLargestConfigSize);
  config.head_dim = head_dim ? *head_dim
                             : head_dim_of(c, "hidden_size", config.hidden_dim,
                                           "num_attention_heads", config.heads);
  if (config.head_dim % 2 != 0)
    c.fail("num_attention_heads",
           fmt::format("rotary embedding needs an even head_dim, found {}", config.head_dim));
  config.attention_dropout = c.has("attention_dropout") && c.number("attention_dropout") > 0;
  config.qkv_bias = config.out_bias = c.boolean("attention_bias", false);
}

void read_common(const JsonObject& c, DecoderConfig& config) {
  read_attention(c, config);
  config.layers.assign(static_cast<size_t>(c.integer({"num_hidden_layers"}, 1, kMaxLayers)), {});
  config.ffn_dim = c.integer({"intermediate_size"}, 1, kLargestConfigSize);
  config.max_positions =
      scaled_positions(c, c.integer({"max_position_embeddings"}, 1, kLargestConfigSize));
  config.vocab_size = c.integer({"vocab_size"}, 1, kLargestConfigSize);
  config.activation = c.optional_string({"hidden_act", "hidden_activation"}).value_or("silu");
  check_activation(c, c.has("hidden_act") ? "hidden_act" : "hidden_activation", config.activation);
  config.mlp_bias = c.boolean("mlp_bias", false);
  config.tied_embeddings = c.boolean("tie_word_embeddings", false);
}

/// Which layers have a sliding window: `layer_types` lists them, else all but every `pattern`-th.
void read_windows(const JsonObject& c, DecoderConfig& config, const std::string& key,
                  int64_t pattern) {
  const std::optional<int64_t> window = c.optional_integer({key}, 0, kLargestConfigSize);
  if (!window || *window == 0) return;
  if (c.has("layer_types")) {
    const std::vector<std::string> types = c.strings("layer_types");
    if (types.size() != config.layers.size())
      c.fail("layer_types", fmt::format("expected one for each of {} layers, found {}",
                                        config.layers.size(), types.size()));
    for (size_t i = 0; i < types.size(); ++i) {
      if (types[i] == "sliding_attention" || types[i] == "chunked_attention") {
        config.layers[i].window = *window;
      } else if (types[i] != "full_attention") {
        c.fail("layer_types", fmt::format("unknown type '{}'; known: full_attention, "
                                          "sliding_attention, chunked_attention",
                                          shown_name(types[i])));
      }
    }
    return;
  }
  for (size_t i = 0; i < config.layers.size(); ++i) {
    if (pattern == 1 || (i + 1) % static_cast<size_t>(pattern) != 0)
      config.layers[i].window = *window;
  }
}

void read_experts(const JsonObject& c, DecoderConfig& config,
                  const std::vector<std::string>& count_keys, const std::string& inner_key) {
  constexpr int64_t kMaxExperts = 1 << 16;
  DecoderConfig::Experts& e = config.experts;
  e.num_experts = c.integer(count_keys, 1, kMaxExperts);
  e.top_k = c.integer({"num_experts_per_tok"}, 1, kMaxExperts);
  if (e.top_k > e.num_experts)
    c.fail("num_experts_per_tok", fmt::format("{} is more than the {} experts ('{}')", e.top_k,
                                              e.num_experts, count_keys[0]));
  e.ffn_dim = c.integer({inner_key}, 1, kLargestConfigSize);
  const int64_t step =
      c.optional_integer({"decoder_sparse_step", "interleave_moe_layer_step"}, 1, kMaxLayers)
          .value_or(1);
  const int64_t dense = c.optional_integer({"first_k_dense_replace"}, 0, kMaxLayers).value_or(0);
  for (size_t i = 0; i < config.layers.size(); ++i) {
    const auto index = static_cast<int64_t>(i);
    config.layers[i].is_moe = index >= dense && (index + 1) % step == 0;
  }
  if (const Json& only = c.json().value("mlp_only_layers", Json::array()); only.is_array()) {
    for (const Json& item : only) {
      if (!item.is_number_unsigned() || item.get<size_t>() >= config.layers.size())
        c.fail("mlp_only_layers", "expected numbers of layers");
      config.layers[item.get<size_t>()].is_moe = false;
    }
  }
}

void read_latent(const JsonObject& c, DecoderConfig& config) {
  DecoderConfig::Latent& l = config.latent;
  l.q_lora_rank = c.optional_integer({"q_lora_rank"}, 0, kLargestConfigSize).value_or(0);
  l.kv_lora_rank = c.integer({"kv_lora_rank"}, 1, kLargestConfigSize);
  l.qk_rope_head_dim = c.integer({"qk_rope_head_dim"}, 2, kLargestConfigSize);
  l.qk_nope_head_dim = c.integer({"qk_nope_head_dim"}, 1, kLargestConfigSize);
  l.v_head_dim = c.integer({"v_head_dim"}, 1, kLargestConfigSize);
}

void llama(const JsonObject&, DecoderConfig&) {}

void mistral(const JsonObject& c, DecoderConfig& config) {
  read_windows(c, config, "sliding_window", 1);
}

void qwen2(const JsonObject&, DecoderConfig& config) {
  config.qkv_bias = true;
  config.out_bias = false;
}

void qwen3(const JsonObject&, DecoderConfig& config) { config.qk_norm = true; }

void mixtral(const JsonObject& c, DecoderConfig& config) {
  read_windows(c, config, "sliding_window", 1);
  read_experts(c, config, {"num_local_experts"}, "intermediate_size");
}

void qwen2_moe(const JsonObject& c, DecoderConfig& config) {
  config.qkv_bias = c.boolean("qkv_bias", true);
  read_experts(c, config, {"num_experts", "num_local_experts"}, "moe_intermediate_size");
  config.experts.shared_ffn_dim =
      c.integer({"shared_expert_intermediate_size"}, 0, kLargestConfigSize);
  config.experts.shared_gate = true;
}

void qwen3_moe(const JsonObject& c, DecoderConfig& config) {
  config.qk_norm = true;
  read_experts(c, config, {"num_experts", "num_local_experts"}, "moe_intermediate_size");
}

void gemma2(const JsonObject& c, DecoderConfig& config) {
  config.wide_norm_weight = true;
  config.post_norms = config.scaled_embedding = true;
  config.tied_embeddings = c.boolean("tie_word_embeddings", true);
  config.attention_softcap =
      c.has("attn_logit_softcapping") && c.number("attn_logit_softcapping") != 0;
  config.logit_softcap =
      c.has("final_logit_softcapping") && c.number("final_logit_softcapping") != 0;
  read_windows(c, config, "sliding_window", 2);
}

void gemma3(const JsonObject& c, DecoderConfig& config) {
  gemma2(c, config);
  config.qk_norm = true;
  for (Layer& layer : config.layers) layer.window = 0;
  const int64_t pattern =
      c.optional_integer({"sliding_window_pattern", "_sliding_window_pattern"}, 1, kMaxLayers)
          .value_or(6);
  read_windows(c, config, "sliding_window", pattern);
}

void phi3(const JsonObject& c, DecoderConfig& config) {
  config.fused_qkv = config.fused_gate = true;
  read_windows(c, config, "sliding_window", 1);
}

void gpt_oss(const JsonObject& c, DecoderConfig& config) {
  config.sinks = config.wide_norm_weight = true;
  config.softmax_fp32 = false;
  config.qkv_bias = config.out_bias = c.boolean("attention_bias", true);
  read_windows(c, config, "sliding_window", 2);
  read_experts(c, config, {"num_local_experts", "num_experts"}, "intermediate_size");
  config.experts.bias = true;
}

void glm4(const JsonObject& c, DecoderConfig& config) {
  config.qkv_bias = c.boolean("attention_bias", true);
  config.out_bias = false;
  config.post_norms = config.fused_gate = true;
}

void glm4_moe(const JsonObject& c, DecoderConfig& config) {
  config.qkv_bias = c.boolean("attention_bias", false);
  config.out_bias = false;
  config.qk_norm = c.boolean("use_qk_norm", false);
  read_experts(c, config, {"n_routed_experts"}, "moe_intermediate_size");
  config.experts.shared_ffn_dim =
      config.experts.ffn_dim * c.optional_integer({"n_shared_experts"}, 0, 1024).value_or(0);
}

void deepseek(const JsonObject& c, DecoderConfig& config) {
  read_latent(c, config);
  config.experts.score_correction_bias = c.string("model_type") == "deepseek_v3";
  read_experts(c, config, {"n_routed_experts"}, "moe_intermediate_size");
  config.experts.shared_ffn_dim =
      config.experts.ffn_dim * c.optional_integer({"n_shared_experts"}, 0, 1024).value_or(0);
}

/// Queries and keys are normalized over all heads together; modelled as one norm per head, with the
/// same memory traffic.
void minimax_m2(const JsonObject& c, DecoderConfig& config) {
  for (const Json& type : c.json().value("attn_type_list", Json::array())) {
    if (type != 1)
      throw Error(ErrorKind::kUnsupported,
                  c.where() + ": 'attn_type_list': linear attention is not forecast");
  }
  config.qk_norm = c.boolean("use_qk_norm", false);
  read_experts(c, config, {"num_local_experts"}, "intermediate_size");
  config.experts.score_correction_bias = c.boolean("use_routing_bias", false);
}

void llama4(const JsonObject& c, DecoderConfig& config) {
  read_experts(c, config, {"num_local_experts"}, "intermediate_size");
  config.experts.shared_ffn_dim = config.experts.ffn_dim;
  config.ffn_dim = c.integer({"intermediate_size_mlp"}, 1, kLargestConfigSize);
  config.qk_norm = c.boolean("use_qk_norm", true);
  config.qk_norm_weight = false;
  config.softmax_fp32 = false;
  read_windows(c, config, "attention_chunk_size", 4);
}

/// Falcon names its fields differently.
void falcon(const JsonObject& c, DecoderConfig& config) {
  config.hidden_dim = c.integer({"hidden_size"}, 1, kLargestConfigSize);
  config.heads = c.integer({"num_attention_heads", "n_head"}, 1, kLargestConfigSize);
  config.head_dim =
      head_dim_of(c, "hidden_size", config.hidden_dim, "num_attention_heads", config.heads);
  const bool grouped = c.boolean("new_decoder_architecture", false);
  config.kv_heads = grouped ? c.integer({"num_kv_heads", "n_head_kv"}, 1, kLargestConfigSize)
                    : c.boolean("multi_query", true) ? 1
                                                     : config.heads;
  if (config.heads % config.kv_heads != 0)
    c.fail("num_kv_heads",
           fmt::format("{} does not divide the {} attention heads", config.kv_heads, config.heads));
  config.layers.assign(
      static_cast<size_t>(c.integer({"num_hidden_layers", "n_layer"}, 1, kMaxLayers)), {});
  config.ffn_dim = c.optional_integer({"ffn_hidden_size"}, 1, kLargestConfigSize)
                       .value_or(4 * config.hidden_dim);
  config.max_positions =
      c.optional_integer({"max_position_embeddings"}, 1, kLargestConfigSize).value_or(2048);
  config.max_positions = scaled_positions(c, config.max_positions);
  config.vocab_size = c.integer({"vocab_size"}, 1, kLargestConfigSize);
  config.activation = c.optional_string({"activation"}).value_or("gelu");
  check_activation(c, "activation", config.activation);
  config.norm = DecoderConfig::Norm::kLayer;
  config.gated_mlp = config.softmax_fp32 = false;
  config.fused_qkv = true;
  config.parallel_attention = c.boolean("parallel_attn", true);
  config.rotary = !c.boolean("alibi", false);
  config.qkv_bias = config.out_bias = config.mlp_bias = c.boolean("bias", false);
  config.tied_embeddings = c.boolean("tie_word_embeddings", true);
}

constexpr DecoderFamily kVariants[] = {
    {"llama", "Llama", "Llama 1, 2, 3", llama},
    {"llama4_text", "Llama4", "Llama 4, text part", llama4},
    {"mistral", "Mistral", "Mistral", mistral},
    {"mixtral", "Mixtral", "Mixtral", mixtral},
    {"qwen2", "Qwen2", "Qwen2 and 2.5", qwen2},
    {"qwen2_moe", "Qwen2Moe", "Qwen2 with experts", qwen2_moe},
    {"qwen3", "Qwen3", "Qwen3", qwen3},
    {"qwen3_moe", "Qwen3Moe", "Qwen3 with experts", qwen3_moe},
    {"qwen3_vl_text", "", "Qwen3-VL, text part", qwen3},
    {"qwen3_vl_moe_text", "", "Qwen3-VL with experts, text part", qwen3_moe},
    {"mimo", "MiMo", "MiMo: a Qwen2", qwen2},
    {"gemma2", "Gemma2", "Gemma 2", gemma2},
    {"gemma3_text", "Gemma3", "Gemma 3, text part", gemma3},
    {"phi3", "Phi3", "Phi-3 and Phi-4", phi3},
    {"gpt_oss", "GptOss", "gpt-oss", gpt_oss},
    {"falcon", "Falcon", "Falcon", falcon},
    {"deepseek_v2", "DeepseekV2", "DeepSeek-V2", deepseek},
    {"deepseek_v3", "DeepseekV3", "DeepSeek-V3 and R1, Kimi K2", deepseek},
    {"minimax_m2", "MiniMaxM2", "MiniMax M2", minimax_m2},
    {"glm4", "Glm4", "GLM-4", glm4},
    {"glm4_moe", "Glm4Moe", "GLM-4.5 with experts", glm4_moe},
};

}  // namespace

std::vector<LayerRun> layer_runs(const std::vector<Layer>& layers) {
  std::vector<LayerRun> runs;
  constexpr size_t kLongestPeriod = 8;
  for (size_t at = 0; at < layers.size();) {
    LayerRun best{at, 1, 1};
    for (size_t period = 1; period <= std::min(kLongestPeriod, layers.size() - at); ++period) {
      size_t end = at + period;
      while (end < layers.size() && layers[end] == layers[end - period]) ++end;
      const auto repeat = static_cast<int64_t>((end - at) / period);
      const auto covered = [](const LayerRun& r) {
        return r.period * static_cast<size_t>(r.repeat);
      };
      const LayerRun found{at, period, repeat};
      if (repeat > 1 && covered(found) > covered(best)) best = found;
    }
    runs.push_back(best);
    at += best.period * static_cast<size_t>(best.repeat);
  }
  return runs;
}

std::span<const DecoderFamily> decoder_families() { return kVariants; }

DecoderConfig read_decoder_config(const JsonObject& json) {
  const std::string type = json.string("model_type");
  DecoderConfig config{};
  for (const DecoderFamily& family : kVariants) {
    if (family.model_type != type) continue;
    if (family.read != falcon) read_common(json, config);
    family.read(json, config);
    return config;
  }
  throw Error(ErrorKind::kUnsupported,
              fmt::format("{}: 'model_type': '{}' is not a known decoder", json.where(), type));
}

}  // namespace tilecast
