#pragma once

// Decoder-only language models: Llama and its successors. One description covers all families
// (decoder_config.cc), and one function builds their graphs of modules (decoder.cc).

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "importers/huggingface/family.h"
#include "importers/model.h"

namespace tilecast {

/// Traits that distinguish the layers of one family from another's. A row of the table of families
/// (decoder_families.cc) sets them; fields of the config may override some.
struct DecoderTraits {
  enum class Norm : uint8_t { kRms, kLayer };
  /// Queries and keys are normalized: not at all, per head, per head without a weight, per head
  /// with a layer norm (persimmon), or over all heads together.
  enum class QkNorm : uint8_t { kNone, kHead, kHeadNoWeight, kHeadLayerNorm, kAllHeads };
  /// The biases that the config's `attention_bias` switches: of q, k, v and of the output, the
  /// former only, or none.
  enum class BiasField : uint8_t { kBoth, kQkv, kNone };
  /// Attention's output is multiplied by the sigmoid of a gate: a second half of q_proj, a
  /// projection of its own, or one number per head.
  enum class OutputGate : uint8_t { kNone, kInQuery, kProjection, kPerHead };

  Norm norm = Norm::kRms;
  bool norm_weight = true, norm_bias = true;  ///< of layer norms
  QkNorm qk_norm = QkNorm::kNone;
  BiasField bias_field = BiasField::kBoth;
  OutputGate output_gate = OutputGate::kNone;
  bool qkv_bias = false, out_bias = false, mlp_bias = false, head_bias = false;
  bool gated_mlp = true;            ///< the MLP has a gate projection (SwiGLU and similar)
  bool pre_norms = true;            ///< the inputs of attention and MLP are normalized
  bool post_norms = false;          ///< the outputs of attention and MLP are normalized too
  bool parallel_attention = false;  ///< attention and MLP run in parallel and share a norm
  bool parallel_norm = false;       ///< if parallel: the MLP has a norm of its own
  bool fused_qkv = false, fused_gate = false;  ///< stored as one matrix in transformers
  bool rotary = true;
  bool scaled_rotary = false;      ///< cosines and sines are scaled (YaRN)
  bool learned_positions = false;  ///< a table of positions is added to the embedding
  int64_t position_offset = 0;     ///< rows of that table before the first position
  bool embedding_norm = false, scaled_embedding = false;
  bool final_norm = true;
  bool sinks = false;
  bool tied_embeddings = false;   ///< default of `tie_word_embeddings`
  int64_t ffn_per_hidden = 0;     ///< default of ffn_dim / hidden_dim; 0: none
  int64_t default_positions = 0;  ///< where a config names no limit of positions; 0: it must
  /// All layers but every n-th have the config's sliding window; 1: all have it; 0: none, unless
  /// `layer_types` lists them.
  int64_t window_pattern = 0;
  std::string_view default_activation = "silu";
  /// Names of attention and MLP in checkpoints, for their lists of quantized modules.
  std::string_view attention_part = "self_attn", ffn_part = "mlp";
  bool wide_norm_weight = false;  ///< RMS norms multiply by the weight in fp32
  bool softmax_fp32 = true;      ///< eager attention computes the softmax of half precision in fp32
  bool scaled_logits = false;    ///< a factor after the output layer
  bool fp32_routing = false;     ///< the weights of experts are in fp32, and so is their sum
  bool fp32_router = false;      ///< the router multiplies in fp32
  bool dense_experts = false;    ///< transformers computes all experts for all tokens
  bool clamps_scores = false;    ///< eager attention keeps scores above the lowest number
  bool fp32_scores = false;      ///< eager attention multiplies queries and keys in fp32
  bool joins_rotated = false;    ///< queries and keys are joined of rotated and other parts
  bool equal_heads = false;      ///< SDPA is not told of shared key heads
  bool splits_rotated = false;   ///< the module's variables hold what is not rotated
  bool copies_parts = false;     ///< q, k and v are copied from the fused projection
  bool returns_weights = false;  ///< layers return the weights of eager attention
  bool masks_in_call = false;    ///< `softmax(scores + mask)` is one expression
  bool holds_fp32 = false;       ///< variables hold queries and keys in fp32
};

struct DecoderConfig : DecoderTraits {
  /// The part of a layer that mixes tokens.
  enum class Mixer : uint8_t { kAttention, kDeltaNet, kKimiDelta, kMamba2, kCompressed, kNone };
  /// Properties that differ from layer to layer.
  struct Layer {
    int64_t window = 0;  ///< size of the sliding window in tokens; 0: none
    bool is_moe = false;
    std::vector<QuantScheme> schemes =
        {};  ///< schemes of its linear layers, if the checkpoint is quantized
    Mixer mixer = Mixer::kAttention;
    bool has_ffn = true;
    // 0: as in the config.
    int64_t heads = 0, kv_heads = 0, head_dim = 0, ffn_dim = 0;
    bool value_is_key = false;  ///< no v_proj: the key projection gives the values too
    bool shares_kv = false;     ///< reads the keys and values of an earlier layer
    bool has_indexer = false;   ///< sparse attention: selects keys itself
    bool is_sparse = false;     ///< sparse attention, keys selected here or by an earlier layer
    int64_t compression = 0;    ///< compressed attention: tokens per compressed key; 0: none
    bool operator==(const Layer&) const = default;
  };
  /// A layer of experts.
  struct Experts {
    int64_t num_experts = 0, top_k = 0;
    int64_t ffn_dim = 0;  ///< of one expert
    /// Width of the shared experts, which every token goes through; 0: none.
    int64_t shared_ffn_dim = 0;
    bool shared_gate = false;  ///< the shared experts have a gate
    bool bias = false;
    bool clamped = false;  ///< gate and up are limited before the activation
    /// A bias for each expert that balances their load, if it is a parameter (elsewhere a buffer).
    bool score_correction_bias = false;
    int64_t latent_dim = 0;    ///< experts work on a projection of the tokens; 0: on the tokens
    bool latent_norm = false;  ///< that projection is normalized
    bool beside_mlp = false;   ///< Gemma 4: an MLP runs beside the experts
  };
  /// Multi-head latent attention (DeepSeek's MLA): keys and values are stored as one latent vector.
  struct Latent {
    int64_t q_lora_rank = 0;  ///< 0: queries are projected directly
    int64_t kv_lora_rank = 0, qk_rope_head_dim = 0, qk_nope_head_dim = 0, v_head_dim = 0;
  };
  /// Sparse attention (DeepSeek Sparse Attention): an indexer selects the keys of each query.
  struct Indexer {
    int64_t heads = 0, head_dim = 0, top_k = 0;
    int64_t block = 1;  ///< keys that are selected together, by each head (MiniMax M3)
  };
  /// Layers with a recurrent state: Mamba-2 and (Kimi's) gated delta nets.
  struct Recurrent {
    int64_t heads = 0, head_dim = 0;    ///< of values
    int64_t groups = 0, state_dim = 0;  ///< key heads and their size
    int64_t window = 0;                 ///< width of the convolution
    bool conv_bias = false, proj_bias = false;
    bool merged = false;    ///< delta nets: one matrix for q, k, v and gate, one for both decays
    int64_t gate_rank = 0;  ///< Kimi: of the output gate's matrix, two factors; 0: one matrix
  };
  /// DeepSeek-V4: hyper-connections and the low-rank output projection.
  struct Compressed {
    int64_t streams = 0, output_groups = 0, output_rank = 0, q_lora_rank = 0;
  };

