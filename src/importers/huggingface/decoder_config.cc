// config.json of the decoder families → DecoderConfig. Field names and defaults are those of
// transformers' configuration classes.

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/text.h"
#include "importers/huggingface/decoder.h"
#include "importers/huggingface/layers.h"
#include "importers/huggingface/quantization.h"
#include "tilecast/error.h"

namespace tilecast {
namespace {

constexpr int64_t kMostLayers = 100000;

using Layer = DecoderConfig::Layer;

void read_attention(const JsonObject& c, DecoderConfig& config) {
  config.width = c.integer({"hidden_size"}, 1, kLargestSize);
  config.heads = c.integer({"num_attention_heads"}, 1, kLargestSize);
  config.kv_heads =
      c.optional_integer({"num_key_value_heads"}, 1, kLargestSize).value_or(config.heads);
  if (config.heads % config.kv_heads != 0)
    c.fail("num_key_value_heads",
           fmt::format("{} does not divide the {} attention heads", config.kv_heads, config.heads));
  const std::optional<int64_t> head = c.optional_integer({"head_dim"}, 1, kLargestSize);
  config.head =
      head ? *head : head_size(c, "hidden_size", config.width, "num_attention_heads", config.heads);
  if (config.head % 2 != 0)
    c.fail("num_attention_heads",
           fmt::format("rotary embedding needs an even head size, found {}", config.head));
  config.attention_dropout = c.has("attention_dropout") && c.number("attention_dropout") > 0;
  config.qkv_bias = config.out_bias = c.boolean("attention_bias", false);
}

void read_common(const JsonObject& c, DecoderConfig& config) {
  read_attention(c, config);
  config.layers.assign(static_cast<size_t>(c.integer({"num_hidden_layers"}, 1, kMostLayers)), {});
  config.inner = c.integer({"intermediate_size"}, 1, kLargestSize);
  config.positions = scaled_positions(c, c.integer({"max_position_embeddings"}, 1, kLargestSize));
  config.vocabulary = c.integer({"vocab_size"}, 1, kLargestSize);
  config.activation = c.optional_string({"hidden_act", "hidden_activation"}).value_or("silu");
  check_activation(c, c.has("hidden_act") ? "hidden_act" : "hidden_activation", config.activation);
  config.mlp_bias = c.boolean("mlp_bias", false);
  config.tied = c.boolean("tie_word_embeddings", false);
}

/// Layers that attend to a window: named one by one, or each but every `pattern`-th.
void read_windows(const JsonObject& c, DecoderConfig& config, const std::string& key,
                  int64_t pattern) {
  const std::optional<int64_t> window = c.optional_integer({key}, 0, kLargestSize);
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
  constexpr int64_t kMostExperts = 1 << 16;
  DecoderConfig::Experts& e = config.experts;
  e.count = c.integer(count_keys, 1, kMostExperts);
  e.chosen = c.integer({"num_experts_per_tok"}, 1, kMostExperts);
  if (e.chosen > e.count)
    c.fail("num_experts_per_tok",
           fmt::format("{} is more than the {} experts ('{}')", e.chosen, e.count, count_keys[0]));
  e.inner = c.integer({inner_key}, 1, kLargestSize);
  const int64_t step =
      c.optional_integer({"decoder_sparse_step", "interleave_moe_layer_step"}, 1, kMostLayers)
          .value_or(1);
  const int64_t dense = c.optional_integer({"first_k_dense_replace"}, 0, kMostLayers).value_or(0);
  for (size_t i = 0; i < config.layers.size(); ++i) {
    const auto index = static_cast<int64_t>(i);
    config.layers[i].experts = index >= dense && (index + 1) % step == 0;
  }
  if (const Json& only = c.json().value("mlp_only_layers", Json::array()); only.is_array()) {
    for (const Json& item : only) {
      if (!item.is_number_unsigned() || item.get<size_t>() >= config.layers.size())
        c.fail("mlp_only_layers", "expected numbers of layers");
      config.layers[item.get<size_t>()].experts = false;
    }
  }
}

void read_latent(const JsonObject& c, DecoderConfig& config) {
  DecoderConfig::Latent& l = config.latent;
  l.query_rank = c.optional_integer({"q_lora_rank"}, 0, kLargestSize).value_or(0);
  l.rank = c.integer({"kv_lora_rank"}, 1, kLargestSize);
  l.rotary = c.integer({"qk_rope_head_dim"}, 2, kLargestSize);
  l.plain = c.integer({"qk_nope_head_dim"}, 1, kLargestSize);
  l.value = c.integer({"v_head_dim"}, 1, kLargestSize);
}

void llama(const JsonObject&, DecoderConfig&) {}

void mistral(const JsonObject& c, DecoderConfig& config) {
  read_windows(c, config, "sliding_window", 1);
}

void qwen2(const JsonObject&, DecoderConfig& config) {
  config.qkv_bias = true;
  config.out_bias = false;
}

void qwen3(const JsonObject&, DecoderConfig& config) { config.query_norm = true; }

void mixtral(const JsonObject& c, DecoderConfig& config) {
  read_windows(c, config, "sliding_window", 1);
  read_experts(c, config, {"num_local_experts"}, "intermediate_size");
}

void qwen2_moe(const JsonObject& c, DecoderConfig& config) {
  config.qkv_bias = c.boolean("qkv_bias", true);
  read_experts(c, config, {"num_experts", "num_local_experts"}, "moe_intermediate_size");
  config.experts.shared_inner = c.integer({"shared_expert_intermediate_size"}, 0, kLargestSize);
  config.experts.shared_gate = true;
}

void qwen3_moe(const JsonObject& c, DecoderConfig& config) {
  config.query_norm = true;
  read_experts(c, config, {"num_experts", "num_local_experts"}, "moe_intermediate_size");
}

void gemma2(const JsonObject& c, DecoderConfig& config) {
  config.post_norms = config.scaled_embedding = true;
  config.tied = c.boolean("tie_word_embeddings", true);
  config.attention_cap = c.has("attn_logit_softcapping") && c.number("attn_logit_softcapping") != 0;
  config.logit_cap = c.has("final_logit_softcapping") && c.number("final_logit_softcapping") != 0;
  read_windows(c, config, "sliding_window", 2);
}

void gemma3(const JsonObject& c, DecoderConfig& config) {
  gemma2(c, config);
  config.query_norm = true;
  for (Layer& layer : config.layers) layer.window = 0;
  const int64_t pattern =
      c.optional_integer({"sliding_window_pattern", "_sliding_window_pattern"}, 1, kMostLayers)
          .value_or(6);
  read_windows(c, config, "sliding_window", pattern);
}

void phi3(const JsonObject& c, DecoderConfig& config) {
  config.fused_qkv = config.fused_gate = true;
  read_windows(c, config, "sliding_window", 1);
}

void gpt_oss(const JsonObject& c, DecoderConfig& config) {
  config.sinks = true;
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
  config.query_norm = c.boolean("use_qk_norm", false);
  read_experts(c, config, {"n_routed_experts"}, "moe_intermediate_size");
  config.experts.shared_inner =
      config.experts.inner * c.optional_integer({"n_shared_experts"}, 0, 1024).value_or(0);
}

void deepseek(const JsonObject& c, DecoderConfig& config) {
  read_latent(c, config);
  config.experts.balanced = c.string("model_type") == "deepseek_v3";
  read_experts(c, config, {"n_routed_experts"}, "moe_intermediate_size");
  config.experts.shared_inner =
      config.experts.inner * c.optional_integer({"n_shared_experts"}, 0, 1024).value_or(0);
}

/// Queries and keys are normalized over all heads together; the same traffic is taken per head.
void minimax_m2(const JsonObject& c, DecoderConfig& config) {
  for (const Json& type : c.json().value("attn_type_list", Json::array())) {
    if (type != 1)
      throw Error(ErrorKind::kUnsupported,
                  c.where() + ": 'attn_type_list': linear attention is not forecast");
  }
  config.query_norm = c.boolean("use_qk_norm", false);
  read_experts(c, config, {"num_local_experts"}, "intermediate_size");
  config.experts.balanced = c.boolean("use_routing_bias", false);
}

void llama4(const JsonObject& c, DecoderConfig& config) {
  read_experts(c, config, {"num_local_experts"}, "intermediate_size");
  config.experts.shared_inner = config.experts.inner;
  config.inner = c.integer({"intermediate_size_mlp"}, 1, kLargestSize);
  config.query_norm = c.boolean("use_qk_norm", true);
  config.query_norm_weight = false;
  read_windows(c, config, "attention_chunk_size", 4);
}

/// Falcon names its fields differently.
DecoderConfig read_falcon(const JsonObject& c) {
  DecoderConfig config{};
  config.width = c.integer({"hidden_size"}, 1, kLargestSize);
  config.heads = c.integer({"num_attention_heads", "n_head"}, 1, kLargestSize);
  config.head = head_size(c, "hidden_size", config.width, "num_attention_heads", config.heads);
  const bool grouped = c.boolean("new_decoder_architecture", false);
  config.kv_heads = grouped ? c.integer({"num_kv_heads", "n_head_kv"}, 1, kLargestSize)
                    : c.boolean("multi_query", true) ? 1
                                                     : config.heads;
  if (config.heads % config.kv_heads != 0)
    c.fail("num_kv_heads",
           fmt::format("{} does not divide the {} attention heads", config.kv_heads, config.heads));
  config.layers.assign(
      static_cast<size_t>(c.integer({"num_hidden_layers", "n_layer"}, 1, kMostLayers)), {});
  config.inner =
      c.optional_integer({"ffn_hidden_size"}, 1, kLargestSize).value_or(4 * config.width);
  config.positions =
      c.optional_integer({"max_position_embeddings"}, 1, kLargestSize).value_or(2048);
  config.positions = scaled_positions(c, config.positions);
  config.vocabulary = c.integer({"vocab_size"}, 1, kLargestSize);
  config.activation = c.optional_string({"activation"}).value_or("gelu");
  check_activation(c, "activation", config.activation);
  config.norm = DecoderConfig::Norm::kLayer;
  config.gated = false;
  config.fused_qkv = true;
  config.parallel = c.boolean("parallel_attn", true);
  config.rotary = !c.boolean("alibi", false);
  config.qkv_bias = config.out_bias = config.mlp_bias = c.boolean("bias", false);
  config.tied = c.boolean("tie_word_embeddings", true);
  return config;
}

struct Variant {
  std::string_view model_type;
  void (*read)(const JsonObject&, DecoderConfig&);
};
constexpr Variant kVariants[] = {
    {"llama", llama},           {"mistral", mistral},
    {"mixtral", mixtral},       {"qwen2", qwen2},
    {"qwen2_moe", qwen2_moe},   {"qwen3", qwen3},
    {"qwen3_moe", qwen3_moe},   {"gemma2", gemma2},
    {"gemma3_text", gemma3},    {"phi3", phi3},
    {"gpt_oss", gpt_oss},       {"glm4", glm4},
    {"glm4_moe", glm4_moe},     {"deepseek_v2", deepseek},
    {"deepseek_v3", deepseek},  {"llama4_text", llama4},
    {"minimax_m2", minimax_m2}, {"mimo", qwen2},
    {"qwen3_vl_text", qwen3},   {"qwen3_vl_moe_text", qwen3_moe},
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

std::vector<std::string> decoder_types() {
  std::vector<std::string> types = {"falcon"};
  for (const Variant& variant : kVariants) types.emplace_back(variant.model_type);
  return types;
}

DecoderConfig read_decoder_config(const JsonObject& json) {
  const std::string type = json.string("model_type");
  if (type == "falcon") return read_falcon(json);
  DecoderConfig config{};
  read_common(json, config);
  for (const Variant& variant : kVariants) {
    if (variant.model_type != type) continue;
    variant.read(json, config);
    return config;
  }
  throw Error(
      ErrorKind::kUnsupported,
      fmt::format("{}: 'model_type': '{}' is no decoder that is known", json.where(), type));
}

namespace {

/// A scheme that the config gives to modules which the model has not is no silent full width.
void note_unused_schemes(const std::vector<Scheme>& given, const std::string& where,
                         Checkpoint& checkpoint) {
  std::vector<std::string> unused;
  for (const Scheme scheme : given) {
    const auto& used = checkpoint.schemes;
    if (std::find(used.begin(), used.end(), scheme) == used.end())
      unused.emplace_back(scheme_info(scheme).name);
  }
  if (unused.empty()) return;
  if (checkpoint.schemes.empty()) {
    checkpoint.problem = fmt::format(
        "{}: '{}': stores weights in {}, but no layer of the model is among the modules "
        "that it names",
        where, checkpoint.quantization, join(unused, ", "));
  } else {
    checkpoint.warnings.push_back(
        fmt::format("{}: no layer of the model is among the modules that are stored in {}",
                    checkpoint.quantization, join(unused, ", ")));
  }
}

}  // namespace

void read_layer_schemes(DecoderConfig& config, const std::string& where, Checkpoint& checkpoint) {
  if (!checkpoint.scheme_of) return;
  const auto ask = [&](size_t index, const std::string& part, std::vector<std::string> modules) {
    for (const std::string& module : modules) {
      const Scheme scheme =
          checkpoint.scheme_of(fmt::format("layers.{}.{}.{}", index, part, module));
      config.layers[index].schemes.push_back(scheme);
    }
  };
  // No published model has more layers; what is beyond is as the last of these.
  constexpr size_t kMostAsked = 2048;
  for (size_t i = 0; i < config.layers.size(); ++i) {
    if (i >= kMostAsked) {
      config.layers[i].schemes = config.layers[kMostAsked - 1].schemes;
      continue;
    }
    // What holds the most weights first.
    if (config.layers[i].experts) ask(i, "mlp", {"experts"});
    const bool shared = config.layers[i].experts && config.experts.shared_inner > 0;
    if (shared) ask(i, "mlp.shared_experts", {"down_proj", "gate_proj", "up_proj"});
    if (!config.layers[i].experts) ask(i, "mlp", {"down_proj", "gate_proj", "up_proj"});
    ask(i, "self_attn", {"o_proj"});
    if (config.is_latent()) {
      ask(i, "self_attn", {"q_proj", "q_a_proj", "q_b_proj", "kv_a_proj_with_mqa", "kv_b_proj"});
    } else {
      ask(i, "self_attn", {"q_proj", "k_proj", "v_proj"});
    }
  }
  const std::vector<Scheme> given = std::exchange(checkpoint.schemes, {});
  // The last layer stands for most: the first ones are often dense or left as they are.
  for (auto layer = config.layers.rbegin(); layer != config.layers.rend(); ++layer) {
    for (const Scheme scheme : layer->schemes) {
      const auto& known = checkpoint.schemes;
      if (scheme != Scheme::kNone && std::find(known.begin(), known.end(), scheme) == known.end())
        checkpoint.schemes.push_back(scheme);
    }
  }
  note_unused_schemes(given, where, checkpoint);
}

Json multimodal_text(const JsonObject& json, const std::string& key) {
  const JsonObject given = json.object(key);
  Json text = Json::object();
  // Published Gemma 3 configs leave out what equals transformers' defaults (Gemma3TextConfig).
  if (json.optional_string({"model_type"}).value_or("") == "gemma3")
    text = {{"model_type", "gemma3_text"},
            {"num_attention_heads", 8},
            {"num_key_value_heads", 4},
            {"head_dim", 256},
            {"vocab_size", 262208},
            {"max_position_embeddings", 131072},
            {"hidden_activation", "gelu_pytorch_tanh"}};
  text.update(given.json());
  // What holds for the whole stands outside.
  for (const char* field :
       {"quantization_config", kBesideConfig, "torch_dtype", "dtype", "tie_word_embeddings"}) {
    if (!given.has(field) && json.has(field)) text[field] = json.json()[field];
  }
  return text;
}

Model read_decoder(const JsonObject& json) {
  DecoderConfig config = read_decoder_config(json);
  Checkpoint checkpoint = read_checkpoint(json);
  read_layer_schemes(config, json.where(), checkpoint);
  Model model = make_model(config, std::min<int64_t>(2048, config.positions), config.positions,
                           build_decoder);
  model.has_fused_attention = true;
  Decoder decoder;
  decoder.layers = static_cast<int64_t>(config.layers.size());
  decoder.heads = config.heads;
  decoder.kv_heads = config.is_latent() ? 1 : config.kv_heads;
  decoder.latent = config.is_latent();
  decoder.inner = config.inner;
  decoder.expert_inner = config.experts.inner;
  decoder.vocabulary = config.vocabulary;
  decoder.width = config.width;
  decoder.tied = config.tied;
  decoder.cache_width = config.cache_width();
  model.checkpoint = std::move(checkpoint);
  for (const Layer& layer : config.layers) decoder.windows.push_back(layer.window);
  decoder.build_step = [config](const StepRequest& request) {
    return build_serving_step(config, request);
  };
  model.decoder = std::move(decoder);
  return model;
}

}  // namespace tilecast
