#pragma once

// Decoder-only language models: Llama and what followed it. One description for all families
// (decoder_config.cc) and one graph of modules (decoder.cc).

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "importers/huggingface/family.h"
#include "importers/model.h"

namespace tilecast {

struct DecoderConfig {
  /// What differs from layer to layer.
  struct Layer {
    int64_t window = 0;  ///< tokens that attention reaches back; 0: all
    bool is_moe = false;
    std::vector<QuantScheme> schemes =
        {};  ///< of its linear layers, where the checkpoint is quantized
    bool operator==(const Layer&) const = default;
  };
  /// A layer of experts.
  struct Experts {
    int64_t num_experts = 0, top_k = 0;
    int64_t ffn_dim = 0;         ///< width of one expert
    int64_t shared_ffn_dim = 0;  ///< of what every token goes through beside; 0: none
    bool shared_gate = false;    ///< the shared part is weighted by a gate of its own
    bool bias = false;
    bool score_correction_bias = false;  ///< a number for each expert evens out their load
  };
  /// Keys and values kept as one latent vector (DeepSeek's MLA).
  struct Latent {
    int64_t q_lora_rank = 0;  ///< 0: queries are projected directly
    int64_t kv_lora_rank = 0, qk_rope_head_dim = 0, qk_nope_head_dim = 0, v_head_dim = 0;
  };
  enum class Norm { kRms, kLayer };

  int64_t hidden_dim, heads, kv_heads, head_dim, ffn_dim, max_positions, vocab_size;
  std::vector<Layer> layers;
  Experts experts;
  Latent latent;
  Norm norm = Norm::kRms;
  std::string activation;
  bool gated_mlp = true;  ///< the MLP multiplies by an activated gate
  bool qkv_bias = false, out_bias = false, mlp_bias = false, sinks = false;
  bool qk_norm = false;  ///< queries and keys are normalized per head
  bool qk_norm_weight = true;
  bool post_norms = false;                     ///< what a block adds is normalized too
  bool parallel_attention = false;             ///< attention and MLP read the same norm
  bool fused_qkv = false, fused_gate = false;  ///< as transformers holds the weights
  bool rotary = true;
  bool scaled_embedding = false, attention_softcap = false, logit_softcap = false;
  bool tied_embeddings = false, attention_dropout = false;

  bool is_latent() const { return latent.kv_lora_rank > 0; }
  int64_t v_head_dim() const { return is_latent() ? latent.v_head_dim : head_dim; }
  /// Elements that a token leaves in one layer's cache.
  int64_t kv_cache_dim() const {
    return is_latent() ? latent.kv_lora_rank + latent.qk_rope_head_dim : 2 * kv_heads * head_dim;
  }
};

/// Layers [first, first + period), `repeat` times over.
struct LayerRun {
  size_t first = 0, period = 1;
  int64_t repeat = 1;
};
std::vector<LayerRun> layer_runs(const std::vector<DecoderConfig::Layer>& layers);

/// A family of decoders; the fields are those of FamilyDef.
struct DecoderFamily {
  std::string_view model_type, architecture, doc;
  /// Reads what is the family's own, after what all have.
  void (*read)(const JsonObject&, DecoderConfig&);
};
std::span<const DecoderFamily> decoder_families();

DecoderConfig read_decoder_config(const JsonObject& config);

/// `positions` as the config's scaling of rotary positions extends them. Throws Error{kInput} for a
/// type of scaling that is not known.
int64_t scaled_positions(const JsonObject& config, int64_t max_positions);

/// Asks the checkpoint how each linear layer is stored: layers that differ are told apart, and the
/// checkpoint learns which schemes are in use; one that no layer has is a warning, or its problem
/// where it has no other. `where` names the config in it.
void read_layer_schemes(DecoderConfig& config, const std::string& where, Checkpoint& checkpoint);

/// A forward pass at the level of modules, all logits computed.
Graph build_decoder(const DecoderConfig& config, const GraphRequest& request);

}  // namespace tilecast
