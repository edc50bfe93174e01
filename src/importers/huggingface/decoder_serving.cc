// One step of a decoder as serving software (vLLM, SGLang, TensorRT-LLM) runs it: projections of q,
// k and v in one product, gate and up in one, norms fused with the residual, a cache of keys and
// values, all tokens of the step in one batch. Heads and inner widths are split over the tensor
// ranks.

#include <fmt/format.h>

#include <algorithm>

#include "importers/huggingface/decoder.h"
#include "ops/builder.h"
#include "ops/op_def.h"

namespace tilecast {
namespace {

class ServingStep {
 public:
  ServingStep(Graph& graph, const DecoderConfig& config, const StepRequest& request)
      : b_(graph),
        c_(config),
        r_(request),
        ranks_(request.tensor_ranks),
        heads_(config.heads / ranks_),
        // Fewer key heads than ranks: some ranks hold the same ones.
        kv_heads_(std::max<int64_t>(1, config.kv_heads / ranks_)) {
    for (const StepRequest::Group& group : request.groups) {
      tokens_ += group.sequences * group.tokens;
      sequences_ += group.sequences;
    }
  }

  void build(Graph& graph) {
    b_.begin_segment("embeddings", 1);
    // The tables are split by rows: a rank looks up its share, and the sum makes them whole.
    const TensorId table = weight("embed_tokens.weight", {split(c_.vocabulary), c_.width});
    TensorId x =
        op("embedding", {table, b_.input("input_ids", {tokens_}, DType::kInt64)}, "embed_tokens");
    if (c_.scaled_embedding) x = op("mul_scalar", {x}, "embed_tokens.scale");
    x = all_reduce(x, "embed_tokens");
    // What the layer before adds is summed up in the next norm. Before the first layer there is
    // nothing to add; it is taken to be as the others.
    TensorId added = b_.tensor({.name = "nothing",
                                .shape = {tokens_, c_.width},
                                .dtype = r_.dtype,
                                .kind = TensorKind::kReference});
    for (const LayerRun& run : layer_runs(c_.layers)) {
      b_.begin_segment(run.first == 0 ? "layers" : fmt::format("layers.{}", run.first), run.repeat);
      const TensorId start = x, start_added = added;
      for (size_t i = run.first; i < run.first + run.period; ++i) layer(i, x, added);
      b_.carry(start, x);
      b_.carry(start_added, added);
    }
    b_.begin_segment("head", 1);
    const TensorId last = normalize("norm", x, added);
    const TensorId rows = tokens_ == sequences_
                              ? last
                              : op("gather_rows", {last}, "last_tokens", {{"rows", sequences_}});
    const TensorId head =
        c_.tied ? table : weight("lm_head.weight", {split(c_.vocabulary), c_.width});
    TensorId logits = op("linear", {rows, head}, "lm_head");
    if (c_.logit_cap) {  // cap tanh(x / cap); that of attention is part of its kernel
      for (const char* step : {"div_scalar", "tanh", "mul_scalar"})
        logits = op(step, {logits}, "lm_head.cap");
    }
    logits = all_reduce(logits, "lm_head");  // stands for the gathering of each rank's share
    graph.outputs = {op("sample", {logits}, "sample")};
  }

 private:
  TensorId op(std::string_view name, std::vector<TensorId> inputs, const std::string& node,
              std::vector<Attribute> attributes = {}) {
    return b_.add(name, std::move(inputs), node, std::move(attributes)).front();
  }

  TensorId weight(const std::string& name, Shape shape) {
    return b_.weight(name, std::move(shape), r_.dtype);
  }

  Scheme scheme_of(const std::string& module) const {
    return r_.scheme_of ? r_.scheme_of(module) : Scheme::kNone;
  }

  int64_t split(int64_t size) const { return (size + ranks_ - 1) / ranks_; }

  TensorId all_reduce(TensorId x, const std::string& name) {
    if (ranks_ == 1) return x;
    return op("all_reduce", {x}, name + ".all_reduce", {{"ranks", ranks_}});
  }

  TensorId scales(const std::string& name, int64_t elements, Scheme scheme) {
    // In bytes: scales come in several widths.
    return b_.tensor({.name = name + ".scales",
                      .shape = {scale_bytes(scheme, elements)},
                      .dtype = DType::kInt8,
                      .kind = TensorKind::kBuffer,
                      .segment = b_.current_segment()});
  }

