// Builds decoder-only models as graphs of modules (transformers/models/llama/modeling_llama.py and
// similar). Passes turn the graph into the kernels of eager PyTorch or of serving software. A layer
// of experts is one fused operator. Not modelled: partial rotary embeddings, which rotate only a
// part of each head.

#include "importers/huggingface/decoder.h"

#include <fmt/format.h>

#include "importers/huggingface/layers.h"

namespace tilecast {
namespace {

class DecoderGraph {
 public:
  DecoderGraph(Graph& graph, const DecoderConfig& config, const GraphRequest& request)
      : graph_(graph), f_(graph, request), c_(config), request_(request) {}

  void build() {
    GraphBuilder& b = f_.builder();
    b.begin_segment("embeddings", 1);
    const TensorId table = f_.vocabulary_table("embed_tokens.weight", c_.vocab_size, c_.hidden_dim);
    TensorId x =
        f_.embedding(table, f_.ids("input_ids", {request_.batch, request_.seq}), "embed_tokens");
    if (c_.scaled_embedding) x = f_.op("mul_scalar", {x}, "embed_tokens.scale");
    mask_ = f_.causal_mask(x, "causal_mask");
    if (c_.rotary) {
      const int64_t rope_dim = c_.is_latent() ? c_.latent.qk_rope_head_dim : c_.head_dim;
      angles_ = b.add("rotary_table", {x}, "rotary_emb", {{"rope_dim", rope_dim}});
    }
    for (const LayerRun& run : layer_runs(c_.layers)) {
      b.begin_segment(run.first == 0 ? "layers" : fmt::format("layers.{}", run.first), run.repeat);
      const TensorId start = x;
      for (size_t i = run.first; i < run.first + run.period; ++i) x = layer(x, i);
      b.carry(start, x);
    }
    b.begin_segment("head", 1);
    const TensorId last = norm(x, "norm");
    TensorId logits =
        c_.tied_embeddings
            ? f_.op("linear", {last, table}, "lm_head")
            : f_.linear(last, "lm_head", {c_.vocab_size, false, f_.outputs(1, {c_.vocab_size})});
    if (c_.logit_softcap) {  // cap tanh(x / cap)
      for (const char* step : {"div_scalar", "tanh", "mul_scalar"})
        logits = f_.op(step, {logits}, "lm_head.cap");
    }
    graph_.outputs = {logits};
  }

 private:
  TensorId norm(TensorId x, const std::string& name) {
    return c_.norm == DecoderConfig::Norm::kRms ? f_.rms_norm(x, name, true, c_.wide_norm_weight)
                                                : f_.layer_norm(x, name);
  }

  TensorId rotate(TensorId x, const std::string& name) {
    return c_.rotary ? f_.op("apply_rotary", {x, angles_[0], angles_[1]}, name) : x;
  }

  /// Splits queries or keys into heads, [b, heads, s, head_dim], and normalizes them if the family
  /// does.
  TensorId heads_of(TensorId x, int64_t heads, const std::string& norm_name) {
    if (!c_.qk_norm || norm_name.empty()) return f_.split_heads(x, heads);
    const TensorId wide = f_.view(x, {request_.batch, request_.seq, heads, c_.head_dim});
    return f_.split_heads(f_.rms_norm(wide, norm_name, c_.qk_norm_weight, c_.wide_norm_weight),
                          heads);
  }

  TensorId attention(TensorId x, size_t index) {
    const std::string p = fmt::format("layers.{}.self_attn.", index);
    std::vector<TensorId> further = {mask_};
    if (c_.sinks)
      further.push_back(f_.weight(p + "sinks", {c_.heads}, 0, f_.outputs(1, {c_.heads})));
    const TensorId context =
        c_.is_latent() ? latent_attention(x, p) : head_attention(x, p, index, std::move(further));
    return f_.linear(context, p + "o_proj",
                     {c_.hidden_dim, c_.out_bias, f_.inputs(c_.v_head_dim(), c_.heads)});
  }

