// Reads a decoder's Hugging Face config: its graph, how the checkpoint stores each layer, and the
// facts that serving needs.

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/text.h"
#include "importers/huggingface/decoder.h"

namespace tilecast {
namespace {

/// A scheme that applies to none of the model's modules must not be ignored silently: the weights
/// would be forecast in full precision.
void note_unused_schemes(const std::vector<QuantScheme>& given, const std::string& where,
                         Checkpoint& checkpoint) {
  std::vector<std::string> unused;
  for (const QuantScheme scheme : given) {
    const auto& used = checkpoint.schemes;
    if (std::find(used.begin(), used.end(), scheme) == used.end())
      unused.emplace_back(scheme_info(scheme).name);
  }
  if (unused.empty()) return;
  if (checkpoint.schemes.empty()) {
    checkpoint.problem = fmt::format(
        "{}: '{}': stores weights in {}, but no layer of the model is among its modules", where,
        checkpoint.quantization, join(unused, ", "));
  } else {
    checkpoint.warnings.push_back(fmt::format("{}: no layer of the model is stored in {}",
                                              checkpoint.quantization, join(unused, ", ")));
  }
}

using Modules = std::vector<std::pair<std::string, std::vector<std::string>>>;

/// The linear layers of a layer by their part ("": of the layer itself); those with the most
/// weights come first.
Modules linear_modules(const DecoderConfig& config, const DecoderConfig::Layer& layer) {
  using Mixer = DecoderConfig::Mixer;
  Modules all;
  const std::string ffn(config.ffn_part), attention(config.attention_part);
  const std::vector<std::string> gated = {"down_proj", "gate_proj", "up_proj"};
  if (layer.has_ffn && layer.is_moe)
    all.push_back({config.experts.beside_mlp ? "" : ffn, {"experts"}});
  if (layer.has_ffn && layer.is_moe && config.experts.shared_ffn_dim > 0)
    all.push_back({ffn + ".shared_experts", gated});
  if (layer.has_ffn && (!layer.is_moe || config.experts.beside_mlp)) all.push_back({ffn, gated});
  if (layer.mixer == Mixer::kDeltaNet)
    all.push_back({"linear_attn", {"in_proj_qkvz", "in_proj_qkv", "in_proj_z", "out_proj"}});
  if (layer.mixer == Mixer::kKimiDelta)
    all.push_back({attention, {"qkv_proj", "g_proj", "o_proj"}});
  if (layer.mixer == Mixer::kMamba2) all.push_back({"mixer", {"in_proj", "out_proj"}});
  if (layer.mixer == Mixer::kCompressed)
    all.push_back({attention, {"o_b_proj", "q_a_proj", "q_b_proj", "kv_proj"}});
  if (layer.mixer != Mixer::kAttention) return all;
  all.push_back({attention, {"o_proj"}});
  if (config.is_latent()) {
    all.push_back(
        {attention, {"q_proj", "q_a_proj", "q_b_proj", "kv_a_proj_with_mqa", "kv_b_proj"}});
  } else {
    all.push_back({attention, {"q_proj", "k_proj", "v_proj"}});
  }
  return all;
}

void add_cache(std::vector<Decoder::Cache>& caches, Decoder::Cache cache) {
  for (Decoder::Cache& known : caches) {
    cache.layers = known.layers;
    if (known != cache) continue;
    known.layers += 1;
    return;
  }
  cache.layers = 1;
  caches.push_back(cache);
}

/// Keys of an indexer are stored in fp8 with a scale in fp32 for each 128.
int64_t index_dim(const DecoderConfig& config) {
  constexpr int64_t kBlock = 128, kScaleBytes = 4;
  return config.indexer.head_dim + (config.indexer.head_dim + kBlock - 1) / kBlock * kScaleBytes;
}

void add_caches(const DecoderConfig& config, const DecoderConfig::Layer& layer, Decoder& decoder) {
  using Mixer = DecoderConfig::Mixer;
  std::vector<Decoder::Cache>& caches = decoder.caches;
  if (layer.mixer == Mixer::kDeltaNet || layer.mixer == Mixer::kKimiDelta ||
      layer.mixer == Mixer::kMamba2) {
    const DecoderConfig::Recurrent& r = config.recurrent;
    const int64_t channels = r.heads * r.head_dim + 2 * r.groups * r.state_dim;
    decoder.recurrent_layers += 1;
    decoder.state_bytes += 4 * r.heads * r.head_dim * r.state_dim + 2 * channels * (r.window - 1);
  } else if (layer.mixer == Mixer::kCompressed) {
    add_cache(caches, {.dim = config.head_dim, .window = layer.window});
    if (layer.compression > 0)
      add_cache(caches, {.dim = config.head_dim, .ratio = layer.compression});
    if (layer.has_indexer)
      add_cache(caches,
                {.dim = index_dim(config), .ratio = layer.compression, .dtype = DType::kFp8});
  } else if (layer.mixer == Mixer::kAttention && !layer.shares_kv) {
    if (config.is_latent()) {
      add_cache(caches, {.dim = config.latent.kv_lora_rank + config.latent.qk_rope_head_dim});
      if (layer.has_indexer) add_cache(caches, {.dim = index_dim(config), .dtype = DType::kFp8});
      return;
    }
    const int64_t kv_heads = config.kv_heads_of(layer);
    add_cache(caches, {.dim = kv_heads * (config.head_dim_of(layer) + config.v_head_dim_of(layer)),
                       .window = layer.window,
                       .kv_heads = kv_heads});
    if (layer.has_indexer) add_cache(caches, {.dim = config.indexer.head_dim});
  }
}

}  // namespace

void read_layer_schemes(DecoderConfig& config, const std::string& where, Checkpoint& checkpoint) {
  if (!checkpoint.scheme_of) return;
  const auto ask = [&](size_t index, const std::string& part,
                       const std::vector<std::string>& modules) {
    for (const std::string& module : modules) {
      const QuantScheme scheme = checkpoint.scheme_of(
          fmt::format("layers.{}.{}{}{}", index, part, part.empty() ? "" : ".", module));
      config.layers[index].schemes.push_back(scheme);
    }
  };
  // Published models have up to 126 layers; further layers are treated like the last of these.
  constexpr size_t kMaxAsked = 512;
  for (size_t i = 0; i < config.layers.size(); ++i) {
    if (i >= kMaxAsked) {
      config.layers[i].schemes = config.layers[kMaxAsked - 1].schemes;
      continue;
    }
    for (const auto& [part, modules] : linear_modules(config, config.layers[i]))
      ask(i, part, modules);
  }
  const std::vector<QuantScheme> given = std::exchange(checkpoint.schemes, {});
  // Start with the last layer: the first layers are often dense or not quantized.
  for (auto layer = config.layers.rbegin(); layer != config.layers.rend(); ++layer) {
    for (const QuantScheme scheme : layer->schemes) {
      const auto& known = checkpoint.schemes;
      if (scheme != QuantScheme::kNone &&
          std::find(known.begin(), known.end(), scheme) == known.end())
        checkpoint.schemes.push_back(scheme);
    }
  }
  note_unused_schemes(given, where, checkpoint);
}

Model read_decoder(const JsonObject& json) {
  DecoderConfig config = read_decoder_config(json);
  Checkpoint checkpoint = read_checkpoint(json);
  read_layer_schemes(config, json.where(), checkpoint);
  Model model = make_model(config, std::min<int64_t>(2048, config.max_positions),
                           config.max_positions, build_decoder);
  model.has_fused_attention = true;
  // transformers 5.24: _supports_sdpa of Gemma 2, gpt-oss and others with these parts.
  model.takes_fused_attention = !config.attention_softcap && !config.sinks;
  model.warnings = config.left_out;
  Decoder decoder;
  decoder.layers = static_cast<int64_t>(config.layers.size());
  decoder.hidden_dim = config.hidden_dim;
  decoder.heads = config.heads;
  decoder.kv_heads = config.is_latent() ? 1 : config.kv_heads;
  decoder.latent = config.is_latent();
  decoder.ffn_dim = config.ffn_dim;
  decoder.expert_ffn_dim = config.experts.ffn_dim;
  decoder.embedding_parameters = config.tied_embeddings ? 0 : config.vocab_size * config.hidden_dim;
  decoder.recurrent_heads = config.recurrent.heads;
  decoder.recurrent_groups = config.recurrent.groups;
  constexpr int64_t kMostMtpLayers = 64;  // published configs state 3 at most
  const std::vector<std::string> mtp = {"num_nextn_predict_layers", "mtp_num_hidden_layers"};
  decoder.mtp_layers = json.optional_integer(mtp, 0, kMostMtpLayers).value_or(0);
  for (const DecoderConfig::Layer& layer : config.layers) add_caches(config, layer, decoder);
  model.checkpoint = std::move(checkpoint);
  model.decoder = std::move(decoder);
  return model;
}

}  // namespace tilecast