  TensorId linear(TensorId x, const std::string& name, int64_t out, bool bias) {
    const int64_t k = b_.graph().tensor(x).shape.back();
    std::vector<TensorId> inputs = {x};
    const Scheme scheme = scheme_of(name);
    if (scheme == Scheme::kNone) {
      inputs.push_back(weight(name + ".weight", {out, k}));
      if (bias) inputs.push_back(weight(name + ".bias", {out}));
      return op("linear", std::move(inputs), name);
    }
    inputs.push_back(b_.weight(name + ".weight", {out, k}, scheme_info(scheme).weight));
    inputs.push_back(scales(name, out * k, scheme));
    if (bias) inputs.push_back(weight(name + ".bias", {out}));
    return op("quantized_linear", std::move(inputs), name, {{"scheme", scheme}});
  }

  /// Norm of x + added; x becomes the sum.
  TensorId normalize(const std::string& name, TensorId& x, TensorId added) {
    const TensorId w = weight(name + ".weight", {c_.width});
    if (c_.norm == DecoderConfig::Norm::kLayer) {
      if (added >= 0) x = op("add", {x, added}, name + ".add");
      return op("layer_norm", {x, w, weight(name + ".bias", {c_.width})}, name);
    }
    if (added < 0) return op("rms_norm", {x, w}, name);
    const std::vector<TensorId> both = b_.add("add_rms_norm", {x, added, w}, name);
    x = both[1];
    return both[0];
  }

  TensorId slice(TensorId x, int64_t columns, const std::string& name) {
    return op("slice_columns", {x}, name, {{"columns", columns}});
  }

  TensorId view(TensorId x, Shape shape) {
    return op("view", {x}, "view", {{"shape", std::move(shape)}});
  }

  TensorId query_norm(TensorId x, int64_t heads, const std::string& name) {
    if (!c_.query_norm) return x;
    const TensorId rows = view(x, {tokens_, heads, c_.head});
    const TensorId w = c_.query_norm_weight ? weight(name + ".weight", {c_.head})
                                            : b_.tensor({.name = name + ".one",
                                                         .shape = {c_.head},
                                                         .dtype = r_.dtype,
                                                         .kind = TensorKind::kReference});
    return view(op("rms_norm", {rows, w}, name), {tokens_, heads * c_.head});
  }

  /// A layer's cache of one group.
  TensorId cache(const StepRequest::Group& group, size_t index, int64_t width) {
    return b_.tensor({.name = fmt::format("layers.{}.cache", index),
                      .shape = {group.sequences, group.past + group.tokens, width},
                      .dtype = r_.kv_dtype,
                      .kind = TensorKind::kCache,
                      .segment = b_.current_segment()});
  }

  /// Rows of a group's tokens: a view.
  TensorId rows_of(TensorId x, const StepRequest::Group& group, const std::string& name) {
    const int64_t rows = group.sequences * group.tokens;
    if (r_.groups.size() == 1) return x;
    return op("slice_rows", {x}, name, {{"rows", rows}});
  }

  /// Where the groups' kernels write; their rows lie one after the other. -1 where one group fills
  /// a tensor of its own.
  TensorId buffer_like(TensorId x, int64_t width, const std::string& name) {
    if (r_.groups.size() == 1) return -1;
    return op("empty", {x}, name, {{"shape", Shape{tokens_, width}}});
  }

  /// All rows of the groups' results: nothing is copied.
  TensorId join(TensorId buffer, std::vector<TensorId> parts, const std::string& name) {
    if (parts.size() == 1) return parts.front();
    Graph& graph = b_.graph();
    for (const TensorId part : parts) {
      const TensorId own = graph.tensor(part).storage;
      for (Tensor& tensor : graph.tensors) {
        if (tensor.storage == own) tensor.storage = graph.tensor(buffer).storage;
      }
    }
    parts.insert(parts.begin(), buffer);
    return op("join_rows", std::move(parts), name);
  }

  /// One kernel writes the keys and values of all tokens; gives each group's cache.
  std::vector<TensorId> append_cache(size_t index, int64_t width, std::vector<TensorId> added,
                                     const std::string& name) {
    std::vector<TensorId> caches;
    for (const StepRequest::Group& g : r_.groups) caches.push_back(cache(g, index, width));
    added.insert(added.begin(), caches.front());
    caches.front() = op("append_cache", std::move(added), name);
    return caches;
  }