  TensorId head_attention(TensorId x, const std::string& p, size_t index,
                          std::vector<TensorId> further) {
    const int64_t q_width = c_.heads * c_.head_dim, kv_width = c_.kv_heads * c_.head_dim;
    const Layers::Split by_kv_head = f_.outputs(c_.head_dim, {c_.kv_heads});
    TensorId q, k, v;
    if (c_.fused_qkv) {
      const TensorId all =
          f_.linear(x, p + "qkv_proj",
                    {q_width + 2 * kv_width, c_.qkv_bias,
                     f_.outputs(c_.head_dim, {c_.heads, c_.kv_heads, c_.kv_heads})});
      q = f_.slice(all, q_width, p + "split_q");
      k = f_.slice(all, kv_width, p + "split_k");
      v = f_.slice(all, kv_width, p + "split_v");
    } else {
      q = f_.linear(x, p + "q_proj", {q_width, c_.qkv_bias, f_.outputs(c_.head_dim, {c_.heads})});
      k = f_.linear(x, p + "k_proj", {kv_width, c_.qkv_bias, by_kv_head});
      v = f_.linear(x, p + "v_proj", {kv_width, c_.qkv_bias, by_kv_head});
    }
    q = heads_of(q, c_.heads, p + "q_norm");
    k = heads_of(k, c_.kv_heads, p + "k_norm");
    v = heads_of(v, c_.kv_heads, "");
    q = rotate(q, p + "rotary_q");
    k = rotate(k, p + "rotary_k");
    std::vector<Attribute> attributes = {{"causal", 1}, {"window", c_.layers[index].window}};
    if (c_.attention_softcap) attributes.push_back({"softcap", 1});
    if (c_.attention_dropout) attributes.push_back({"dropout", 1});
    if (c_.sinks) attributes.push_back({"sinks", 1});
    if (c_.softmax_fp32) attributes.push_back({"softmax_fp32", 1});
    return f_.attention(q, k, v, p + "attention", std::move(attributes), std::move(further));
  }

  /// DeepSeek's multi-head latent attention. Every rank computes both latent vectors completely.
  TensorId latent_attention(TensorId x, const std::string& p) {
    const DecoderConfig::Latent& l = c_.latent;
    TensorId q = x;
    if (l.q_lora_rank > 0)
      q = f_.rms_norm(f_.linear(q, p + "q_a_proj", {l.q_lora_rank, c_.qkv_bias}),
                      p + "q_a_layernorm");
    const int64_t qk_head_dim = l.qk_nope_head_dim + l.qk_rope_head_dim;
    q = f_.split_heads(
        f_.linear(q, p + "q_b_proj",
                  {c_.heads * qk_head_dim, false, f_.outputs(qk_head_dim, {c_.heads})}),
        c_.heads);
    const TensorId both =
        f_.linear(x, p + "kv_a_proj_with_mqa", {l.kv_lora_rank + l.qk_rope_head_dim, c_.qkv_bias});
    const TensorId latent =
        f_.rms_norm(f_.slice(both, l.kv_lora_rank, p + "split_latent"), p + "kv_a_layernorm");
    const TensorId kv_b = f_.weight(
        p + "kv_b_proj.weight", {c_.heads * (l.qk_nope_head_dim + l.v_head_dim), l.kv_lora_rank}, 0,
        f_.outputs(l.qk_nope_head_dim + l.v_head_dim, {c_.heads}));
    std::vector<Attribute> attributes = {{"causal", 1}, {"rope_dim", l.qk_rope_head_dim}};
    if (c_.softmax_fp32) attributes.push_back({"softmax_fp32", 1});
    if (c_.attention_dropout) attributes.push_back({"dropout", 1});
    return f_.op("latent_attention", {q, latent, both, kv_b, angles_[0], angles_[1], mask_},
                 p + "attention", std::move(attributes));
  }

