// Kimi Linear, Kimi K3 and MiniMax M3: fields of their configs.

#include <fmt/format.h>

#include "importers/huggingface/decoder_reading.h"
#include "importers/huggingface/layers.h"

namespace tilecast {
namespace {

using Layer = DecoderConfig::Layer;
using Mixer = DecoderConfig::Mixer;

int64_t size_under(const JsonObject& c, const std::vector<std::string>& keys) {
  return c.integer(keys, 1, kLargestConfigSize);
}

/// The layers with Kimi Delta Attention: a list of numbers from 1, or words for all layers.
void place_delta_layers(const JsonObject& c, DecoderConfig& config) {
  const auto count = static_cast<int64_t>(config.layers.size());
  if (!c.has("linear_attn_config")) {
    const std::vector<std::string> types =
        layer_words(c, config, "layer_types", {"linear_attention", "full_attention"});
    for (size_t i = 0; i < types.size(); ++i) {
      if (types[i] == "linear_attention") config.layers[i].mixer = Mixer::kKimiDelta;
    }
    return;
  }
  const JsonObject linear = c.object("linear_attn_config");
  const Json list = linear.json().value("kda_layers", Json());
  if (!list.is_array()) linear.fail("kda_layers", "expected a list of numbers of layers");
  for (const Json& item : list) {
    const std::optional<int64_t> number = whole_number(item, 1, count);
    if (!number) linear.fail("kda_layers", fmt::format("expected numbers from 1 to {}", count));
    config.layers[static_cast<size_t>(*number - 1)].mixer = Mixer::kKimiDelta;
  }
}

/// 1 for the layers of a kind, from a list with a number for each layer; `otherwise` without one.
std::vector<bool> layer_flags(const JsonObject& c, const DecoderConfig& config,
                              const std::string& key, bool otherwise) {
  std::vector<bool> flags(config.layers.size(), otherwise);
  if (!c.has(key)) return flags;
  const Json& list = c.json()[key];
  if (!list.is_array() || list.size() != flags.size())
    c.fail(key, fmt::format("expected a list of 0 and 1 for each of {} layers", flags.size()));
  for (size_t i = 0; i < flags.size(); ++i) flags[i] = whole_number(list[i], 1, 1).has_value();
  return flags;
}

}  // namespace

/// Not modelled: that the shared part of latent keys is not rotated (`mla_use_nope`).
void kimi_linear(const JsonObject& c, DecoderConfig& config) {
  const bool nested = c.has("linear_attn_config");
  const JsonObject linear = nested ? c.object("linear_attn_config") : c;
  DecoderConfig::Recurrent& r = config.recurrent;
  r.heads = size_under(linear, {nested ? "num_heads" : "linear_num_heads"});
  r.head_dim = size_under(linear, {nested ? "head_dim" : "linear_head_dim"});
  r.groups = r.heads;
  r.state_dim = r.head_dim;
  r.window = linear.integer({nested ? "short_conv_kernel_size" : "linear_conv_kernel_dim"}, 2,
                            kLargestConfigSize);
  r.gate_rank = linear.boolean("use_full_rank_gate", false) ? 0 : r.head_dim;
  place_delta_layers(c, config);
  read_latent(c, config);
  if (c.boolean("mla_use_output_gate", false))
    config.output_gate = DecoderConfig::OutputGate::kProjection;
  if (c.optional_integer({"num_experts", "num_local_experts"}, 0, kLargestConfigSize).value_or(0) ==
      0)
    return;
  read_experts(c, config, {"num_experts", "num_local_experts"}, "moe_intermediate_size");
  read_shared_experts(c, config);
  DecoderConfig::Experts& e = config.experts;
  e.latent_dim =
      c.optional_integer({"routed_expert_hidden_size"}, 0, kLargestConfigSize).value_or(0);
  e.latent_norm = e.latent_dim > 0 && c.boolean("latent_moe_use_norm", false);
  if (c.has("attn_res_block_size"))
    config.left_out.push_back(
        "'attn_res_block_size': attention over the outputs of earlier blocks of layers is not "
        "forecast; each layer adds to one residual stream");
}

/// Dense layers have `dense_intermediate_size`; sparse ones attend to `sparse_topk_blocks` blocks
/// of keys. Published configs have a list of 0 and 1, transformers words for each layer.
void minimax_m3(const JsonObject& c, DecoderConfig& config) {
  config.ffn_dim = size_under(c, {"dense_intermediate_size"});
  read_experts(c, config, {"num_local_experts"},
               c.has("moe_intermediate_size") ? "moe_intermediate_size" : "intermediate_size");
  constexpr int64_t kMaxShared = 1024;
  config.experts.shared_ffn_dim =
      c.optional_integer({"n_shared_experts"}, 0, kMaxShared).value_or(1) *
      size_under(c, {"shared_intermediate_size"});
  if (!c.has("mlp_layer_types")) {
    const std::vector<bool> moe = layer_flags(c, config, "moe_layer_freq", true);
    for (size_t i = 0; i < moe.size(); ++i) config.layers[i].is_moe = moe[i];
  }
  const bool nested = c.has("sparse_attention_config");
  const JsonObject sparse = nested ? c.object("sparse_attention_config") : c;
  if (nested && !sparse.boolean("use_sparse_attention", true)) return;
  const std::vector<std::string> types =
      layer_words(c, config, "layer_types", {"full_attention", "minimax_m3_sparse"});
  const std::vector<bool> listed =
      layer_flags(sparse, config, "sparse_attention_freq", nested && types.empty());
  DecoderConfig::Indexer& i = config.indexer;
  i.heads = size_under(sparse, {nested ? "sparse_num_index_heads" : "index_n_heads"});
  i.head_dim = size_under(sparse, {nested ? "sparse_index_dim" : "index_head_dim"});
  i.block = size_under(sparse, {nested ? "sparse_block_size" : "index_block_size"});
  i.top_k = i.block * size_under(sparse, {nested ? "sparse_topk_blocks" : "index_topk_blocks"});
  for (size_t n = 0; n < config.layers.size(); ++n) {
    Layer& layer = config.layers[n];
    layer.is_sparse = types.empty() ? listed[n] : types[n] == "minimax_m3_sparse";
    layer.has_indexer = layer.is_sparse;
  }
}

}  // namespace tilecast
