#pragma once

// The transformer of vision models, and of the text beside them: layers with norms first.

#include <string>

#include "importers/huggingface/family.h"
#include "importers/huggingface/layers.h"

namespace tilecast {

struct Tower {
  int64_t hidden_dim, heads, layers, ffn_dim;
  std::string activation;
  int64_t tokens = 0;  ///< length of a sequence: patches and the tokens beside them, or text tokens
  int64_t image = 0, patch = 0, channels = 0;
  int64_t vocab_size = 0;    ///< text only
  int64_t class_tokens = 1;  ///< learned tokens before the patches, which have positions
  int64_t registers = 0;     ///< learned tokens between them and the patches, without positions
  bool mask_token = false;   ///< a parameter that only pre-training uses
  bool positions = true;     ///< a learned table
  bool patch_bias = true;
  bool qkv_bias = true, key_bias = true;
  bool attention_dropout = false;
  bool softmax_fp32 = true;    ///< eager attention computes the softmax of half precision in fp32
  bool layer_scale = false;    ///< a factor for each channel of what a residual is added to
  bool swiglu = false;         ///< a gated MLP
  bool relative_bias = false;  ///< a number for each distance of two patches and head, per layer
  bool shared_relative_bias = false;  ///< the same, one table for all layers
  bool embedding_norm = false;        ///< CLIP's image tower has a norm after the embedding

  int64_t patches() const { return tokens - class_tokens - registers; }
};

/// Reads the sizes of the layers; `ffn_dim` too, if the config has `intermediate_size`, else
/// `mlp_ratio`. Throws Error{kInput} that names the field.
Tower read_tower(const JsonObject& config);
/// Reads the sizes of images and counts the tokens.
void read_image(const JsonObject& config, Tower& tower);

/// The transformer's layers. Causal if there is a mask.
TensorId encode(Layers& f, const Tower& tower, TensorId start, const std::string& name,
                TensorId mask = -1);

/// Patch embedding by a convolution, with the learned tokens in front and positions added.
TensorId embed_image(Layers& f, const Tower& tower, const std::string& prefix);

/// Token and position embeddings of a text, [b, s, hidden_dim].
TensorId embed_text(Layers& f, const Tower& tower, const std::string& prefix);

/// One token of each sequence, [b, hidden_dim].
TensorId one_token(Layers& f, TensorId x, const std::string& name);

}  // namespace tilecast
