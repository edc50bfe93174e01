// Decoder-only models as transformers launches them (transformers/models/llama/modeling_llama.py
// and its kin): RMSNorm, rotary embedding, grouped-query heads, SwiGLU, step by step. Experts are
// taken as one fused operator. Not told apart: which half of a head a partial rotary embedding
// leaves alone.

#include "importers/huggingface/decoder.h"

#include <fmt/format.h>

#include "importers/huggingface/layers.h"

namespace tilecast {
namespace {

struct Rotary {
  TensorId cos = -1, sin = -1;
};

class DecoderGraph {
 public:
  DecoderGraph(Graph& graph, const DecoderConfig& config, const GraphRequest& request)
      : graph_(graph), f_(graph, request), c_(config), request_(request) {}

  void build() {
    GraphBuilder& b = f_.builder();
    b.begin_segment("embeddings", 1);
    const TensorId table = f_.weight("embed_tokens.weight", {c_.vocabulary, c_.width});
    TensorId x =
        f_.embedding(table, f_.ids("input_ids", {request_.batch, request_.seq}), "embed_tokens");
    if (c_.scaled_embedding) x = f_.op("mul_scalar", {x}, "embed_tokens.scale");
    if (!request_.fused_attention) mask_ = f_.causal_mask("causal_mask");
    if (c_.rotary) rotary_ = rotary_table();
    for (const LayerRun& run : layer_runs(c_.layers)) {
      b.begin_segment(run.first == 0 ? "layers" : fmt::format("layers.{}", run.first), run.repeat);
      const TensorId start = x;
      for (size_t i = run.first; i < run.first + run.period; ++i) x = layer(x, i);
      b.carry(start, x);
    }
    b.begin_segment("head", 1);
    const TensorId last = norm(x, "norm");
    TensorId logits = c_.tied ? f_.op("linear", {last, table}, "lm_head")
                              : f_.linear(last, "lm_head", {c_.vocabulary, false});
    if (c_.logit_cap) logits = cap(logits, "lm_head.cap");
    graph_.outputs = {logits};
  }

 private:
  TensorId norm(TensorId x, const std::string& name) {
    return c_.norm == DecoderConfig::Norm::kRms ? f_.rms_norm(x, name) : f_.layer_norm(x, name);
  }

  /// cap tanh(x / cap)
  TensorId cap(TensorId x, const std::string& name) {
    return f_.op("mul_scalar", {f_.op("tanh", {f_.op("div_scalar", {x}, name)}, name)}, name);
  }

  /// Angles of every position, [1, s, head], once a forward pass.
  Rotary rotary_table() {
    GraphBuilder& b = f_.builder();
    const int64_t s = request_.seq;
    const int64_t head = c_.is_latent() ? c_.latent.rotary : c_.head;
    const TensorId frequencies = b.tensor(
        {.name = "rotary_emb.inv_freq", .shape = {1, head / 2, 1}, .kind = TensorKind::kBuffer});
    const TensorId places = b.input("position_ids", {1, 1, s}, DType::kFp32);
    const TensorId angles = f_.op("matmul", {frequencies, places}, "rotary_emb");
    const TensorId half = f_.transpose(angles, {0, 2, 1});
    const TensorId both = f_.op("cat", {half, half}, "rotary_emb", {{"dim", 2}});
    const auto wave = [&](const char* op) {
      TensorId t = f_.op("mul_scalar", {f_.op(op, {both}, "rotary_emb")}, "rotary_emb");
      if (request_.dtype != DType::kFp32)
        t = f_.op("cast", {t}, "rotary_emb", {{"dtype", request_.dtype}});
      return f_.view(t, {1, 1, s, head});
    };
    return {wave("cos"), wave("sin")};
  }

  /// x cos + rotate_half(x) sin
  TensorId rotate(TensorId x, const std::string& name) {
    if (!c_.rotary) return x;
    const std::vector<TensorId> halves = f_.builder().add("split", {x}, name, {{"parts", 2}});
    const TensorId turned =
        f_.op("cat", {f_.op("neg", {halves[1]}, name), halves[0]}, name, {{"dim", 3}});
    return f_.op("add",
                 {f_.op("mul", {x, rotary_.cos}, name), f_.op("mul", {turned, rotary_.sin}, name)},
                 name);
  }