  TensorId attention(TensorId x, size_t index) {
    const std::string p = fmt::format("layers.{}.self_attn.", index);
    const int64_t q_width = heads_ * c_.head, kv_width = kv_heads_ * c_.head;
    const TensorId all = linear(x, p + "qkv_proj", q_width + 2 * kv_width, c_.qkv_bias);
    TensorId q = query_norm(slice(all, q_width, p + "q"), heads_, p + "q_norm");
    TensorId k = query_norm(slice(all, kv_width, p + "k"), kv_heads_, p + "k_norm");
    const TensorId v = slice(all, kv_width, p + "v");
    if (c_.rotary) {
      const std::vector<TensorId> turned = b_.add("rotary", {q, k}, p + "rotary");
      q = turned[0];
      k = turned[1];
    }
    if (c_.sinks) weight(p + "sinks", {heads_});  // one number a head, added to the softmax's sum
    const int64_t window = c_.layers[index].window;
    const std::vector<TensorId> caches = append_cache(index, 2 * kv_width, {k, v}, p + "cache");
    const TensorId buffer = buffer_like(q, q_width, p + "outputs");
    std::vector<TensorId> outputs;
    for (const StepRequest::Group& g : r_.groups) {
      const auto part = [&](TensorId t, int64_t heads) {
        return view(rows_of(t, g, p + "rows"), {g.sequences, g.tokens, heads, c_.head});
      };
      const TensorId kq = part(q, heads_), kk = part(k, kv_heads_), kv = part(v, kv_heads_);
      const TensorId kept = caches[outputs.size()];
      const TensorId context =
          g.past == 0
              ? op("attention", {kq, kk, kv}, p + "attention", {{"causal", 1}, {"window", window}})
              : op("cached_attention", {kq, kept}, p + "attention",
                   {{"kv_heads", kv_heads_}, {"causal", 1}, {"window", window}});
      outputs.push_back(view(context, {g.sequences * g.tokens, q_width}));
    }
    const TensorId out =
        linear(join(buffer, std::move(outputs), p + "joined"), p + "o_proj", c_.width, c_.out_bias);
    return all_reduce(out, p + "o_proj");
  }

  /// DeepSeek's latent attention. A prompt's keys and values are written out per head; with a past,
  /// queries are carried into the latent space instead and attend to the cache as one key head.
  TensorId latent_attention(TensorId x, size_t index) {
    const std::string p = fmt::format("layers.{}.self_attn.", index);
    const DecoderConfig::Latent& l = c_.latent;
    const int64_t width = l.plain + l.rotary, latent_width = l.rank + l.rotary;
    // Every rank makes both latents whole.
    const TensorId down = linear(x, p + "qkv_a_proj", l.query_rank + latent_width, c_.qkv_bias);
    TensorId q = x;
    if (l.query_rank > 0)
      q = op("rms_norm",
             {slice(down, l.query_rank, p + "q_a"),
              weight(p + "q_a_layernorm.weight", {l.query_rank})},
             p + "q_a_layernorm");
    q = linear(q, p + "q_b_proj", heads_ * width, false);
    const TensorId latent =
        op("rms_norm",
           {slice(down, l.rank, p + "kv_a"), weight(p + "kv_a_layernorm.weight", {l.rank})},
           p + "kv_a_layernorm");
    const TensorId turned =
        b_.add("rotary",
               {slice(q, heads_ * l.rotary, p + "q_rotary"), slice(down, l.rotary, p + "k_rotary")},
               p + "rotary")[1];
    const Scheme kv_scheme = scheme_of(p + "kv_b_proj");
    const TensorId kv_b =
        b_.weight(p + "kv_b_proj.weight", {heads_ * (l.plain + l.value), l.rank},
                  kv_scheme == Scheme::kNone ? r_.dtype : scheme_info(kv_scheme).weight);
    const std::vector<TensorId> caches =
        append_cache(index, latent_width, {latent, turned}, p + "cache");
    const TensorId buffer = buffer_like(q, heads_ * l.value, p + "outputs");
    // What the groups share is made once.
    const auto is_fresh = [](const StepRequest::Group& g) { return g.past == 0; };
    const bool fresh = std::any_of(r_.groups.begin(), r_.groups.end(), is_fresh);
    const bool cached = !std::all_of(r_.groups.begin(), r_.groups.end(), is_fresh);
    const TensorId kv_b_scales =
        fresh && kv_scheme != Scheme::kNone
            ? scales(p + "kv_b_proj", element_count(b_.graph().tensor(kv_b).shape), kv_scheme)
            : -1;
    const TensorId per_head = cached ? per_head_weight(kv_b, p) : -1;
    std::vector<TensorId> outputs;
    for (const StepRequest::Group& g : r_.groups) {
      const int64_t tokens = g.sequences * g.tokens;
      const TensorId kept = caches[outputs.size()];
      const TensorId queries =
          view(rows_of(q, g, p + "rows"), {g.sequences, g.tokens, heads_, width});
      if (g.past == 0) {
        const TensorId wide = expand_latent(rows_of(latent, g, p + "rows"), kv_b, kv_b_scales, p);
        const auto heads = [&](int64_t size, const char* name) {
          return view(slice(wide, heads_ * size, p + name), {g.sequences, g.tokens, heads_, size});
        };
        const TensorId keys =
            op("pad_columns", {heads(l.plain, "k")}, p + "cat_k", {{"columns", l.rotary}});
        const TensorId context =
            op("attention", {queries, keys, heads(l.value, "v")}, p + "attention", {{"causal", 1}});
        outputs.push_back(view(context, {tokens, heads_ * l.value}));
        continue;
      }
      const TensorId plain = op("matmul",
                                {by_head(slice(queries, l.plain, p + "q_plain"), tokens, l.plain),
                                 slice_view(per_head, {heads_, l.plain, l.rank}, p + "w_uk")},
                                p + "absorb_q");
      const TensorId carried =
          op("pad_columns", {from_head(plain, g, l.rank)}, p + "cat_q", {{"columns", l.rotary}});
      const TensorId context =
          op("cached_attention", {carried, kept}, p + "attention",
             {{"kv_heads", 1}, {"value_size", l.rank}, {"latent", 1}, {"causal", 1}});
      const TensorId values = op("matmul",
                                 {by_head(context, tokens, l.rank),
                                  slice_view(per_head, {heads_, l.rank, l.value}, p + "w_uv")},
                                 p + "absorb_v");
      outputs.push_back(view(op("copy", {transpose(values, {1, 0, 2})}, p + "merge"),
                             {tokens, heads_ * l.value}));
    }
    const TensorId out =
        linear(join(buffer, std::move(outputs), p + "joined"), p + "o_proj", c_.width, c_.out_bias);
    return all_reduce(out, p + "o_proj");
  }

