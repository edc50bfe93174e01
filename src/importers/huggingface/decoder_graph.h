#pragma once

// Builds a decoder's graph of modules: decoder.cc (embeddings, layers, head), decoder_attention.cc,
// decoder_mixers.cc (layers with a recurrent state), decoder_ffn.cc (MLPs and experts).

#include <map>
#include <string>
#include <vector>

#include "importers/huggingface/decoder.h"
#include "importers/huggingface/layers.h"

namespace tilecast {

/// Up to this many tokens per key, DeepSeek-V4's keys overlap and an indexer selects them.
inline constexpr int64_t kOverlapRatio = 4;

class DecoderGraph {
 public:
  using Layer = DecoderConfig::Layer;

  DecoderGraph(Graph& graph, const DecoderConfig& config, const GraphRequest& request)
      : graph_(graph), f_(graph, request), c_(config), request_(request) {}

  void build();

 private:
  // decoder.cc
  TensorId embed();
  TensorId layer(TensorId x, size_t index);
  TensorId parallel_layer(TensorId x, size_t index);
  TensorId norm(TensorId x, const std::string& name);
  TensorId mixer(TensorId x, size_t index);
  TensorId add_layer_input(TensorId x, const std::string& p);
  void head(TensorId x, TensorId table);

  // decoder_attention.cc
  TensorId attention(TensorId x, size_t index);
  TensorId head_attention(TensorId x, const std::string& p, const Layer& layer,
                          std::vector<TensorId> further);
  TensorId attend(TensorId q, TensorId k, TensorId v, const std::string& p, const Layer& layer,
                  std::vector<TensorId> further);
  TensorId attend_shared(TensorId q, const std::string& p, const Layer& layer,
                         std::vector<TensorId> further);
  TensorId latent_attention(TensorId x, const std::string& p, const Layer& layer);
  TensorId heads_of(TensorId x, int64_t heads, int64_t size, const std::string& norm_name);
  TensorId rotate(TensorId x, const std::string& name);
  /// Keys or values that an earlier layer made, [b, heads, s, size].
  TensorId shared(const std::string& name, int64_t heads, int64_t size);
  TensorId gate_output(TensorId context, TensorId gate, const std::string& p, const Layer& layer);
  /// The keys that the indexer selects for each query.
  TensorId index(TensorId x, TensorId q_latent, const std::string& p);
  /// The same by blocks of keys, for attention with heads of its own (MiniMax M3).
  TensorId index_blocks(TensorId x, const std::string& p);

  // decoder_compressed.cc
  TensorId compressed_attention(TensorId x, size_t index);
  TensorId compress(TensorId x, const std::string& p, int64_t ratio, int64_t size);
  TensorId stream_weights(TensorId streams, const std::string& p, int64_t count);
  TensorId stream_layer(TensorId x, size_t index);
  TensorId merge_streams(TensorId x);

  // decoder_mixers.cc
  TensorId delta_net(TensorId x, size_t index);
  TensorId kimi_delta(TensorId x, size_t index);
  TensorId mamba(TensorId x, size_t index);
  /// The convolution over tokens and the activation after it.
  TensorId convolution(TensorId x, const std::string& p, const Layers::Split& split);

  // decoder_ffn.cc
  TensorId ffn(TensorId x, TensorId residual, size_t index);
  TensorId gated(TensorId x, const std::string& p, int64_t ffn_dim);
  TensorId experts(TensorId x, TensorId routed, const std::string& p);
  TensorId shared_experts(TensorId x, const std::string& p);
  TensorId experts_beside_mlp(TensorId x, TensorId residual, size_t index);

  const Layer& layer_at(size_t index) const { return c_.layers[index]; }

  Graph& graph_;
  Layers f_;
  const DecoderConfig& c_;
  const GraphRequest& request_;
  TensorId mask_ = -1;
  TensorId layer_inputs_ = -1;  ///< what each layer adds of the embedding of all layers (Gemma 4)
  /// Cosines and sines by the size of heads (of latent attention: of their rotated part).
  std::map<int64_t, std::vector<TensorId>> angles_;
};

}  // namespace tilecast
