// The kernels that eager PyTorch launches for a module. Source: the model files of transformers,
// with eager attention.

#include "ops/decompose.h"

#include "ops/op_def.h"

namespace tilecast {
namespace {

/// Writes the steps of one module.
class Steps {
 public:
  Steps(GraphBuilder& builder, const Node& node)
      : b(builder), n(node), prefix_(name_prefix(node.name)) {}

  /// A step named like the module.
  TensorId own(std::string_view op, std::vector<TensorId> inputs,
               std::vector<Attribute> attributes = {}) {
    return b.op(op, std::move(inputs), n.name, std::move(attributes));
  }
  /// A step with its own name under the module's prefix.
  TensorId op(std::string_view op, std::vector<TensorId> inputs, const char* name,
              std::vector<Attribute> attributes = {}) {
    return b.op(op, std::move(inputs), prefix_ + name, std::move(attributes));
  }
  TensorId view(TensorId x, Shape shape) {
    return b.op("view", {x}, "view", {{"shape", std::move(shape)}});
  }
  TensorId transpose(TensorId x, Shape order) {
    return b.op("transpose", {x}, "transpose", {{"order", std::move(order)}});
  }
  TensorId slice(TensorId x, int64_t columns, const char* name) {
    return op("slice_columns", {x}, name, {{"columns", columns}});
  }
  /// Returns a copy: adding a tensor may move the existing ones.
  Shape shape(TensorId id) const { return b.graph().tensor(id).shape; }
  bool flag(std::string_view name) const { return attribute<int64_t>(n, name) != 0; }

  /// [b, s, heads · size] → [b, heads, s, size], a view.
  TensorId split_heads(TensorId x, int64_t heads) {
    const Shape s = shape(x);
    return transpose(view(x, {s[0], s[1], heads, s[2] / heads}), {0, 2, 1, 3});
  }

  /// [b, heads, s, size] → [b, s, heads · size], one copy.
  TensorId merge_heads(TensorId x) {
    const Shape s = shape(x);
    const TensorId swapped = transpose(x, {0, 2, 1, 3});
    const bool dense = b.graph().tensor(swapped).contiguous;
    return view(dense ? swapped : op("copy", {swapped}, "merge"), {s[0], s[2], s[1] * s[3]});
  }

  /// torch.matmul of four-dimensional operands. It copies operands that cannot be flattened to [b ·
  /// heads, …] as views (batch > 1 and strided).
  TensorId matmul(TensorId left, TensorId right, const char* name) {
    const auto operand = [&](TensorId t) {
      const Tensor& tensor = b.graph().tensor(t);
      if (tensor.shape[0] == 1) return t;
      if (!tensor.contiguous) return op("copy", {t}, name);
      // Heads of a part (q of a product for q, k and v) are strided too. The older models whose
      // times were published had their copies elsewhere.
      const Tensor& whole = b.graph().tensor(tensor.storage);
      if (element_count(whole.shape) == element_count(tensor.shape)) return t;
      b.set_counts(Counts::kMemoryOnly);
      const TensorId copy = op("copy", {t}, name);
      b.set_counts(Counts::kAll);
      return copy;
    };
    const TensorId a = operand(left);
    return op("matmul", {a, operand(right)}, name);
  }

  /// Grouped-query attention: key and value heads are repeated by a copy, once per query head.
  TensorId repeat_heads(TensorId x, int64_t heads, const char* name) {
    const Shape s = shape(x);
    if (s[1] == heads) return x;
    const TensorId grouped = view(x, {s[0], s[1], 1, s[2], s[3]});
    const TensorId wide =
        op("expand", {grouped}, name, {{"shape", Shape{s[0], s[1], heads / s[1], s[2], s[3]}}});
    return view(op("copy", {wide}, name), {s[0], heads, s[2], s[3]});
  }

  TensorId dropout(TensorId x, const EagerForm& form) {
    if (!form.training || !flag("dropout")) return x;
    return b.add("dropout", {x}, prefix_ + "dropout").front();
  }

  /// x cos + rotate_half(x) sin
  TensorId rotate(TensorId x, TensorId cos, TensorId sin, const std::string& name) {
    const std::vector<TensorId> halves = b.add("split", {x}, name, {{"parts", 2}});
    const TensorId turned =
        b.op("cat", {b.op("neg", {halves[1]}, name), halves[0]}, name, {{"dim", 3}});
    const TensorId first = b.op("mul", {x, cos}, name);
    return b.op("add", {first, b.op("mul", {turned, sin}, name)}, name);
  }