  TensorId gated(TensorId x, const std::string& p, int64_t ffn_dim) {
    if (!c_.gated_mlp)
      return f_.feed_forward(x, {.up = p + "up_proj",
                                 .act = p + "act_fn",
                                 .down = p + "down_proj",
                                 .activation = c_.activation,
                                 .ffn_dim = ffn_dim,
                                 .bias = c_.mlp_bias});
    const Layers::Split columns = f_.outputs(1, {ffn_dim});
    TensorId gate, up;
    if (c_.fused_gate) {
      const TensorId both = f_.linear(
          x, p + "gate_up_proj", {2 * ffn_dim, c_.mlp_bias, f_.outputs(1, {ffn_dim, ffn_dim})});
      gate = f_.activation(f_.slice(both, ffn_dim, p + "split_gate"), c_.activation, p + "act_fn");
      up = f_.slice(both, ffn_dim, p + "split_up");
    } else {
      gate = f_.activation(f_.linear(x, p + "gate_proj", {ffn_dim, c_.mlp_bias, columns}),
                           c_.activation, p + "act_fn");
      up = f_.linear(x, p + "up_proj", {ffn_dim, c_.mlp_bias, columns});
    }
    const TensorId product = f_.op("mul", {gate, up}, p + "mul");
    return f_.linear(product, p + "down_proj", {c_.hidden_dim, c_.mlp_bias, f_.inputs(1, ffn_dim)});
  }

  TensorId mlp(TensorId x, size_t index) {
    const std::string p = fmt::format("layers.{}.mlp.", index);
    if (!c_.layers[index].is_moe) return gated(x, p, c_.ffn_dim);
    const DecoderConfig::Experts& e = c_.experts;
    const TensorId logits = f_.linear(x, p + "gate", {e.num_experts, e.bias});
    f_.op("softmax", {logits}, p + "gate.softmax");
    const Layers::Split by_gate = f_.outputs(1, {e.ffn_dim, e.ffn_dim});
    // Counted as weights only; their memory traffic is negligible.
    if (e.score_correction_bias) f_.weight(p + "gate.e_score_correction_bias", {e.num_experts});
    if (e.bias) {
      f_.weight(p + "experts.gate_up_bias", {e.num_experts, 2 * e.ffn_dim}, 1, by_gate);
      f_.weight(p + "experts.down_bias", {e.num_experts, c_.hidden_dim});
    }
    const TensorId up = f_.weight(p + "experts.gate_up_proj",
                                  {e.num_experts, 2 * e.ffn_dim, c_.hidden_dim}, 1, by_gate);
    const TensorId down =
        f_.weight(p + "experts.down_proj", {e.num_experts, c_.hidden_dim, e.ffn_dim}, 2,
                  f_.outputs(1, {e.ffn_dim}));
    const TensorId y = f_.op("experts", {x, up, down}, p + "experts", {{"top_k", e.top_k}});
    if (e.shared_ffn_dim == 0) return y;
    TensorId shared = gated(x, p + "shared_experts.", e.shared_ffn_dim);
    if (e.shared_gate) {
      const std::string name = p + "shared_expert_gate";
      const TensorId weight = f_.op("sigmoid", {f_.linear(x, name, {1, false})}, name);
      shared = f_.op("mul", {weight, shared}, p + "shared_mul");
    }
    return f_.op("add", {y, shared}, p + "shared_add");
  }

  TensorId layer(TensorId x, size_t index) {
    const std::string p = fmt::format("layers.{}.", index);
    const TensorId normal = norm(x, p + "input_layernorm");
    TensorId attn_out = attention(normal, index);
    if (c_.parallel_attention) {
      const TensorId mlp_out = mlp(normal, index);
      const TensorId sum = f_.op("add", {mlp_out, attn_out}, p + "parallel_add");
      return f_.op("add", {x, sum}, p + "residual");
    }
    if (c_.post_norms) attn_out = norm(attn_out, p + "post_self_attn_layernorm");
    const TensorId hidden = f_.op("add", {x, attn_out}, p + "self_attn.residual");
    TensorId mlp_out = mlp(norm(hidden, p + "post_attention_layernorm"), index);
    if (c_.post_norms) mlp_out = norm(mlp_out, p + "post_mlp_layernorm");
    return f_.op("add", {hidden, mlp_out}, p + "mlp.residual");
  }

  Graph& graph_;
  Layers f_;
  const DecoderConfig& c_;
  const GraphRequest& request_;
  TensorId mask_ = -1;
  std::vector<TensorId> angles_;  ///< cosines and sines
};

}  // namespace

Graph build_decoder(const DecoderConfig& config, const GraphRequest& request) {
  Graph graph;
  DecoderGraph(graph, config, request).build();
  return graph;
}

}  // namespace tilecast