  TensorId transpose(TensorId x, std::vector<int64_t> order) {
    return op("transpose", {x}, "transpose", {{"order", std::move(order)}});
  }

  TensorId expand_latent(TensorId latent, TensorId kv_b, TensorId kv_b_scales,
                         const std::string& p) {
    if (kv_b_scales < 0) return op("linear", {latent, kv_b}, p + "kv_b_proj");
    return op("quantized_linear", {latent, kv_b, kv_b_scales}, p + "kv_b_proj",
              {{"scheme", scheme_of(p + "kv_b_proj")}});
  }

  /// Serving software keeps the weights that it absorbs in the activations' type.
  TensorId per_head_weight(TensorId kv_b, const std::string& p) {
    if (scheme_of(p + "kv_b_proj") == Scheme::kNone) return kv_b;
    const Tensor stored = b_.graph().tensor(kv_b);
    return b_.tensor({.name = p + "kv_b_absorbed",
                      .shape = stored.shape,
                      .dtype = r_.dtype,
                      .kind = TensorKind::kBuffer,
                      .segment = b_.current_segment()});
  }

  /// Part of a weight in another shape: no kernel.
  TensorId slice_view(TensorId whole, Shape shape, const std::string& name) {
    Tensor part = b_.graph().tensor(whole);
    part.name = name;
    part.shape = std::move(shape);
    part.kind = TensorKind::kReference;
    part.storage = b_.graph().tensor(whole).storage;
    return b_.tensor(std::move(part));
  }

  /// [b, s, heads, size] → [heads, tokens, size], read through strides.
  TensorId by_head(TensorId x, int64_t tokens, int64_t size) {
    return transpose(view(x, {tokens, heads_, size}), {1, 0, 2});
  }
  TensorId from_head(TensorId x, const StepRequest::Group& g, int64_t size) {
    return view(transpose(x, {1, 0, 2}), {g.sequences, g.tokens, heads_, size});
  }

  /// One kernel whatever the function; the forms of gelu cost the same.
  std::string_view activation() const {
    if (c_.activation == "swish") return "silu";
    if (c_.activation == "relu" || c_.activation == "silu" || c_.activation == "tanh")
      return c_.activation;
    return "gelu";
  }