  /// Each key and value head serves several query heads: expanded by a copy.
  TensorId repeat_heads(TensorId x, int64_t size, const std::string& name) {
    const int64_t times = c_.heads / c_.kv_heads;
    if (times == 1) return x;
    const int64_t batch = request_.batch;
    const int64_t s = request_.seq;
    const TensorId narrow = f_.view(x, {batch, c_.kv_heads, 1, s, size});
    const TensorId wide =
        f_.op("expand", {narrow}, name, {{"shape", Shape{batch, c_.kv_heads, times, s, size}}});
    return f_.view(f_.op("copy", {wide}, name), {batch, c_.heads, s, size});
  }

  /// Heads of queries and keys, [b, heads, s, size], normalized where the family does.
  TensorId heads_of(TensorId x, int64_t heads, const std::string& norm_name) {
    if (!c_.query_norm || norm_name.empty()) return f_.split_heads(x, heads);
    const Shape shape = graph_.tensor(x).shape;
    const TensorId wide = f_.view(x, {shape[0], shape[1], heads, shape[2] / heads});
    return f_.transpose(f_.rms_norm(wide, norm_name, c_.query_norm_weight), {0, 2, 1, 3});
  }

  struct Heads {
    TensorId q, k, v;  ///< [b, heads, s, size], rotated
  };

  Heads project(TensorId x, const std::string& p) {
    const int64_t kv_width = c_.kv_heads * c_.head;
    TensorId q, k, v;
    if (c_.fused_qkv) {
      const TensorId all =
          f_.linear(x, p + "qkv_proj", {c_.heads * c_.head + 2 * kv_width, c_.qkv_bias});
      q = slice(all, c_.heads * c_.head, p + "split_q");
      k = slice(all, kv_width, p + "split_k");
      v = slice(all, kv_width, p + "split_v");
    } else {
      q = f_.linear(x, p + "q_proj", {c_.heads * c_.head, c_.qkv_bias});
      k = f_.linear(x, p + "k_proj", {kv_width, c_.qkv_bias});
      v = f_.linear(x, p + "v_proj", {kv_width, c_.qkv_bias});
    }
    q = heads_of(q, c_.heads, p + "q_norm");
    k = heads_of(k, c_.kv_heads, p + "k_norm");
    v = heads_of(v, c_.kv_heads, "");
    return {rotate(q, p + "rotary_q"), rotate(k, p + "rotary_k"), v};
  }

  /// Some columns of the last dimension: a view.
  TensorId slice(TensorId x, int64_t columns, const std::string& name) {
    return f_.op("slice_columns", {x}, name, {{"columns", columns}});
  }

  /// DeepSeek's latent attention, with keys and values written out per head.
  Heads project_latent(TensorId x, const std::string& p) {
    const DecoderConfig::Latent& l = c_.latent;
    const int64_t width = l.plain + l.rotary;
    TensorId q = x;
    if (l.query_rank > 0)
      q = f_.rms_norm(f_.linear(q, p + "q_a_proj", {l.query_rank, c_.qkv_bias}),
                      p + "q_a_layernorm");
    q = f_.split_heads(f_.linear(q, p + "q_b_proj", {c_.heads * width, false}), c_.heads);
    const TensorId both = f_.linear(x, p + "kv_a_proj_with_mqa", {l.rank + l.rotary, c_.qkv_bias});
    const TensorId latent =
        f_.rms_norm(slice(both, l.rank, p + "split_latent"), p + "kv_a_layernorm");
    const TensorId pairs = f_.split_heads(
        f_.linear(latent, p + "kv_b_proj", {c_.heads * (l.plain + l.value), false}), c_.heads);
    const Shape shape = graph_.tensor(pairs).shape;
    const TensorId shared = rotate(
        f_.view(slice(both, l.rotary, p + "split_rotary"), {shape[0], 1, shape[2], l.rotary}),
        p + "rotary_k");
    const TensorId wide = f_.op("expand", {shared}, p + "expand_k",
                                {{"shape", Shape{shape[0], c_.heads, shape[2], l.rotary}}});
    const TensorId k =
        f_.op("cat", {slice(pairs, l.plain, p + "split_k"), wide}, p + "cat_k", {{"dim", 3}});
    const TensorId turned = rotate(slice(q, l.rotary, p + "split_q_rotary"), p + "rotary_q");
    q = f_.op("cat", {slice(q, l.plain, p + "split_q"), turned}, p + "cat_q", {{"dim", 3}});
    return {q, k, slice(pairs, l.value, p + "split_v")};
  }