  const std::string& prefix() const { return prefix_; }

  GraphBuilder& b;
  const Node& n;

 private:
  std::string prefix_;
};

/// The operands of attention, [b, heads, s, size] each; for OPT, [b · heads, s, size].
struct Heads {
  TensorId q, k, v;
  TensorId mask;  ///< -1: none
};

/// Attention as one kernel, which includes scaling, mask, softcap and dropout.
TensorId fused_attention(Steps& f, const Heads& h) {
  const auto rows = [&](TensorId t) { return f.transpose(t, {0, 2, 1, 3}); };
  const TensorId q = rows(h.q), k = rows(h.k);
  const TensorId context = f.b.add("attention", {q, k, rows(h.v)}, f.n.name,
                                   {{"causal", attribute<int64_t>(f.n, "causal")},
                                    {"window", attribute<int64_t>(f.n, "window")}})
                               .front();
  const Shape s = f.shape(context);
  return f.view(context, {s[0], s[1], s[2] * s[3]});
}

/// Scales, caps and masks the scores.
TensorId masked_scores(Steps& f, TensorId scores, TensorId mask) {
  TensorId x = scores;
  const auto& scale = attribute<std::string>(f.n, "scale");
  if (scale != "none") x = f.op(scale == "div" ? "div_scalar" : "mul_scalar", {x}, "scale");
  if (f.flag("softcap")) {  // cap tanh(x / cap)
    for (const char* step : {"div_scalar", "tanh", "mul_scalar"}) x = f.op(step, {x}, "cap");
  }
  if (mask >= 0) return f.op("add", {x, mask}, "mask");
  if (!f.flag("stored_mask")) return x;
  const Shape s = f.shape(x);
  // Today's transformers builds one mask for all layers: the stored ones take no memory.
  const TensorId seen = f.b.tensor({.name = f.prefix() + "bias",
                                    .shape = {1, 1, s[2], s[3]},
                                    .dtype = DType::kBool,
                                    .kind = TensorKind::kReference,
                                    .segment = f.b.current_segment()});
  return f.op("where", {seen, x}, "mask");
}

/// The weights that attention returns: the layer's Python variable keeps them until it returns
/// (`hidden_states, _ = self.self_attn(...)`).
TensorId returned_weights(Steps& f, TensorId weights, const EagerForm& form) {
  const TensorId returned = f.dropout(weights, form);
  f.b.graph().tensor(returned).held = true;
  return returned;
}

TensorId eager_attention(Steps& f, const Heads& h, const EagerForm& form) {
  const int64_t heads = f.shape(h.q)[1];
  const TensorId k = f.repeat_heads(h.k, heads, "repeat_k");
  const TensorId v = f.repeat_heads(h.v, heads, "repeat_v");
  f.b.set_attention_core(true);
  const TensorId scores = f.matmul(h.q, f.transpose(k, {0, 1, 3, 2}), "scores");
  const TensorId weights = f.op("softmax", {masked_scores(f, scores, h.mask)}, "softmax");
  const TensorId context = f.matmul(returned_weights(f, weights, form), v, "context");
  f.b.set_attention_core(false);
  return f.merge_heads(context);
}

/// Attention of OPT: three-dimensional batched products; scores are clamped to the lowest finite
/// number.
TensorId flat_attention(Steps& f, const Heads& h, const EagerForm& form) {
  const Shape q = f.shape(h.q), mask = f.shape(h.mask);
  const int64_t heads = q[0] / mask[0];
  f.b.set_attention_core(true);
  const TensorId scores = f.op("matmul", {h.q, f.transpose(h.k, {0, 2, 1})}, "scores");
  const TensorId wide = f.view(scores, {mask[0], heads, mask[2], mask[3]});
  const TensorId masked = masked_scores(f, wide, h.mask);
  // Today's transformers does not clamp.
  f.b.set_counts(Counts::kTimeOnly);
  const TensorId clamped = f.op("maximum_scalar", {masked}, "clamp");
  f.b.set_counts(Counts::kAll);
  const TensorId weights = f.op("softmax", {f.view(clamped, {q[0], mask[2], mask[3]})}, "softmax");
  const TensorId context = f.op("matmul", {returned_weights(f, weights, form), h.v}, "context");
  f.b.set_attention_core(false);
  return f.merge_heads(f.view(context, {mask[0], heads, q[1], q[2]}));
}

TensorId attend(Steps& f, const Heads& h, const EagerForm& form) {
  if (form.fused_attention) return fused_attention(f, h);
  return f.shape(h.q).size() == 3 ? flat_attention(f, h, form) : eager_attention(f, h, form);
}

}  // namespace

std::string name_prefix(const std::string& name) { return name.substr(0, name.rfind('.') + 1); }

/// pow, mean, add, rsqrt, mul, mul; in half precision with casts to and from fp32.
std::vector<TensorId> decompose_rms_norm(GraphBuilder& b, const Node& node, const EagerForm&) {
  Steps f(b, node);
  const TensorId x = node.inputs[0];
  const DType dtype = b.graph().tensor(x).dtype;
  Shape rows = f.shape(x);
  rows.back() = 1;
  const auto cast = [&](TensorId t, DType to) {
    return dtype_bits(dtype) < 32 ? f.own("cast", {t}, {{"dtype", to}}) : t;
  };
  const TensorId wide = cast(x, DType::kFp32);
  const TensorId squares = f.own("integer_pow", {wide});
  const TensorId mean = f.own("reduce_mean", {squares}, {{"shape", rows}});
  const TensorId scale = f.own("rsqrt", {f.own("add_scalar", {mean})});
  const TensorId normal = cast(f.own("mul", {wide, scale}), dtype);
  if (node.inputs.size() == 1) return {normal};
  return {f.own("mul", {normal, node.inputs[1]})};
}

std::vector<TensorId> decompose_dropout(GraphBuilder& b, const Node& node, const EagerForm& form) {
  if (!form.training) return {node.inputs[0], -1};
  return b.add("dropout", node.inputs, node.name);
}

std::vector<TensorId> decompose_gelu_new(GraphBuilder& b, const Node& node, const EagerForm&) {
  Steps f(b, node);
  const TensorId x = node.inputs[0];
  const TensorId half = f.own("mul_scalar", {x});
  const TensorId cube = f.own("integer_pow", {x});
  const TensorId sum = f.own("add", {x, f.own("mul_scalar", {cube})});
  const TensorId curve = f.own("tanh", {f.own("mul_scalar", {sum})});
  return {f.own("mul", {half, f.own("add_scalar", {curve})})};
}

std::vector<TensorId> decompose_quick_gelu(GraphBuilder& b, const Node& node, const EagerForm&) {
  Steps f(b, node);
  const TensorId x = node.inputs[0];
  const TensorId curve = f.own("sigmoid", {f.own("mul_scalar", {x})});
  return {f.own("mul", {x, curve})};
}

std::vector<TensorId> decompose_split_heads(GraphBuilder& b, const Node& node,
                                            const EagerForm& form) {
  Steps f(b, node);
  const Shape s = f.shape(node.inputs[0]);
  if (s.size() == 4) return {f.transpose(node.inputs[0], {0, 2, 1, 3})};
  const auto heads = attribute<int64_t>(node, "heads");
  const TensorId strided = f.split_heads(node.inputs[0], heads);
  if (!f.flag("copied") || form.fused_attention) return {strided};
  return {f.view(f.own("copy", {strided}), {s[0] * heads, s[1], s[2] / heads})};
}

std::vector<TensorId> decompose_causal_mask(GraphBuilder& b, const Node& node,
                                            const EagerForm& form) {
  const bool padding = attribute<int64_t>(node, "padding") != 0;
  if (form.fused_attention && !padding) return {-1};
  Steps f(b, node);
  const Shape x = f.shape(node.inputs[0]);
  const DType dtype = b.graph().tensor(node.inputs[0]).dtype;
  const TensorId like = b.tensor({.name = node.name,
                                  .shape = {1, 1, x[1], x[1]},
                                  .dtype = dtype,
                                  .kind = TensorKind::kReference});
  const TensorId lowest = f.own("fill", {like});
  const TensorId later = f.own("compare", {lowest});
  const TensorId causal = f.own("where", {later, lowest});
  if (!padding) return {causal};
  // The padding mask, all ones, is expanded to [b, 1, s, s] and combined with the causal mask.
  const TensorId ones = b.input("attention_mask", {x[0], 1, 1, x[1]}, dtype);
  const TensorId wide =
      f.op("expand", {ones}, "expand_mask", {{"shape", Shape{x[0], 1, x[1], x[1]}}});
  const TensorId inverted = f.op("rsub_scalar", {wide}, "expand_mask");
  const TensorId hidden = f.op("cast", {inverted}, "expand_mask", {{"dtype", DType::kBool}});
  const TensorId filled = f.op("where", {hidden, inverted}, "expand_mask");
  const TensorId again = f.op("cast", {filled}, "expand_mask", {{"dtype", DType::kBool}});
  return {f.op("where", {again, causal}, "expand_mask")};
}

/// Cosines and sines for each position, [1, 1, s, rope_dim]; computed once per forward pass.
std::vector<TensorId> decompose_rotary_table(GraphBuilder& b, const Node& node, const EagerForm&) {
  Steps f(b, node);
  const int64_t s = f.shape(node.inputs[0])[1];
  const auto rope_dim = attribute<int64_t>(node, "rope_dim");
  const DType dtype = b.graph().tensor(node.inputs[0]).dtype;
  const TensorId frequencies = b.tensor(
      {.name = "rotary_emb.inv_freq", .shape = {1, rope_dim / 2, 1}, .kind = TensorKind::kBuffer});
  const TensorId places = b.input("position_ids", {1, 1, s}, DType::kFp32);
  const TensorId angles = f.own("matmul", {frequencies, places});
  const TensorId half = f.transpose(angles, {0, 2, 1});
  const TensorId both = f.own("cat", {half, half}, {{"dim", 2}});
  const auto wave = [&](const char* function) {
    TensorId t = f.own("mul_scalar", {f.own(function, {both})});
    if (dtype != DType::kFp32) t = f.own("cast", {t}, {{"dtype", dtype}});
    return f.view(t, {1, 1, s, rope_dim});
  };
  const TensorId cos = wave("cos");
  return {cos, wave("sin")};
}

std::vector<TensorId> decompose_apply_rotary(GraphBuilder& b, const Node& node, const EagerForm&) {
  return {Steps(b, node).rotate(node.inputs[0], node.inputs[1], node.inputs[2], node.name)};
}

std::vector<TensorId> decompose_sdpa(GraphBuilder& b, const Node& node, const EagerForm& form) {
  Steps f(b, node);
  const size_t given = node.inputs.size() - (f.flag("sinks") ? 1 : 0);
  const TensorId mask = given > 3 ? node.inputs[3] : -1;
  return {attend(f, {node.inputs[0], node.inputs[1], node.inputs[2], mask}, form)};
}

/// The latent vector is expanded to keys and values for each head.
std::vector<TensorId> decompose_latent_attention(GraphBuilder& b, const Node& node,
                                                 const EagerForm& form) {
  Steps f(b, node);
  const TensorId q = node.inputs[0], latent = node.inputs[1], both = node.inputs[2];
  const TensorId kv_b = node.inputs[3], cos = node.inputs[4], sin = node.inputs[5];
  const int64_t heads = f.shape(q)[1], qk_head_dim = f.shape(q)[3];
  const auto rope_dim = attribute<int64_t>(node, "rope_dim");
  const int64_t nope_dim = qk_head_dim - rope_dim;
  const int64_t v_head_dim = f.shape(kv_b)[0] / heads - nope_dim;
  const TensorId pairs = f.split_heads(f.op("linear", {latent, kv_b}, "kv_b_proj"), heads);
  const Shape s = f.shape(pairs);
  const TensorId one = f.view(f.slice(both, rope_dim, "split_rotary"), {s[0], 1, s[2], rope_dim});
  const TensorId shared = f.rotate(one, cos, sin, f.prefix() + "rotary_k");
  const TensorId wide =
      f.op("expand", {shared}, "expand_k", {{"shape", Shape{s[0], heads, s[2], rope_dim}}});
  const TensorId k =
      f.op("cat", {f.slice(pairs, nope_dim, "split_k"), wide}, "cat_k", {{"dim", 3}});
  const TensorId turned =
      f.rotate(f.slice(q, rope_dim, "split_q_rotary"), cos, sin, f.prefix() + "rotary_q");
  const TensorId queries =
      f.op("cat", {f.slice(q, nope_dim, "split_q"), turned}, "cat_q", {{"dim", 3}});
  const TensorId v = f.slice(pairs, v_head_dim, "split_v");
  return {attend(f, {queries, k, v, node.inputs[6]}, form)};
}

}  // namespace tilecast