  int64_t hidden_dim = 0, heads = 0, kv_heads = 0, head_dim = 0, ffn_dim = 0, max_positions = 0,
          vocab_size = 0;
  int64_t value_dim = 0;  ///< of a value head, if it is not a key head's; 0: the same
  std::vector<Layer> layers;
  Experts experts;
  Latent latent;
  Indexer indexer;
  Recurrent recurrent;
  Compressed compressed;
  std::string activation;
  int64_t per_layer_dim = 0;    ///< Gemma 4: of an embedding that each layer adds; 0: none
  int64_t per_layer_vocab = 0;  ///< rows of its table
  bool attention_softcap = false, logit_softcap = false, attention_dropout = false;
  /// Of the FFN's result; of attention's, or of what stands for it; of embeddings.
  bool dropout = false, mixer_dropout = false, embedding_dropout = false;
  bool sinks_in_windows = false;           ///< sinks only in layers with a window
  bool value_norm = false;                 ///< values are normalized, without a weight
  std::vector<std::string> left_out = {};  ///< warnings about parts that the graph lacks

  DecoderConfig() = default;
  explicit DecoderConfig(const DecoderTraits& traits)
      : DecoderTraits(traits), activation(traits.default_activation) {}

  bool is_latent() const { return latent.kv_lora_rank > 0; }
  int64_t heads_of(const Layer& l) const { return l.heads > 0 ? l.heads : heads; }
  int64_t kv_heads_of(const Layer& l) const { return l.kv_heads > 0 ? l.kv_heads : kv_heads; }
  int64_t head_dim_of(const Layer& l) const { return l.head_dim > 0 ? l.head_dim : head_dim; }
  int64_t v_head_dim_of(const Layer& l) const {
    if (is_latent()) return latent.v_head_dim;
    return value_dim > 0 ? value_dim : head_dim_of(l);
  }
  int64_t ffn_dim_of(const Layer& l) const { return l.ffn_dim > 0 ? l.ffn_dim : ffn_dim; }
};

/// Layers [first, first + period), repeated `repeat` times.
struct LayerRun {
  size_t first = 0, period = 1;
  int64_t repeat = 1;
};
inline constexpr size_t kLongestPattern = 8;
std::vector<LayerRun> layer_runs(const std::vector<DecoderConfig::Layer>& layers, size_t longest);

/// A family of decoders; the first fields are FamilyDef's.
struct DecoderFamily {
  std::string_view model_type, architecture, doc;
  /// Reads the fields that are specific to the family, after the common ones; null: there are none.
  void (*read)(const JsonObject&, DecoderConfig&) = nullptr;
  DecoderTraits traits = {};
};
std::span<const DecoderFamily> decoder_families();

DecoderConfig read_decoder_config(const JsonObject& config);

/// The maximum number of positions after the config's scaling of rotary positions (`rope_scaling`).
/// Throws Error{kInput} for an unknown type of scaling.
int64_t scaled_positions(const JsonObject& config, int64_t max_positions);
/// Whether YaRN's attention factor, which cosines and sines are multiplied with, is not 1.
bool has_attention_factor(const JsonObject& config);

/// Stores the quantization schemes of each layer's linear layers in `config`, and the schemes in
/// use in `checkpoint`. A scheme of the config that no layer has is a warning; if none is in use,
/// it is the checkpoint's `problem`, in which `where` names the config.
void read_layer_schemes(DecoderConfig& config, const std::string& where, Checkpoint& checkpoint);

/// A forward pass at the level of modules, all logits computed.
Graph build_decoder(const DecoderConfig& config, const GraphRequest& request);

}  // namespace tilecast