  TensorId attention(TensorId x, size_t index) {
    const std::string p = fmt::format("layers.{}.self_attn.", index);
    if (c_.sinks) f_.weight(p + "sinks", {c_.heads});
    const Heads h = c_.is_latent() ? project_latent(x, p) : project(x, p);
    const DecoderConfig::Layer& layer = c_.layers[index];
    TensorId merged;
    if (request_.fused_attention) {
      merged = f_.fused_attention(h.q, h.k, h.v, p + "attention",
                                  {{"causal", 1}, {"window", layer.window}});
    } else {
      const bool latent = c_.is_latent();
      const TensorId k = latent ? h.k : repeat_heads(h.k, c_.head, p + "repeat_k");
      const TensorId v = latent ? h.v : repeat_heads(h.v, c_.head, p + "repeat_v");
      const TensorId scores = f_.matmul(h.q, f_.transpose(k, {0, 1, 3, 2}), p + "scores");
      TensorId scaled = f_.op("mul_scalar", {scores}, p + "scale");
      if (c_.attention_cap) scaled = cap(scaled, p + "cap");
      const TensorId masked = f_.op("add", {scaled, mask_}, p + "mask");
      const TensorId weights = f_.op("softmax", {masked}, p + "softmax");
      const TensorId dropped = f_.dropout(weights, p + "dropout", c_.attention_dropout);
      merged = f_.merge_heads(f_.matmul(dropped, v, p + "context"), p + "merge");
    }
    return f_.linear(merged, p + "o_proj", {c_.width, c_.out_bias});
  }

  TensorId gated(TensorId x, const std::string& p, int64_t inner) {
    if (!c_.gated) {
      const TensorId up = f_.linear(x, p + "up_proj", {inner, c_.mlp_bias});
      return f_.linear(f_.activation(up, c_.activation, p + "act_fn"), p + "down_proj",
                       {c_.width, c_.mlp_bias});
    }
    TensorId gate, up;
    if (c_.fused_gate) {
      const TensorId both = f_.linear(x, p + "gate_up_proj", {2 * inner, c_.mlp_bias});
      gate = f_.activation(slice(both, inner, p + "split_gate"), c_.activation, p + "act_fn");
      up = slice(both, inner, p + "split_up");
    } else {
      gate = f_.activation(f_.linear(x, p + "gate_proj", {inner, c_.mlp_bias}), c_.activation,
                           p + "act_fn");
      up = f_.linear(x, p + "up_proj", {inner, c_.mlp_bias});
    }
    const TensorId product = f_.op("mul", {gate, up}, p + "mul");
    return f_.linear(product, p + "down_proj", {c_.width, c_.mlp_bias});
  }

  TensorId mlp(TensorId x, size_t index) {
    const std::string p = fmt::format("layers.{}.mlp.", index);
    if (!c_.layers[index].experts) return gated(x, p, c_.inner);
    const DecoderConfig::Experts& e = c_.experts;
    const TensorId logits = f_.linear(x, p + "gate", {e.count, e.bias});
    f_.op("softmax", {logits}, p + "gate.softmax");
    if (e.balanced) f_.weight(p + "gate.e_score_correction_bias", {e.count});
    if (e.bias) {
      f_.weight(p + "experts.gate_up_bias", {e.count, 2 * e.inner});
      f_.weight(p + "experts.down_bias", {e.count, c_.width});
    }
    const TensorId y =
        f_.builder()
            .add("experts",
                 {x, f_.weight(p + "experts.gate_up_proj", {e.count, 2 * e.inner, c_.width}),
                  f_.weight(p + "experts.down_proj", {e.count, c_.width, e.inner})},
                 p + "experts", {{"chosen", e.chosen}})
            .front();
    if (e.shared_inner == 0) return y;
    TensorId shared = gated(x, p + "shared_experts.", e.shared_inner);
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
    TensorId attended = attention(normal, index);
    if (c_.parallel) {
      const TensorId inner = mlp(normal, index);
      const TensorId sum = f_.op("add", {inner, attended}, p + "parallel_add");
      return f_.op("add", {x, sum}, p + "residual");
    }
    if (c_.post_norms) attended = norm(attended, p + "post_self_attn_layernorm");
    const TensorId middle = f_.op("add", {x, attended}, p + "self_attn.residual");
    TensorId inner = mlp(norm(middle, p + "post_attention_layernorm"), index);
    if (c_.post_norms) inner = norm(inner, p + "post_mlp_layernorm");
    return f_.op("add", {middle, inner}, p + "mlp.residual");
  }

  Graph& graph_;
  Layers f_;
  const DecoderConfig& c_;
  const GraphRequest& request_;
  TensorId mask_ = -1;
  Rotary rotary_;
};

}  // namespace

Graph build_decoder(const DecoderConfig& config, const GraphRequest& request) {
  Graph graph;
  DecoderGraph(graph, config, request).build();
  return graph;
}

}  // namespace tilecast
