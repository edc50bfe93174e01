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

}  // namespace

void read_layer_schemes(DecoderConfig& config, const std::string& where, Checkpoint& checkpoint) {
  if (!checkpoint.scheme_of) return;
  const auto ask = [&](size_t index, const std::string& part, std::vector<std::string> modules) {
    for (const std::string& module : modules) {
      const QuantScheme scheme =
          checkpoint.scheme_of(fmt::format("layers.{}.{}.{}", index, part, module));
      config.layers[index].schemes.push_back(scheme);
    }
  };
  // No published model has more layers; further layers are treated like the last of these.
  constexpr size_t kMaxAsked = 2048;
  for (size_t i = 0; i < config.layers.size(); ++i) {
    if (i >= kMaxAsked) {
      config.layers[i].schemes = config.layers[kMaxAsked - 1].schemes;
      continue;
    }
    // The modules with the most weights come first.
    if (config.layers[i].is_moe) ask(i, "mlp", {"experts"});
    const bool shared = config.layers[i].is_moe && config.experts.shared_ffn_dim > 0;
    if (shared) ask(i, "mlp.shared_experts", {"down_proj", "gate_proj", "up_proj"});
    if (!config.layers[i].is_moe) ask(i, "mlp", {"down_proj", "gate_proj", "up_proj"});
    ask(i, "self_attn", {"o_proj"});
    if (config.is_latent()) {
      ask(i, "self_attn", {"q_proj", "q_a_proj", "q_b_proj", "kv_a_proj_with_mqa", "kv_b_proj"});
    } else {
      ask(i, "self_attn", {"q_proj", "k_proj", "v_proj"});
    }
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
  Decoder decoder;
  decoder.layers = static_cast<int64_t>(config.layers.size());
  decoder.heads = config.heads;
  decoder.kv_heads = config.is_latent() ? 1 : config.kv_heads;
  decoder.latent = config.is_latent();
  decoder.ffn_dim = config.ffn_dim;
  decoder.expert_ffn_dim = config.experts.ffn_dim;
  decoder.embedding_parameters = config.tied_embeddings ? 0 : config.vocab_size * config.hidden_dim;
  model.checkpoint = std::move(checkpoint);
  for (const DecoderConfig::Layer& layer : config.layers)
    add_cache(decoder.caches, {.dim = config.kv_cache_dim(),
                               .window = layer.window,
                               .kv_heads = config.is_latent() ? 1 : config.kv_heads});
  model.decoder = std::move(decoder);
  return model;
}

}  // namespace tilecast
