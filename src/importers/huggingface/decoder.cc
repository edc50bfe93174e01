// Builds decoder-only models as graphs of modules (transformers/models/llama/modeling_llama.py and
// similar). Passes turn the graph into the kernels of eager PyTorch or of serving software. A layer
// of experts is one fused operator. Not modelled: partial rotary embeddings, which rotate only a
// part of each head.

#include "importers/huggingface/decoder.h"

#include <fmt/format.h>

#include "importers/huggingface/decoder_graph.h"

namespace tilecast {

using Mixer = DecoderConfig::Mixer;

TensorId DecoderGraph::embed() {
  const TensorId table = f_.vocabulary_table("embed_tokens.weight", c_.vocab_size, c_.hidden_dim);
  const TensorId ids = f_.ids("input_ids", {request_.batch, request_.seq});
  TensorId x = f_.embedding(table, ids, "embed_tokens");
  if (c_.scaled_embedding) x = f_.op("mul_scalar", {x}, "embed_tokens.scale");
  if (c_.learned_positions) {
    const TensorId positions = f_.embedding(
        f_.weight("embed_positions.weight", {c_.max_positions + c_.position_offset, c_.hidden_dim}),
        f_.ids("position_ids", {request_.batch, request_.seq}), "embed_positions");
    x = f_.op("add", {x, positions}, "embed_positions.add");
  }
  if (c_.embedding_norm) x = norm(x, "embed_norm");
  x = f_.dropout(x, "embed_dropout", c_.embedding_dropout);
  if (c_.per_layer_dim > 0) {
    // Gemma 4: a second table and a projection of the embedding give an input for each layer.
    const int64_t width = static_cast<int64_t>(c_.layers.size()) * c_.per_layer_dim;
    const TensorId second =
        f_.vocabulary_table("embed_tokens_per_layer.weight", c_.per_layer_vocab, width);
    const TensorId looked_up = f_.op(
        "mul_scalar", {f_.embedding(second, ids, "embed_tokens_per_layer")}, "per_layer.scale");
    const TensorId projected =
        f_.op("mul_scalar", {f_.linear(x, "per_layer_model_projection", {width, false})},
              "per_layer_model_projection.scale");
    const TensorId wide = f_.view(
        projected,
        {request_.batch, request_.seq, static_cast<int64_t>(c_.layers.size()), c_.per_layer_dim});
    const TensorId normal =
        f_.view(f_.rms_norm(wide, "per_layer_projection_norm", true, c_.wide_norm_weight),
                {request_.batch, request_.seq, width});
    const TensorId sum = f_.op("add", {normal, looked_up}, "per_layer.add");
    layer_inputs_ = f_.op("mul_scalar", {sum}, "per_layer.input_scale");
  }
  return x;
}

void DecoderGraph::build() {
  GraphBuilder& b = f_.builder();
  b.begin_segment("embeddings", 1);
  TensorId x = embed();
  const TensorId table = graph_.nodes.front().inputs[0];
  mask_ = f_.causal_mask(x, "causal_mask");
  if (c_.rotary) {
    for (const Layer& layer : c_.layers) {
      const int64_t size = c_.is_latent() ? c_.latent.qk_rope_head_dim : c_.head_dim_of(layer);
      if (layer.mixer == Mixer::kAttention && angles_.count(size) == 0)
        angles_[size] = b.add("rotary_table", {x}, "rotary_emb", {{"rope_dim", size}});
    }
  }
  if (c_.compressed.streams > 0)
    x = f_.op("expand_streams", {x}, "streams", {{"streams", c_.compressed.streams}});
  for (const LayerRun& run : layer_runs(c_.layers, request_.single_layers ? 1 : kLongestPattern)) {
    b.begin_segment(run.first == 0 ? "layers" : fmt::format("layers.{}", run.first), run.repeat);
    const TensorId start = x;
    for (size_t i = run.first; i < run.first + run.period; ++i) x = layer(x, i);
    b.carry(start, x);
  }
  b.begin_segment("head", 1);
  head(x, table);
}

void DecoderGraph::head(TensorId x, TensorId table) {
  if (c_.compressed.streams > 0) x = merge_streams(x);
  const TensorId last = c_.final_norm ? norm(x, "norm") : x;
  const RoleScope role(f_.builder(), Role::kOutput);
  TensorId logits =
      c_.tied_embeddings
          ? f_.tied_output(last, table)
          : f_.linear(last, "lm_head", {c_.vocab_size, c_.head_bias, f_.vocabulary(c_.vocab_size)});
  if (c_.scaled_logits) logits = f_.op("mul_scalar", {logits}, "lm_head.scale");
  if (c_.logit_softcap) {  // cap tanh(x / cap)
    for (const char* step : {"div_scalar", "tanh", "mul_scalar"})
      logits = f_.op(step, {logits}, "lm_head.cap");
  }
  graph_.outputs = {logits};
}

TensorId DecoderGraph::norm(TensorId x, const std::string& name) {
  if (c_.norm == DecoderConfig::Norm::kRms)
    return f_.rms_norm(x, name, c_.norm_weight, c_.wide_norm_weight);
  return f_.layer_norm(x, name, {c_.norm_weight, c_.norm_bias});
}

TensorId DecoderGraph::mixer(TensorId x, size_t index) {
  switch (layer_at(index).mixer) {
    case Mixer::kDeltaNet:
      return delta_net(x, index);
    case Mixer::kKimiDelta:
      return kimi_delta(x, index);
    case Mixer::kMamba2:
      return mamba(x, index);
    case Mixer::kCompressed:
      return compressed_attention(x, index);
    case Mixer::kAttention:
    case Mixer::kNone:
      break;
  }
  return attention(x, index);
}

TensorId DecoderGraph::parallel_layer(TensorId x, size_t index) {
  const std::string p = fmt::format("layers.{}.", index);
  const TensorId normal = norm(x, p + "input_layernorm");
  const TensorId attn_out = f_.dropout(mixer(normal, index), p + "dropout", c_.mixer_dropout);
  const TensorId input = c_.parallel_norm ? norm(x, p + "post_attention_layernorm") : normal;
  const TensorId ffn_out = f_.dropout(ffn(input, x, index), p + "dropout", c_.dropout);
  const TensorId sum = f_.op("add", {ffn_out, attn_out}, p + "parallel_add");
  return f_.residual({x, sum}, p + "residual");
}

TensorId DecoderGraph::layer(TensorId x, size_t index) {
  if (c_.compressed.streams > 0) return stream_layer(x, index);
  if (c_.parallel_attention) return parallel_layer(x, index);
  const std::string p = fmt::format("layers.{}.", index);
  const Layer& own = layer_at(index);
  // A layer of a recurrent state has the norms before it in OLMo Hybrid; here as in attention.
  if (own.mixer != Mixer::kNone) {
    TensorId out = mixer(c_.pre_norms ? norm(x, p + "input_layernorm") : x, index);
    out = f_.dropout(out, p + "dropout", c_.mixer_dropout);
    if (c_.post_norms) out = norm(out, p + "post_self_attn_layernorm");
    x = f_.residual({x, out}, p + "self_attn.residual");
  }
  if (own.has_ffn) {
    TensorId out = ffn(c_.pre_norms ? norm(x, p + "post_attention_layernorm") : x, x, index);
    out = f_.dropout(out, p + "dropout", c_.dropout);
    if (c_.post_norms) out = norm(out, p + "post_mlp_layernorm");
    x = f_.residual({x, out}, p + "mlp.residual");
  }
  return c_.per_layer_dim > 0 ? add_layer_input(x, p) : x;
}

/// Gemma 4: gates the layer's part of the second embedding and adds it.
TensorId DecoderGraph::add_layer_input(TensorId x, const std::string& p) {
  const TensorId gate =
      f_.activation(f_.linear(x, p + "per_layer_input_gate",
                              {.out = c_.per_layer_dim, .bias = false, .weight_role = Role::kGate}),
                    c_.activation, p + "per_layer_act");
  const TensorId own = f_.slice(layer_inputs_, c_.per_layer_dim, p + "per_layer_slice");
  const TensorId product = f_.op("mul", {gate, own}, p + "per_layer_mul");
  const TensorId out = f_.linear(product, p + "per_layer_projection", {c_.hidden_dim, false});
  return f_.residual({x, norm(out, p + "post_per_layer_input_norm")}, p + "per_layer_residual");
}

Graph build_decoder(const DecoderConfig& config, const GraphRequest& request) {
  Graph graph;
  DecoderGraph(graph, config, request).build();
  return graph;
}

}  // namespace tilecast
