// Families whose layers differ in kind: recurrent layers among attention, layers by architecture
// search, layers with heads or sizes of their own. Which layer is what is in lists of the config.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/text.h"
#include "importers/huggingface/decoder_reading.h"
#include "importers/huggingface/layers.h"
#include "tilecast/error.h"

namespace tilecast {
namespace {

using Layer = DecoderConfig::Layer;
using Mixer = DecoderConfig::Mixer;

int64_t size_of(const JsonObject& c, const std::string& key) {
  return c.integer({key}, 1, kLargestConfigSize);
}

void check_groups(const JsonObject& c, const DecoderConfig::Recurrent& r, const std::string& heads,
                  const std::string& groups) {
  if (r.heads % r.groups != 0)
    c.fail(groups,
           fmt::format("{} groups do not divide {} heads ('{}')", r.groups, r.heads, heads));
}

/// Names of Mamba-2's sizes, which differ from family to family.
struct MambaNames {
  std::string heads, head_dim, groups, state_dim, window, conv_bias, proj_bias;
};

void read_mamba(const JsonObject& c, DecoderConfig& config, const MambaNames& names) {
  DecoderConfig::Recurrent& r = config.recurrent;
  r.heads = size_of(c, names.heads);
  r.head_dim = size_of(c, names.head_dim);
  r.groups = size_of(c, names.groups);
  r.state_dim = size_of(c, names.state_dim);
  r.window = c.integer({names.window}, 2, kLargestConfigSize);
  r.conv_bias = c.boolean(names.conv_bias, true);
  r.proj_bias = c.boolean(names.proj_bias, false);
  check_groups(c, r, names.heads, names.groups);
}

const MambaNames kBambaNames = {"mamba_n_heads",  "mamba_d_head", "mamba_n_groups",
                                "mamba_d_state",  "mamba_d_conv", "mamba_conv_bias",
                                "mamba_proj_bias"};

/// Numbers of layers in a list; empty if the config has none.
std::vector<size_t> layer_numbers(const JsonObject& c, const DecoderConfig& config,
                                  const std::string& key) {
  std::vector<size_t> numbers;
  if (!c.has(key)) return numbers;
  const Json& list = c.json()[key];
  if (!list.is_array()) c.fail(key, "expected a list of numbers of layers");
  for (const Json& item : list) {
    const std::optional<int64_t> n =
        whole_number(item, 0, static_cast<int64_t>(config.layers.size()) - 1);
    if (!n) c.fail(key, fmt::format("expected numbers of the {} layers", config.layers.size()));
    numbers.push_back(static_cast<size_t>(*n));
  }
  return numbers;
}

}  // namespace

void qwen3_next(const JsonObject& c, DecoderConfig& config) {
  DecoderConfig::Recurrent& r = config.recurrent;
  r.heads = size_of(c, "linear_num_value_heads");
  r.head_dim = size_of(c, "linear_value_head_dim");
  r.groups = size_of(c, "linear_num_key_heads");
  r.state_dim = size_of(c, "linear_key_head_dim");
  r.window = c.integer({"linear_conv_kernel_dim"}, 2, kLargestConfigSize);
  r.merged = true;
  check_groups(c, r, "linear_num_value_heads", "linear_num_key_heads");
  const std::vector<std::string> types =
      layer_words(c, config, "layer_types", {"linear_attention", "full_attention"});
  const int64_t interval =
      c.optional_integer({"full_attention_interval"}, 1, kMaxLayers).value_or(4);
  for (size_t i = 0; i < config.layers.size(); ++i) {
    const bool full =
        types.empty() ? (i + 1) % static_cast<size_t>(interval) == 0 : types[i] == "full_attention";
    if (!full) config.layers[i].mixer = Mixer::kDeltaNet;
  }
  if (!c.has("num_experts")) return;
  read_experts(c, config, {"num_experts"}, "moe_intermediate_size");
  config.experts.shared_ffn_dim =
      c.integer({"shared_expert_intermediate_size"}, 0, kLargestConfigSize);
  config.experts.shared_gate = true;
}

void qwen3_5(const JsonObject& c, DecoderConfig& config) {
  qwen3_next(c, config);
  config.recurrent.merged = false;
  if (!c.boolean("attn_output_gate", true)) config.output_gate = DecoderConfig::OutputGate::kNone;
}

void mamba2(const JsonObject& c, DecoderConfig& config) {
  read_mamba(c, config,
             {"num_heads", "head_dim", "n_groups", "state_size", "conv_kernel", "use_conv_bias",
              "use_bias"});
  for (Layer& layer : config.layers) {
    layer.mixer = Mixer::kMamba2;
    layer.has_ffn = false;
  }
}

void bamba(const JsonObject& c, DecoderConfig& config) {
  read_mamba(c, config, kBambaNames);
  for (Layer& layer : config.layers) layer.mixer = Mixer::kMamba2;
  for (const size_t i : layer_numbers(c, config, "attn_layer_indices"))
    config.layers[i].mixer = Mixer::kAttention;
}

void granite_hybrid(const JsonObject& c, DecoderConfig& config) {
  const std::vector<std::string> types = layer_words(
      c, config, "layer_types", {"linear_attention", "mamba", "full_attention", "attention"});
  read_mamba(c, config, kBambaNames);
  for (size_t i = 0; i < config.layers.size(); ++i) {
    if (types.empty() || types[i] == "linear_attention" || types[i] == "mamba")
      config.layers[i].mixer = Mixer::kMamba2;
  }
  config.rotary = c.optional_string({"position_embedding_type"}).value_or("") == "rope";
  const int64_t shared =
      c.optional_integer({"shared_intermediate_size"}, 0, kLargestConfigSize).value_or(0);
  if (c.optional_integer({"num_local_experts"}, 0, kLargestConfigSize).value_or(0) == 0) {
    config.ffn_dim = shared;  // without experts only the shared MLP is left
    return;
  }
  read_experts(c, config, {"num_local_experts"}, "intermediate_size");
  config.experts.shared_ffn_dim = shared;
}

namespace {

/// The kinds of Nemotron-H's blocks, one for each layer: `layers_block_type`, or the letters of
/// `hybrid_override_pattern`.
std::vector<std::string> block_types(const JsonObject& c) {
  for (const char* key : {"layers_block_type", "layer_types"}) {
    if (c.has(key)) return c.strings(key);
  }
  std::vector<std::string> types;
  for (const char letter : c.string("hybrid_override_pattern")) {
    switch (letter) {
      case 'M':
        types.emplace_back("mamba");
        break;
      case '*':
        types.emplace_back("attention");
        break;
      case '-':
        types.emplace_back("mlp");
        break;
      case 'E':
        types.emplace_back("moe");
        break;
      default:
        c.fail("hybrid_override_pattern",
               fmt::format("expected letters M (Mamba-2), * (attention), - (MLP) and E (experts), "
                           "found '{}'",
                           shown_name(std::string(1, letter))));
    }
  }
  return types;
}

}  // namespace

/// Every block is one layer: a mixer, an MLP, or experts.
void nemotron_h(const JsonObject& c, DecoderConfig& config) {
  bool moe = false, mamba = false;
  const std::vector<std::string> types = block_types(c);
  if (types.size() != config.layers.size())
    c.fail(c.has("layers_block_type") ? "layers_block_type" : "hybrid_override_pattern",
           fmt::format("expected one for each of {} layers, found {}", config.layers.size(),
                       types.size()));
  for (size_t i = 0; i < config.layers.size(); ++i) {
    Layer& layer = config.layers[i];
    const std::string& type = types[i];
    const bool is_mamba = type == "mamba" || type == "linear_attention";
    const bool is_attention = type == "attention" || type == "full_attention";
    if (!is_mamba && !is_attention && type != "mlp" && type != "moe")
      c.fail("layers_block_type",
             fmt::format("unknown type '{}'; known: mamba, attention, mlp, moe", shown_name(type)));
    layer.mixer = is_mamba ? Mixer::kMamba2 : is_attention ? Mixer::kAttention : Mixer::kNone;
    layer.has_ffn = layer.mixer == Mixer::kNone;
    layer.is_moe = type == "moe";
    mamba = mamba || is_mamba;
    moe = moe || layer.is_moe;
  }
  config.out_bias = config.qkv_bias;
  config.dropout = config.mixer_dropout = false;  // its code does not use `hidden_dropout`
  if (mamba)
    read_mamba(c, config,
               {"mamba_num_heads", "mamba_head_dim", "n_groups", "ssm_state_size", "conv_kernel",
                "use_conv_bias", "mamba_proj_bias"});
  config.activation = c.optional_string({"mlp_hidden_act"}).value_or("relu2");
  check_activation(c, "mlp_hidden_act", config.activation);
  if (!moe) return;
  const std::vector<Layer> layers = config.layers;
  read_experts(c, config, {"n_routed_experts", "num_local_experts"}, "moe_intermediate_size");
  config.layers = layers;
  DecoderConfig::Experts& e = config.experts;
  e.latent_dim = c.optional_integer({"moe_latent_size"}, 0, kLargestConfigSize).value_or(0);
  e.shared_ffn_dim =
      c.optional_integer({"moe_shared_expert_intermediate_size"}, 0, kLargestConfigSize)
          .value_or(0);
}

/// Llama-Nemotron: `block_configs` gives each layer's heads and the size of its MLP, or leaves one
/// of them out. Source: configuration_decilm.py and modeling_decilm.py of the published
/// checkpoints.
void nemotron_nas(const JsonObject& c, DecoderConfig& config) {
  const Json& blocks = c.json().value("block_configs", Json());
  if (!blocks.is_array() || blocks.size() != config.layers.size())
    c.fail("block_configs",
           fmt::format("expected a list of {} layers ('num_hidden_layers')", config.layers.size()));
  for (size_t i = 0; i < blocks.size(); ++i) {
    Layer& layer = config.layers[i];
    const JsonObject block(blocks[i], fmt::format("{}: block_configs[{}]", c.where(), i));
    const JsonObject attention = block.object("attention"), ffn = block.object("ffn");
    for (const JsonObject* part : {&attention, &ffn}) {
      if (part->boolean("replace_with_linear", false))
        throw Error(ErrorKind::kUnsupported,
                    part->where() +
                        ": 'replace_with_linear': a linear layer instead of attention "
                        "or MLP is not forecast");
    }
    if (attention.boolean("no_op", false)) {
      layer.mixer = Mixer::kNone;
    } else {
      const int64_t group = attention.integer({"n_heads_in_group"}, 1, kLargestConfigSize);
      if (config.heads % group != 0)
        attention.fail("n_heads_in_group", fmt::format("{} does not divide the {} attention heads",
                                                       group, config.heads));
      layer.kv_heads = config.heads / group;
      config.kv_heads = layer.kv_heads;
      layer.window =
          attention.optional_integer({"window_length"}, 1, kLargestConfigSize).value_or(0);
    }
    layer.has_ffn = !ffn.boolean("no_op", false);
    if (!layer.has_ffn) continue;
    const double multiple = ffn.number("ffn_mult");
    constexpr double kMaxMultiple = 1000;
    if (!(multiple > 0) || multiple > kMaxMultiple)
      ffn.fail("ffn_mult", fmt::format("expected a number above 0 and at most {}, found {}",
                                       kMaxMultiple, multiple));
    // 2/3 of ffn_mult · hidden_size, rounded up to a multiple of 256.
    const auto wide =
        static_cast<int64_t>(2 * multiple * static_cast<double>(config.hidden_dim) / 3);
    layer.ffn_dim = (wide + 255) / 256 * 256;
    config.ffn_dim = std::max(config.ffn_dim, layer.ffn_dim);
  }
}

void gemma4(const JsonObject& c, DecoderConfig& config) {
  config.value_norm = true;
  config.logit_softcap =
      c.has("final_logit_softcapping") && c.number("final_logit_softcapping") != 0;
  read_windows(c, config, "sliding_window", 6);
  const int64_t global_dim =
      c.optional_integer({"global_head_dim"}, 1, kLargestConfigSize).value_or(512);
  const int64_t global_kv =
      c.optional_integer({"num_global_key_value_heads"}, 1, kLargestConfigSize).value_or(0);
  const bool value_is_key = c.boolean("attention_k_eq_v", false);
  const int64_t shared = c.optional_integer({"num_kv_shared_layers"}, 0, kMaxLayers).value_or(0);
  const auto count = static_cast<int64_t>(config.layers.size());
  if (shared >= count)
    c.fail("num_kv_shared_layers",
           fmt::format("expected less than the {} layers, found {}", count, shared));
  for (int64_t i = 0; i < count; ++i) {
    Layer& layer = config.layers[static_cast<size_t>(i)];
    layer.shares_kv = i >= count - shared;
    if (layer.shares_kv && c.boolean("use_double_wide_mlp", false))
      layer.ffn_dim = 2 * config.ffn_dim;
    if (layer.window > 0) continue;
    layer.head_dim = global_dim;
    layer.value_is_key = value_is_key;
    if (value_is_key && global_kv > 0) layer.kv_heads = global_kv;
  }
  config.per_layer_dim =
      c.optional_integer({"hidden_size_per_layer_input"}, 0, kLargestConfigSize).value_or(0);
  if (config.per_layer_dim > 0)
    config.per_layer_vocab =
        c.optional_integer({"vocab_size_per_layer_input"}, 1, kLargestConfigSize)
            .value_or(config.vocab_size);
  if (!c.boolean("enable_moe_block", false)) return;
  read_experts(
      c, config, {"num_experts"},
      c.has("moe_intermediate_size") ? "moe_intermediate_size" : "expert_intermediate_size");
  config.experts.beside_mlp = true;
}

/// Step-3.5 and 3.7: the layers with a sliding window may have more heads.
void step3(const JsonObject& c, DecoderConfig& config) {
  std::vector<std::string> types;
  if (c.has("layer_types")) types = c.strings("layer_types");
  // Published configs list the layers for further tokens too.
  if (types.size() < config.layers.size() && !types.empty())
    c.fail("layer_types", fmt::format("expected one for each of {} layers, found {}",
                                      config.layers.size(), types.size()));
  const int64_t window = c.optional_integer({"sliding_window"}, 0, kLargestConfigSize).value_or(0);
  int64_t heads =
      c.optional_integer({"num_sliding_attention_heads"}, 1, kLargestConfigSize).value_or(0);
  if (c.has("attention_other_setting"))
    heads =
        c.object("attention_other_setting").integer({"num_attention_heads"}, 1, kLargestConfigSize);
  if (heads % config.kv_heads != 0)
    c.fail("num_sliding_attention_heads",
           fmt::format("{} key heads do not divide {} heads", config.kv_heads, heads));
  for (size_t i = 0; i < config.layers.size() && !types.empty(); ++i) {
    if (types[i] != "sliding_attention") continue;
    config.layers[i].window = window;
    config.layers[i].heads = heads;
  }
  const bool per_head = c.boolean("use_head_wise_attn_gate", true);
  config.output_gate =
      per_head ? DecoderConfig::OutputGate::kPerHead : DecoderConfig::OutputGate::kNone;
  constexpr int64_t kDense = 3;  // transformers' default: the first three layers have an MLP
  read_experts(c, config, {"num_experts", "n_routed_experts", "moe_num_experts"},
               "moe_intermediate_size");
  if (!c.has("mlp_layer_types") && !c.has("first_k_dense_replace")) {
    for (size_t i = 0; i < config.layers.size(); ++i)
      config.layers[i].is_moe = i >= static_cast<size_t>(kDense);
  }
  config.experts.shared_ffn_dim =
      c.integer({"share_expert_dim", "share_expert_dims"}, 0, kLargestConfigSize);
}

/// Layers with a sliding window have twice the key heads, and sinks.
void mimo_v2(const JsonObject& c, DecoderConfig& config) {
  config.value_dim = c.integer({"v_head_dim"}, 1, kLargestConfigSize);
  read_windows(c, config, "sliding_window", 6);
  config.sinks_in_windows = true;
  const int64_t kv_heads = c.optional_integer({"swa_num_key_value_heads"}, 1, kLargestConfigSize)
                               .value_or(2 * config.kv_heads);
  if (config.heads % kv_heads != 0)
    c.fail("swa_num_key_value_heads",
           fmt::format("{} does not divide the {} attention heads", kv_heads, config.heads));
  for (Layer& layer : config.layers) {
    if (layer.window > 0) layer.kv_heads = kv_heads;
  }
  read_experts(c, config, {"n_routed_experts"}, "moe_intermediate_size");
}

}  // namespace tilecast
