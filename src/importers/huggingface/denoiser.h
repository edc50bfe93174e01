#pragma once

// Denoisers of diffusers' pipelines: transformers over the tokens of latent images or videos.

#include <functional>
#include <string>
#include <vector>

#include "base/json.h"
#include "importers/huggingface/layers.h"

namespace tilecast {

/// What a denoiser computes in one run.
struct DenoiserBatch {
  int64_t samples = 1;
  int64_t frames = 1, height = 1, width = 1;  ///< of the latents
  std::vector<int64_t> text_tokens = {};      ///< of each text that the denoiser reads
  int64_t ulysses = 1, ring = 1;              ///< ranks that share the tokens
};

/// The fields of a transformer's config, whatever its class.
struct DenoiserConfig {
  int64_t heads = 1, head_dim = 1, layers = 1;
  int64_t single_layers = 0, refiner_layers = 0;
  int64_t in = 1, out = 1, patch = 1, patch_t = 1;
  int64_t sample = 0;     ///< latents of a side that the model is made for; 0: not stated
  int64_t positions = 0;  ///< of a side, the most that a table of positions has; 0: no table
  bool linear = false;    ///< attention to the image sends sums, not heads
  int64_t text_dim = 0, second_text_dim = 0, pooled_dim = 0, text_tokens = 0;
  int64_t cross_heads = 0, cross_head_dim = 0, ffn_dim = 0, time_dim = 0;
  bool rotary = false, guidance = false, qk_norm = false, patch_bias = true, cross_norm = false;
  int64_t dual_layers = 0;  ///< the first ones attend to the image alone as well

  int64_t hidden_dim() const { return heads * head_dim; }
};

/// A class of denoisers of diffusers.
struct DenoiserDef {
  std::string_view class_name;
  std::string_view doc;
  DenoiserConfig (*read)(const JsonObject& config);
  void (*build)(Graph&, const DenoiserConfig&, const DenoiserBatch&, DType);
};
const std::vector<DenoiserDef>& denoisers();
/// nullptr if no class of denoisers has this name.
const DenoiserDef* find_denoiser(std::string_view class_name);

/// Blocks of denoisers. Tokens are those of one rank.
class Denoiser {
 public:
  Denoiser(Graph& graph, const DenoiserConfig& config, const DenoiserBatch& batch, DType dtype);

 protected:
  GraphBuilder& b() { return f_.builder(); }
  const Shape& shape_of(TensorId x) { return b().graph().tensor(x).shape; }
  int64_t ranks() const { return batch_.ulysses * batch_.ring; }
  /// A rank's share of tokens.
  int64_t share(int64_t tokens) const;
  /// Tokens of the latents, on one rank.
  int64_t tokens() const;

  TensorId input(const std::string& name, Shape shape);
  TensorId linear(TensorId x, const std::string& name, int64_t out, bool bias = true) {
    return f_.linear(x, name, {out, bias});
  }
  /// linear, activation, linear.
  TensorId mlp(TensorId x, const std::string& first, const std::string& second, int64_t wide,
               int64_t out, const std::string& activation);
  /// Time step, or guidance: sines and cosines, then two linear layers.
  TensorId embed_step(const std::string& p, int64_t channels, int64_t out);
  /// Latents cut into patches, [b, tokens, hidden_dim], by a convolution or a linear layer.
  TensorId embed_patches(const std::string& name, bool convolution, bool bias = true);
  /// Latents that become tokens of `columns` numbers each, for the output.
  void unpatch(TensorId x, const std::string& name);

  TensorId layer_norm(TensorId x, const std::string& name, bool affine = false);
  /// FP32LayerNorm: in fp32, whatever the model's dtype.
  TensorId wide_norm(TensorId x, const std::string& name, bool affine);
  /// The next `columns` of each sample's condition, [b, 1, columns].
  TensorId part(TensorId condition, const std::string& name, int64_t columns);
  /// x (1 + scale) + shift
  TensorId modulate(TensorId x, TensorId condition, const std::string& name);
  /// x + gate y
  TensorId add_gated(TensorId x, TensorId y, TensorId condition, const std::string& name);
  TensorId cast(TensorId x, DType dtype, const std::string& name);
  /// RMS norm of each head, [b, s, heads, d].
  TensorId rms_of_heads(TensorId x, const std::string& name) { return f_.rms_norm(x, name); }
  /// Projection to heads, [b, s, heads, d].
  TensorId heads_of(TensorId x, const std::string& name, int64_t heads, int64_t head_dim);
  TensorId as_heads(TensorId x, int64_t heads);
  /// apply_rotary_emb of diffusers, on [b, s, heads, d]: in fp32, with copies.
  TensorId rotate(TensorId x, const std::string& name);
  /// Attention of [b, s, heads, d], of ranks that share the tokens; returns [b, s, heads · d].
  TensorId attend(TensorId q, TensorId k, TensorId v, const std::string& p);
  /// Attention to text that every rank has.
  TensorId attend_to_text(TensorId q, TensorId k, TensorId v, const std::string& p);
  TensorId join(std::vector<TensorId> parts, const std::string& name, int64_t dim = 1) {
    return f_.op("cat", std::move(parts), name, {{"dim", dim}});
  }
  /// Some tokens of each sample, a view.
  TensorId rows(TensorId x, int64_t count, const std::string& name) {
    return f_.op("slice", {x}, name, {{"dim", 1}, {"count", count}});
  }

  Graph& graph_;
  const DenoiserConfig& c_;
  const DenoiserBatch& batch_;
  Layers f_;

 private:
  TensorId around_ring(TensorId q, TensorId k, TensorId v, const std::string& p);
};

template <typename Network>
void build_network(Graph& graph, const DenoiserConfig& config, const DenoiserBatch& batch,
                   DType dtype) {
  Network(graph, config, batch, dtype).build();
}

}  // namespace tilecast
