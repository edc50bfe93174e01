// Attention of decoders: per head, over a latent vector (MLA), and over selected keys.

#include <fmt/format.h>

#include "importers/huggingface/decoder_graph.h"

namespace tilecast {

using OutputGate = DecoderConfig::OutputGate;
using QkNorm = DecoderConfig::QkNorm;

TensorId DecoderGraph::rotate(TensorId x, const std::string& name) {
  if (!c_.rotary) return x;
  const std::vector<TensorId>& angles = angles_.at(graph_.tensor(x).shape.back());
  std::vector<Attribute> attributes;
  if (c_.scaled_rotary) attributes.push_back({"scaled", 1});
  return f_.op("apply_rotary", {x, angles[0], angles[1]}, name, std::move(attributes));
}

TensorId DecoderGraph::shared(const std::string& name, int64_t heads, int64_t size) {
  const TensorId id = f_.builder().tensor({.name = name,
                                           .shape = {request_.batch, heads, request_.seq, size},
                                           .dtype = request_.dtype,
                                           .kind = TensorKind::kReference,
                                           .segment = f_.builder().current_segment()});
  graph_.splits.push_back({id, 1, 1, {heads}});
  return id;
}

/// Splits queries, keys or values into heads, [b, heads, s, size], and normalizes them if the
/// family does. "": no norm.
TensorId DecoderGraph::heads_of(TensorId x, int64_t heads, int64_t size,
                                const std::string& norm_name) {
  if (c_.qk_norm == QkNorm::kNone || norm_name.empty()) return f_.split_heads(x, heads);
  const TensorId wide = f_.view(x, {request_.batch, request_.seq, heads, size});
  if (c_.qk_norm == QkNorm::kHeadLayerNorm)
    return f_.split_heads(f_.layer_norm(wide, norm_name), heads);
  if (c_.qk_norm == QkNorm::kAllHeads) {
    // One norm over all heads; modelled as one per head, with the same memory traffic.
    const TensorId weight =
        f_.weight(norm_name + ".weight", {heads, size}, 0, f_.outputs(1, {heads}));
    std::vector<Attribute> attributes;
    if (c_.wide_norm_weight) attributes.push_back({"wide_weight", 1});
    return f_.split_heads(f_.op("rms_norm", {wide, weight}, norm_name, std::move(attributes)),
                          heads);
  }
  return f_.split_heads(
      f_.rms_norm(wide, norm_name, c_.qk_norm == QkNorm::kHead, c_.wide_norm_weight), heads);
}

/// context · sigmoid(gate)
TensorId DecoderGraph::gate_output(TensorId context, TensorId gate, const std::string& p,
                                   const Layer& layer) {
  const TensorId open = f_.op("sigmoid", {gate}, p + "gate");
  if (c_.output_gate != OutputGate::kPerHead) return f_.op("mul", {context, open}, p + "gate_mul");
  const int64_t heads = c_.heads_of(layer), size = c_.v_head_dim_of(layer);
  const TensorId wide = f_.view(context, {request_.batch, request_.seq, heads, size});
  const TensorId each = f_.view(open, {request_.batch, request_.seq, heads, 1});
  return f_.view(f_.op("mul", {wide, each}, p + "gate_mul"),
                 {request_.batch, request_.seq, heads * size});
}

TensorId DecoderGraph::attention(TensorId x, size_t index) {
  const std::string p = fmt::format("layers.{}.{}.", index, c_.attention_part);
  const Layer& layer = layer_at(index);
  const int64_t heads = c_.heads_of(layer);
  std::vector<TensorId> further = {mask_};
  if (c_.sinks && (!c_.sinks_in_windows || layer.window > 0))
    further.push_back(f_.weight(p + "sinks", {heads}, 0, f_.outputs(1, {heads})));
  TensorId context = c_.is_latent() ? latent_attention(x, p, layer)
                                    : head_attention(x, p, layer, std::move(further));
  if (c_.is_latent() && c_.output_gate == OutputGate::kProjection) {
    const int64_t size = c_.v_head_dim_of(layer);
    const TensorId gate =
        f_.linear(x, p + "g_proj", {heads * size, false, f_.outputs(size, {heads})});
    context = gate_output(context, gate, p, layer);
  }
  return f_.linear(context, p + "o_proj",
                   {c_.hidden_dim, c_.out_bias, f_.inputs(c_.v_head_dim_of(layer), heads)});
}

TensorId DecoderGraph::head_attention(TensorId x, const std::string& p, const Layer& layer,
                                      std::vector<TensorId> further) {
  const int64_t heads = c_.heads_of(layer), kv_heads = c_.kv_heads_of(layer);
  const int64_t size = c_.head_dim_of(layer), v_size = c_.v_head_dim_of(layer);
  const int64_t q_width = heads * size;
  const Layers::Split by_head = f_.outputs(size, {heads});
  TensorId q, k, v, gate = -1;
  if (c_.fused_qkv) {
    const int64_t kv_width = kv_heads * size;
    const TensorId all = f_.linear(x, p + "qkv_proj",
                                   {.out = q_width + 2 * kv_width,
                                    .bias = c_.qkv_bias,
                                    .split = f_.outputs(size, {heads, kv_heads, kv_heads}),
                                    .weight_role = Role::kQkv});
    q = f_.slice(all, q_width, p + "split_q");
    k = f_.slice(all, kv_width, p + "split_k");
    v = f_.slice(all, kv_width, p + "split_v");
    if (c_.copies_parts) {
      for (TensorId* part : {&q, &k, &v}) *part = f_.op("copy", {*part}, p + "split");
    }
  } else {
    if (c_.output_gate == OutputGate::kInQuery) {
      const TensorId both =
          f_.linear(x, p + "q_proj", {2 * q_width, c_.qkv_bias, f_.outputs(size, {heads, heads})});
      q = f_.slice(both, q_width, p + "split_q");
      gate = f_.slice(both, q_width, p + "split_gate");
    } else {
      q = f_.linear(x, p + "q_proj", {q_width, c_.qkv_bias, by_head});
    }
    if (layer.shares_kv) return attend_shared(q, p, layer, std::move(further));
    k = f_.linear(x, p + "k_proj", {kv_heads * size, c_.qkv_bias, f_.outputs(size, {kv_heads})});
    v = layer.value_is_key
            ? k
            : f_.linear(x, p + "v_proj",
                        {kv_heads * v_size, c_.qkv_bias, f_.outputs(v_size, {kv_heads})});
  }
  if (c_.output_gate == OutputGate::kProjection)
    gate = f_.linear(x, p + "gate_proj", {heads * v_size, false, f_.outputs(v_size, {heads})});
  if (c_.output_gate == OutputGate::kPerHead)
    gate = f_.linear(x, p + "g_proj", {heads, false, f_.outputs(1, {heads})});
  q = heads_of(q, heads, size, p + "q_norm");
  k = heads_of(k, kv_heads, size, p + "k_norm");
  if (c_.value_norm) {
    const TensorId wide = f_.view(v, {request_.batch, request_.seq, kv_heads, v_size});
    v = f_.split_heads(f_.rms_norm(wide, p + "v_norm", false), kv_heads);
  } else {
    v = heads_of(v, kv_heads, v_size, "");
  }
  if (c_.splits_rotated) {
    for (const TensorId id : {q, k}) graph_.tensor(graph_.tensor(id).storage).held = Held::kLayer;
  }
  q = rotate(q, p + "rotary_q");
  k = rotate(k, p + "rotary_k");
  if (layer.has_indexer) index_blocks(x, p);
  const TensorId context = attend(q, k, v, p, layer, std::move(further));
  return gate < 0 ? context : gate_output(context, gate, p, layer);
}

TensorId DecoderGraph::attend(TensorId q, TensorId k, TensorId v, const std::string& p,
                              const Layer& layer, std::vector<TensorId> further) {
  // Blocks of keys that an indexer selected are as many keys as a window of that size.
  const int64_t window = layer.is_sparse ? c_.indexer.top_k : layer.window;
  std::vector<Attribute> attributes = {{"causal", 1}, {"window", window}};
  if (c_.attention_softcap) attributes.push_back({"softcap", 1});
  if (c_.attention_dropout) attributes.push_back({"dropout", 1});
  if (further.size() > 1) attributes.push_back({"sinks", 1});
  if (c_.softmax_fp32) attributes.push_back({"softmax_fp32", 1});
  const auto flag = [&](bool set, const char* name) {
    if (set) attributes.push_back({name, 1});
  };
  flag(c_.returns_weights, "returns_weights");
  flag(c_.masks_in_call, "masks_in_call");
  flag(c_.clamps_scores, "clamped");
  flag(c_.fp32_scores, "fp32_scores");
  flag(c_.holds_fp32, "holds_fp32");
  flag(c_.joins_rotated, "joined_heads");
  flag(c_.equal_heads, "equal_heads");
  return f_.attention(q, k, v, p + "attention", std::move(attributes), std::move(further));
}

/// Attention to the keys and values of an earlier layer (Gemma 4).
TensorId DecoderGraph::attend_shared(TensorId q, const std::string& p, const Layer& layer,
                                     std::vector<TensorId> further) {
  const int64_t kv_heads = c_.kv_heads_of(layer), size = c_.head_dim_of(layer);
  const TensorId turned =
      rotate(heads_of(q, c_.heads_of(layer), size, p + "q_norm"), p + "rotary_q");
  return attend(turned, shared(p + "shared_k", kv_heads, size),
                shared(p + "shared_v", kv_heads, size), p, layer, std::move(further));
}

/// DeepSeek's multi-head latent attention. Every rank computes both latent vectors completely.
TensorId DecoderGraph::latent_attention(TensorId x, const std::string& p, const Layer& layer) {
  const DecoderConfig::Latent& l = c_.latent;
  TensorId q_latent = x;
  if (l.q_lora_rank > 0)
    q_latent = f_.rms_norm(f_.linear(x, p + "q_a_proj", {l.q_lora_rank, c_.qkv_bias}),
                           p + "q_a_layernorm");
  const int64_t qk_head_dim = l.qk_nope_head_dim + l.qk_rope_head_dim;
  const TensorId q = f_.split_heads(
      f_.linear(q_latent, p + "q_b_proj",
                {c_.heads * qk_head_dim, false, f_.outputs(qk_head_dim, {c_.heads})}),
      c_.heads);
  const TensorId both =
      f_.linear(x, p + "kv_a_proj_with_mqa", {l.kv_lora_rank + l.qk_rope_head_dim, c_.qkv_bias});
  const TensorId latent =
      f_.rms_norm(f_.slice(both, l.kv_lora_rank, p + "split_latent"), p + "kv_a_layernorm");
  const TensorId kv_b = f_.weight(p + "kv_b_proj.weight",
                                  {c_.heads * (l.qk_nope_head_dim + l.v_head_dim), l.kv_lora_rank},
                                  0, f_.outputs(l.qk_nope_head_dim + l.v_head_dim, {c_.heads}));
  std::vector<Attribute> attributes = {{"causal", 1}, {"rope_dim", l.qk_rope_head_dim}};
  if (c_.softmax_fp32) attributes.push_back({"softmax_fp32", 1});
  if (c_.attention_dropout) attributes.push_back({"dropout", 1});
  const std::vector<TensorId>& angles = angles_.at(l.qk_rope_head_dim);
  std::vector<TensorId> inputs = {q, latent, both, kv_b, angles[0], angles[1], mask_};
  if (layer.has_indexer) index(x, q_latent, p);
  if (layer.is_sparse) attributes.push_back({"top_k", c_.indexer.top_k});
  return f_.op("latent_attention", std::move(inputs), p + "attention", std::move(attributes));
}

TensorId DecoderGraph::index(TensorId x, TensorId q_latent, const std::string& p) {
  const DecoderConfig::Indexer& i = c_.indexer;
  const std::string own = p + "indexer.";
  const TensorId q = f_.linear(q_latent, own + "wq_b", {i.heads * i.head_dim, false});
  const TensorId k = f_.layer_norm(f_.linear(x, own + "wk", {i.head_dim, false}), own + "k_norm");
  const TensorId weights = f_.linear(x, own + "weights_proj", {i.heads, false});
  return f_.op("indexer", {q, k, weights}, own + "select",
               {{"heads", i.heads}, {"top_k", i.top_k}, {"ratio", 1}});
}

/// Source: transformers 5.24, modular_minimax_m3_vl.py (MiniMaxM3VLIndexer).
TensorId DecoderGraph::index_blocks(TensorId x, const std::string& p) {
  const DecoderConfig::Indexer& i = c_.indexer;
  const auto rows = [&](const std::string& name, int64_t count) {
    const TensorId wide = f_.linear(x, p + "index_" + name + "_proj", {count * i.head_dim, false});
    const TensorId normal =
        f_.rms_norm(f_.view(wide, {request_.batch, request_.seq, count, i.head_dim}),
                    p + "index_" + name + "_norm", true, c_.wide_norm_weight);
    return f_.view(normal, {request_.batch, request_.seq, count * i.head_dim});
  };
  return f_.op("indexer", {rows("q", i.heads), rows("k", 1)}, p + "index_select",
               {{"heads", i.heads}, {"top_k", i.top_k}, {"ratio", 1}, {"block", i.block}});
}

}  // namespace tilecast
