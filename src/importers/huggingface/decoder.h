#pragma once

// Decoder-only language models: Llama and its successors. One description covers all families
// (decoder_config.cc), and one function builds their graphs of modules (decoder.cc).

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "importers/huggingface/family.h"
#include "importers/model.h"

namespace tilecast {

struct DecoderConfig {
  /// Properties that differ from layer to layer.
  struct Layer {
    int64_t window = 0;  ///< size of the sliding window in tokens; 0: none
    bool is_moe = false;
    std::vector<QuantScheme> schemes =
        {};  ///< schemes of its linear layers, if the checkpoint is quantized
    bool operator==(const Layer&) const = default;
  };
  /// A layer of experts.
  struct Experts {
    int64_t num_experts = 0, top_k = 0;
    int64_t ffn_dim = 0;  ///< of one expert
    /// Of the shared experts, which every token goes through; 0: none.
    int64_t shared_ffn_dim = 0;
    bool shared_gate = false;  ///< the shared experts have a gate
    bool bias = false;
    bool score_correction_bias = false;  ///< a bias for each expert that balances their load
  };
  /// Multi-head latent attention (DeepSeek's MLA): keys and values are stored as one latent vector.
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
  bool gated_mlp = true;  ///< the MLP has a gate projection (SwiGLU and similar)
  bool qkv_bias = false, out_bias = false, mlp_bias = false, sinks = false;
  bool qk_norm = false;  ///< queries and keys are normalized per head
  bool qk_norm_weight = true;
  bool post_norms = false;          ///< the outputs of attention and MLP are normalized too
  bool parallel_attention = false;  ///< attention and MLP run in parallel and share a norm
  bool fused_qkv = false, fused_gate = false;  ///< stored as one matrix in transformers
  bool rotary = true;
  bool scaled_embedding = false, attention_softcap = false, logit_softcap = false;
  bool tied_embeddings = false, attention_dropout = false;
  bool wide_norm_weight = false;  ///< RMS norms multiply by the weight in fp32
  bool softmax_fp32 = true;  ///< eager attention computes the softmax of half precision in fp32

  bool is_latent() const { return latent.kv_lora_rank > 0; }
  int64_t v_head_dim() const { return is_latent() ? latent.v_head_dim : head_dim; }
  /// Elements per token in the KV cache of one layer.
  int64_t kv_cache_dim() const {
    return is_latent() ? latent.kv_lora_rank + latent.qk_rope_head_dim : 2 * kv_heads * head_dim;
  }
};

/// Layers [first, first + period), repeated `repeat` times.
struct LayerRun {
  size_t first = 0, period = 1;
  int64_t repeat = 1;
};
std::vector<LayerRun> layer_runs(const std::vector<DecoderConfig::Layer>& layers);

/// A family of decoders; the fields are those of FamilyDef.
struct DecoderFamily {
  std::string_view model_type, architecture, doc;
  /// Reads the fields that are specific to the family, after the common ones.
  void (*read)(const JsonObject&, DecoderConfig&);
};
std::span<const DecoderFamily> decoder_families();

DecoderConfig read_decoder_config(const JsonObject& config);

/// The maximum number of positions after the config's scaling of rotary positions (`rope_scaling`).
/// Throws Error{kInput} for an unknown type of scaling.
int64_t scaled_positions(const JsonObject& config, int64_t max_positions);

/// Stores the quantization schemes of each layer's linear layers in `config`, and the schemes in
/// use in `checkpoint`. A scheme of the config that no layer has is a warning; if none is in use,
/// it is the checkpoint's `problem`, in which `where` names the config.
void read_layer_schemes(DecoderConfig& config, const std::string& where, Checkpoint& checkpoint);

/// A forward pass at the level of modules, all logits computed.
Graph build_decoder(const DecoderConfig& config, const GraphRequest& request);

}  // namespace tilecast