  TensorId mlp_of(TensorId x, const std::string& p, int64_t inner) {
    const int64_t own = inner / ranks_;
    TensorId y;
    if (c_.gated) {
      const int64_t flops = op_def(require_op(activation())).pointwise_flops.value_or(0);
      y = op("gated_activation", {linear(x, p + "gate_up_proj", 2 * own, c_.mlp_bias)},
             p + "act_fn", {{"flops_per_element", flops + 1}});
    } else {
      y = op(activation(), {linear(x, p + "up_proj", own, c_.mlp_bias)}, p + "act_fn");
    }
    return linear(y, p + "down_proj", c_.width, c_.mlp_bias);
  }

  TensorId experts(TensorId x, const std::string& p) {
    const DecoderConfig::Experts& e = c_.experts;
    const int64_t own = e.inner / ranks_;
    std::vector<TensorId> router = {x, weight(p + "gate.weight", {e.count, c_.width})};
    if (e.bias) router.push_back(weight(p + "gate.bias", {e.count}));
    if (e.balanced) weight(p + "gate.e_score_correction_bias", {e.count});
    op("softmax", {op("linear", std::move(router), p + "gate")}, p + "top_k");
    const Scheme scheme = scheme_of(p + "experts");
    const DType stored = scheme == Scheme::kNone ? r_.dtype : scheme_info(scheme).weight;
    std::vector<TensorId> inputs = {
        x, b_.weight(p + "experts.gate_up_proj", {e.count, 2 * own, c_.width}, stored),
        b_.weight(p + "experts.down_proj", {e.count, c_.width, own}, stored)};
    if (scheme != Scheme::kNone)
      inputs.push_back(scales(p + "experts", 3 * e.count * own * c_.width, scheme));
    if (e.bias) {  // counted with the weights; their traffic is nothing beside them
      weight(p + "experts.gate_up_bias", {e.count, 2 * own});
      weight(p + "experts.down_bias", {e.count, c_.width});
    }
    TensorId y = op("experts", std::move(inputs), p + "experts",
                    {{"chosen", e.chosen}, {"skew_percent", r_.skew_percent}, {"scheme", scheme}});
    if (e.shared_inner > 0) {
      TensorId shared = mlp_of(x, p + "shared_experts.", e.shared_inner);
      if (e.shared_gate) {
        const TensorId gate =
            op("linear", {x, weight(p + "shared_expert_gate.weight", {1, c_.width})},
               p + "shared_expert_gate");
        shared =
            op("mul", {shared, op("sigmoid", {gate}, p + "shared_expert_gate")}, p + "shared_mul");
      }
      y = op("add", {y, shared}, p + "shared_add");
    }
    return y;
  }

  void layer(size_t index, TensorId& x, TensorId& added) {
    const std::string p = fmt::format("layers.{}.", index);
    const auto attend = [&](TensorId t) {
      return c_.is_latent() ? latent_attention(t, index) : attention(t, index);
    };
    const auto feed = [&](TensorId t) {
      const std::string q = p + "mlp.";
      return all_reduce(c_.layers[index].experts ? experts(t, q) : mlp_of(t, q, c_.inner),
                        q + "out");
    };
    const TensorId normal = normalize(p + "input_layernorm", x, added);
    if (c_.parallel) {
      const TensorId attended = attend(normal);
      added = op("add", {attended, feed(normal)}, p + "parallel_add");
      return;
    }
    const auto post = [&](TensorId t, const char* name) {
      return c_.post_norms ? op("rms_norm", {t, weight(p + name + ".weight", {c_.width})}, p + name)
                           : t;
    };
    added = post(attend(normal), "post_self_attn_layernorm");
    const TensorId middle = normalize(p + "post_attention_layernorm", x, added);
    added = post(feed(middle), "post_mlp_layernorm");
  }

  GraphBuilder b_;
  const DecoderConfig& c_;
  const StepRequest& r_;
  int64_t ranks_, heads_, kv_heads_;
  int64_t tokens_ = 0, sequences_ = 0;
};

}  // namespace

bool is_group_work(std::string_view node_name) {
  constexpr std::string_view kNames[] = {"attention", "kv_b_proj", "cat_k", "absorb_q",
                                         "cat_q",     "absorb_v",  "merge"};
  const std::string_view last = node_name.substr(node_name.rfind('.') + 1);
  return std::find(std::begin(kNames), std::end(kNames), last) != std::end(kNames);
}

Graph build_serving_step(const DecoderConfig& config, const StepRequest& request) {
  Graph graph;
  ServingStep(graph, config, request).build(graph);
  return graph;
}

}  // namespace tilecast
