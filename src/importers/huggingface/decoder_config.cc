// config.json of the decoder families → DecoderConfig: what the families share. Field names and
// defaults are taken from transformers' configuration classes.

#include <fmt/format.h>

#include <algorithm>
#include <initializer_list>

#include "base/text.h"
#include "importers/huggingface/decoder_reading.h"
#include "importers/huggingface/layers.h"
#include "tilecast/error.h"

namespace tilecast {
namespace {

using Layer = DecoderConfig::Layer;

void read_attention(const JsonObject& c, DecoderConfig& config) {
  const std::vector<std::string> hidden = {"hidden_size", "n_embd", "d_model"};
  const std::vector<std::string> heads = {"num_attention_heads", "n_head", "n_heads", "num_heads",
                                          "attention_heads"};
  config.hidden_dim = c.integer(hidden, 1, kLargestConfigSize);
  config.heads = c.integer(heads, 1, kLargestConfigSize);
  config.kv_heads =
      c.optional_integer({"num_key_value_heads"}, 1, kLargestConfigSize).value_or(config.heads);
  if (config.heads % config.kv_heads != 0)
    c.fail("num_key_value_heads",
           fmt::format("{} does not divide the {} attention heads", config.kv_heads, config.heads));
  const std::optional<int64_t> head_dim =
      c.optional_integer({"head_dim", "attention_head_dim"}, 1, kLargestConfigSize);
  // Latent attention has sizes of its own.
  config.head_dim = head_dim                ? *head_dim
                    : c.has("kv_lora_rank") ? c.integer({"qk_rope_head_dim"}, 2, kLargestConfigSize)
                                            : head_dim_of(c, "hidden_size", config.hidden_dim,
                                                          "num_attention_heads", config.heads);
  if (config.rotary && config.head_dim % 2 != 0)
    c.fail("num_attention_heads",
           fmt::format("rotary embedding needs an even head_dim, found {}", config.head_dim));
  const auto any_drops = [&](std::initializer_list<const char*> keys) {
    return std::any_of(keys.begin(), keys.end(), [&](const char* key) { return drops(c, key, 0); });
  };
  config.attention_dropout =
      any_drops({"attention_dropout", "attention_probs_dropout_prob", "attn_pdrop"});
  config.dropout = any_drops({"residual_dropout", "resid_pdrop", "resid_dropout", "hidden_dropout",
                              "hidden_dropout_prob", "dropout"});
  config.mixer_dropout = config.dropout;
  config.embedding_dropout = any_drops(
      {"embd_pdrop", "embed_dropout", "embedding_dropout", "hidden_dropout_prob", "dropout"});
  if (config.bias_field == DecoderConfig::BiasField::kNone) return;
  config.qkv_bias = c.boolean("attention_bias", config.qkv_bias);
  if (config.bias_field == DecoderConfig::BiasField::kBoth)
    config.out_bias = c.boolean("attention_bias", config.out_bias);
}

/// Families that follow GPT have the activation in another field.
std::string activation_key(const JsonObject& c, bool like_gpt) {
  for (const char* key : {"hidden_act", "hidden_activation"}) {
    if (c.has(key)) return key;
  }
  return like_gpt && c.has("activation_function") ? "activation_function" : "hidden_act";
}

/// Some configs only list their layers.
size_t count_layers(const JsonObject& c) {
  const std::vector<std::string> keys = {"num_hidden_layers", "n_layer", "n_layers", "num_layers"};
  if (c.has("layers_block_type") && !c.has("num_hidden_layers")) {
    const size_t count = c.strings("layers_block_type").size();
    if (count == 0 || count > kMaxLayers)
      c.fail("layers_block_type",
             fmt::format("expected 1 to {} layers, found {}", kMaxLayers, count));
    return count;
  }
  return static_cast<size_t>(c.integer(keys, 1, kMaxLayers));
}

}  // namespace

void read_common(const JsonObject& c, DecoderConfig& config) {
  read_attention(c, config);
  config.layers.assign(count_layers(c), {});
  config.ffn_dim =
      c.optional_integer({"intermediate_size", "n_inner", "ffn_dim"}, 1, kLargestConfigSize)
          .value_or(config.ffn_per_hidden * config.hidden_dim);
  const std::vector<std::string> positions = {"max_position_embeddings", "n_positions",
                                              "max_seq_len", "seq_length", "model_max_length"};
  // Without rotary or learned positions there need not be a limit.
  std::optional<int64_t> given = c.optional_integer(positions, 1, kLargestConfigSize);
  const bool limited = config.rotary || config.learned_positions;
  if (!given && limited && config.default_positions > 0) given = config.default_positions;
  if (!given && limited) c.integer(positions, 1, kLargestConfigSize);  // throws: it is missing
  config.max_positions = scaled_positions(c, given.value_or(kLargestConfigSize));
  config.scaled_rotary = has_attention_factor(c);
  config.vocab_size = c.integer({"vocab_size"}, 1, kLargestConfigSize);
  const std::string activation = activation_key(c, !config.gated_mlp);
  config.activation =
      c.optional_string({activation}).value_or(std::string(config.default_activation));
  check_activation(c, activation, config.activation);
  config.mlp_bias = c.boolean("mlp_bias", config.mlp_bias);
  config.tied_embeddings = c.boolean("tie_word_embeddings", config.tied_embeddings);
  if (config.window_pattern > 0) read_windows(c, config, "sliding_window", config.window_pattern);
}

std::vector<std::string> layer_words(const JsonObject& c, const DecoderConfig& config,
                                     const std::string& key,
                                     const std::vector<std::string>& known) {
  if (!c.has(key)) return {};
  std::vector<std::string> words = c.strings(key);
  if (words.size() != config.layers.size())
    c.fail(key, fmt::format("expected one for each of {} layers, found {}", config.layers.size(),
                            words.size()));
  for (const std::string& word : words) {
    if (std::find(known.begin(), known.end(), word) == known.end())
      c.fail(key, fmt::format("unknown type '{}'; known: {}", shown_name(word), join(known, ", ")));
  }
  return words;
}

void read_windows(const JsonObject& c, DecoderConfig& config, const std::string& key,
                  int64_t pattern) {
  const std::optional<int64_t> window = c.optional_integer({key}, 0, kLargestConfigSize);
  if (!window || *window == 0) return;
  const std::vector<std::string> types = layer_words(
      c, config, "layer_types", {"full_attention", "sliding_attention", "chunked_attention"});
  for (size_t i = 0; i < config.layers.size(); ++i) {
    if (!types.empty()) {
      if (types[i] != "full_attention") config.layers[i].window = *window;
    } else if (pattern == 1 || (pattern > 1 && (i + 1) % static_cast<size_t>(pattern) != 0)) {
      config.layers[i].window = *window;
    }
  }
}

namespace {

/// `mlp_layer_types` lists the layers of experts; else they follow from periods.
void place_experts(const JsonObject& c, DecoderConfig& config) {
  const std::vector<std::string> types =
      layer_words(c, config, "mlp_layer_types", {"dense", "sparse", "moe", "hash_moe"});
  const int64_t step =
      c.optional_integer({"decoder_sparse_step", "interleave_moe_layer_step"}, 1, kMaxLayers)
          .value_or(1);
  const int64_t dense =
      c.optional_integer({"first_k_dense_replace", "num_dense_layers", "moe_layer_start_index"}, 0,
                         kMaxLayers)
          .value_or(0);
  for (size_t i = 0; i < config.layers.size(); ++i) {
    const auto index = static_cast<int64_t>(i);
    config.layers[i].is_moe =
        types.empty() ? index >= dense && (index + 1) % step == 0 : types[i] != "dense";
  }
  if (const Json& only = c.json().value("mlp_only_layers", Json::array()); only.is_array()) {
    for (const Json& item : only) {
      if (!item.is_number_unsigned() || item.get<size_t>() >= config.layers.size())
        c.fail("mlp_only_layers", "expected numbers of layers");
      config.layers[item.get<size_t>()].is_moe = false;
    }
  }
}

}  // namespace

void read_experts(const JsonObject& c, DecoderConfig& config,
                  const std::vector<std::string>& count_keys, const std::string& inner_key) {
  constexpr int64_t kMaxExperts = 1 << 16;
  DecoderConfig::Experts& e = config.experts;
  e.num_experts = c.integer(count_keys, 1, kMaxExperts);
  e.top_k = c.integer({"num_experts_per_tok", "num_experts_per_token", "moe_k", "top_k_experts"}, 1,
                      kMaxExperts);
  if (e.top_k > e.num_experts)
    c.fail("num_experts_per_tok", fmt::format("{} is more than the {} experts ('{}')", e.top_k,
                                              e.num_experts, count_keys[0]));
  e.ffn_dim = c.integer({inner_key}, 1, kLargestConfigSize);
  place_experts(c, config);
}

void read_experts(const JsonObject& c, DecoderConfig& config) {
  read_experts(c, config,
               {"num_experts", "num_local_experts", "n_routed_experts", "moe_num_experts"},
               c.has("moe_intermediate_size") ? "moe_intermediate_size" : "intermediate_size");
}

void read_shared_experts(const JsonObject& c, DecoderConfig& config) {
  constexpr int64_t kMaxShared = 1024;
  const int64_t count =
      c.optional_integer({"n_shared_experts", "num_shared_experts", "moe_num_shared_experts"}, 0,
                         kMaxShared)
          .value_or(0);
  config.experts.shared_ffn_dim = count * config.experts.ffn_dim;
}

void read_latent(const JsonObject& c, DecoderConfig& config) {
  DecoderConfig::Latent& l = config.latent;
  l.q_lora_rank = c.optional_integer({"q_lora_rank"}, 0, kLargestConfigSize).value_or(0);
  l.kv_lora_rank = c.integer({"kv_lora_rank"}, 1, kLargestConfigSize);
  l.qk_rope_head_dim = c.integer({"qk_rope_head_dim"}, 2, kLargestConfigSize);
  l.qk_nope_head_dim = c.integer({"qk_nope_head_dim"}, 1, kLargestConfigSize);
  l.v_head_dim = c.integer({"v_head_dim"}, 1, kLargestConfigSize);
}

/// DeepSeek Sparse Attention. `indexer_types` says which layers have an indexer ("full"); the
/// others attend to the keys that the last one selected.
void read_indexer(const JsonObject& c, DecoderConfig& config) {
  DecoderConfig::Indexer& i = config.indexer;
  i.heads = c.integer({"index_n_heads"}, 1, kLargestConfigSize);
  i.head_dim = c.integer({"index_head_dim"}, 1, kLargestConfigSize);
  i.top_k = c.integer({"index_topk"}, 1, kLargestConfigSize);
  const std::vector<std::string> types =
      layer_words(c, config, "indexer_types", {"full", "shared"});
  for (size_t n = 0; n < config.layers.size(); ++n) {
    config.layers[n].is_sparse = true;
    config.layers[n].has_indexer = types.empty() || types[n] == "full";
  }
}

std::vector<LayerRun> layer_runs(const std::vector<Layer>& layers, size_t longest) {
  std::vector<LayerRun> runs;
  for (size_t at = 0; at < layers.size();) {
    LayerRun best{at, 1, 1};
    for (size_t period = 1; period <= std::min(longest, layers.size() - at); ++period) {
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

}  // namespace tilecast
