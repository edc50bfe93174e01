// Attention as eager PyTorch launches it: step by step, or as scaled_dot_product_attention.

#include "ops/decompose.h"
#include "ops/decomposition.h"

namespace tilecast {
namespace {

/// The operands of attention, [b, heads, s, size] each; for OPT, [b · heads, s, size].
struct Heads {
  TensorId q, k, v;
  TensorId mask;  ///< -1: none
};

/// The kernels read rows of a mask that are aligned to 16 elements, else PyTorch pads them
/// (pad_bias in aten/src/ATen/native/transformers/attention.cpp). `attention` does not read the
/// mask.
TensorId pad_mask(Decomposition& f, TensorId mask) {
  constexpr int64_t kAlignment = 16;
  const int64_t rest = f.shape(mask).back() % kAlignment;
  if (rest == 0 || f.shape(mask).back() == 1) return mask;
  Shape pads(2 * f.shape(mask).size(), 0);
  pads.back() = kAlignment - rest;
  return f.op("pad", {mask}, "pad_mask", {{"pads", pads}});
}

/// Attention as one kernel, which includes scaling, mask, softcap and dropout.
TensorId fused_attention(Decomposition& f, const Heads& h, bool joined_heads) {
  const TensorId padded = h.mask >= 0 ? pad_mask(f, h.mask) : -1;
  const auto rows = [&](TensorId t) { return f.transpose(t, {0, 2, 1, 3}); };
  const TensorId q = rows(h.q), k = rows(h.k);
  TensorId context = f.b.add("attention", {q, k, rows(h.v)}, f.n.name,
                             {{"causal", attribute<int64_t>(f.n, "causal")},
                              {"window", attribute<int64_t>(f.n, "window")}})
                         .front();
  if (padded >= 0) context = f.op("keep", {context, padded, h.mask}, "context");
  if (joined_heads) context = f.op("copy", {context}, "merge");
  const Shape s = f.shape(context);
  return f.view(context, {s[0], s[1], s[2] * s[3]});
}

/// No fused kernel of PyTorch takes FP32 with shared key heads (`enable_gqa`, which transformers
/// asks for where no mask is given; aten/src/ATen/native/transformers/cuda/sdp_utils.cpp).
bool takes_math_path(const Decomposition& f, const Heads& h, const EagerForm& form) {
  const Tensor &q = f.b.graph().tensor(h.q), &k = f.b.graph().tensor(h.k);
  if (f.flag("equal_heads") && !form.fused_modules && q.shape[1] != k.shape[1]) return true;
  const auto window = attribute<int64_t>(f.n, "window");
  return q.dtype == DType::kFp32 && !form.autocast && h.mask < 0 && q.shape.size() == 4 &&
         q.shape[1] != k.shape[1] && (window == 0 || window >= k.shape[2]);
}

TensorId softmax(Decomposition& f, TensorId scores, std::vector<Attribute> attributes = {}) {
  const RoleScope role(f.b, Role::kSoftmax);
  return f.op("softmax", {scores}, "softmax", std::move(attributes));
}

/// _scaled_dot_product_attention_math (aten/src/ATen/native/transformers/attention.cpp): queries
/// and keys are scaled, the mask is added in place.
TensorId math_attention(Decomposition& f, const Heads& h) {
  const int64_t heads = f.shape(h.q)[1];
  const TensorId k = f.repeat_heads(h.k, heads, "repeat_k");
  const TensorId v = f.repeat_heads(h.v, heads, "repeat_v");
  const DType dtype = f.b.graph().tensor(h.q).dtype;
  const auto wide = [&](TensorId t) {
    return dtype_bits(dtype) < 32 ? f.op("cast", {t}, "fp32", {{"dtype", DType::kFp32}}) : t;
  };
  const TensorId q = f.op("mul_scalar", {wide(h.q)}, "scale");
  const TensorId keys = f.op("mul_scalar", {f.transpose(wide(k), {0, 1, 3, 2})}, "scale");
  f.b.set_attention_core(true);
  TensorId scores = f.matmul(q, keys, "scores");
  if (f.flag("causal")) {
    const Shape s = f.shape(scores);
    const TensorId seen = f.b.tensor({.name = f.prefix() + "bias",
                                      .shape = {1, 1, s[2], s[3]},
                                      .dtype = f.b.graph().tensor(scores).dtype,
                                      .kind = TensorKind::kReference,
                                      .segment = f.b.current_segment()});
    f.b.set_counts(Counts::kTimeOnly);
    scores = f.op("add", {seen, scores}, "mask");
    f.b.set_counts(Counts::kAll);
  }
  TensorId context = f.matmul(softmax(f, scores), wide(v), "context");
  if (dtype_bits(dtype) < 32) context = f.op("cast", {context}, "context", {{"dtype", dtype}});
  f.b.set_attention_core(false);
  return f.merge_heads(context);
}

/// Scales, caps and masks the scores. Falcon's code adds the mask in the call of the softmax, while
/// a variable keeps the scores.
TensorId masked_scores(Decomposition& f, TensorId scores, TensorId mask, const EagerForm& form) {
  TensorId x = scores;
  const auto& scale = attribute<std::string>(f.n, "scale");
  if (scale != "none") x = f.op(scale == "div" ? "div_scalar" : "mul_scalar", {x}, "scale");
  if (f.flag("softcap")) {  // cap tanh(x / cap)
    for (const char* step : {"div_scalar", "tanh", "mul_scalar"}) x = f.op(step, {x}, "cap");
  }
  if (mask >= 0 && f.flag("ones_mask")) {
    // Published times, in FP32, are of models that add it.
    if (form.autocast) return x;
    f.b.set_counts(Counts::kTimeOnly);
    x = f.op("add", {x, mask}, "mask");
    f.b.set_counts(Counts::kAll);
    return x;
  }
  if (mask >= 0) {
    if (f.flag("masks_in_call")) f.b.graph().tensor(x).held = Held::kSoftmax;
    const TensorId masked = f.op("add", {x, mask}, "mask");
    return f.flag("clamped") ? f.op("maximum_scalar", {masked}, "clamp") : masked;
  }
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

/// softmax(scores, dtype=torch.float32).to(query.dtype), if the model's code asks for it. The
/// kernel reads FP16 itself; BF16 is cast first (aten/src/ATen/native/SoftMax.cpp).
TensorId softmax_of(Decomposition& f, TensorId scores) {
  const DType dtype = f.b.graph().tensor(scores).dtype;
  if (!f.flag("softmax_fp32") || dtype_bits(dtype) >= 32) return softmax(f, scores);
  const RoleScope role(f.b, Role::kSoftmax);
  const TensorId wide =
      dtype == DType::kFp16
          ? softmax(f, scores, {{"dtype", DType::kFp32}})
          : softmax(f, f.op("cast", {scores}, "softmax.in", {{"dtype", DType::kFp32}}));
  return f.op("cast", {wide}, "softmax.out", {{"dtype", dtype}});
}

/// The weights that attention returns: the layer's Python variable keeps them until it returns
/// (`hidden_states, _ = self.self_attn(...)`), or the model's, until the next layer returns
/// (`outputs = block(...)`).
TensorId returned_weights(Decomposition& f, TensorId weights, const EagerForm& form) {
  const TensorId returned = f.dropout(weights, form);
  f.b.graph().tensor(returned).held = f.flag("returns_weights") ? Held::kNextLayer : Held::kLayer;
  return returned;
}

TensorId eager_attention(Decomposition& f, const Heads& h, const EagerForm& form) {
  const int64_t heads = f.shape(h.q)[1];
  // One key head is repeated without a copy; each product copies its operand.
  const bool one_head = f.shape(h.k)[1] == 1;
  const TensorId k = f.repeat_heads(h.k, heads, "repeat_k");
  TensorId v = one_head ? h.v : f.repeat_heads(h.v, heads, "repeat_v");
  const DType dtype = f.b.graph().tensor(h.q).dtype;
  const bool wide = f.flag("fp32_scores") && dtype_bits(dtype) < 32;
  f.b.set_attention_core(true);
  const auto operand = [&](TensorId t, const char* name) {
    return wide ? f.op("cast", {t}, name, {{"dtype", DType::kFp32}}) : t;
  };
  const TensorId left = operand(h.q, "q.fp32"), right = operand(k, "k.fp32");
  const TensorId scores = f.matmul(left, f.transpose(right, {0, 1, 3, 2}), "scores");
  TensorId weights = softmax_of(f, masked_scores(f, scores, h.mask, form));
  if (wide) weights = f.op("cast", {weights}, "softmax.out", {{"dtype", dtype}});
  weights = returned_weights(f, weights, form);
  if (one_head) v = f.repeat_heads(v, heads, "repeat_v");
  TensorId context = f.matmul(weights, v, "context");
  // Variables of the function.
  std::vector<TensorId> held = {context};
  if (h.mask >= 0) held.push_back(h.mask);
  if (k != h.k && !one_head) held.push_back(k);
  if (wide && f.flag("holds_fp32")) held.insert(held.end(), {left, right});
  if (held.size() > 1) context = f.op("keep", std::move(held), "context");
  f.b.set_attention_core(false);
  return f.merge_heads(context);
}

/// Attention of OPT: three-dimensional batched products; scores are clamped to the lowest finite
/// number.
TensorId flat_attention(Decomposition& f, const Heads& h, const EagerForm& form) {
  const Shape q = f.shape(h.q), mask = f.shape(h.mask);
  const int64_t heads = q[0] / mask[0];
  f.b.set_attention_core(true);
  const TensorId scores = f.op("matmul", {h.q, f.transpose(h.k, {0, 2, 1})}, "scores");
  const TensorId wide = f.view(scores, {mask[0], heads, mask[2], mask[3]});
  const TensorId masked = masked_scores(f, wide, h.mask, form);
  // Today's transformers does not clamp.
  f.b.set_counts(Counts::kTimeOnly);
  const TensorId clamped = f.op("maximum_scalar", {masked}, "clamp");
  f.b.set_counts(Counts::kAll);
  const TensorId weights = softmax_of(f, f.view(clamped, {q[0], mask[2], mask[3]}));
  const TensorId context = f.op("matmul", {returned_weights(f, weights, form), h.v}, "context");
  f.b.set_attention_core(false);
  return f.merge_heads(f.view(context, {mask[0], heads, q[1], q[2]}));
}

TensorId attend(Decomposition& f, const Heads& h, const EagerForm& form, bool joined_heads) {
  if (form.fused_attention)
    return takes_math_path(f, h, form) ? math_attention(f, h)
                                       : fused_attention(f, h, joined_heads && !form.fused_modules);
  return f.shape(h.q).size() == 3 ? flat_attention(f, h, form) : eager_attention(f, h, form);
}

}  // namespace

std::vector<TensorId> decompose_causal_mask(GraphBuilder& b, const Node& node,
                                            const EagerForm& form) {
  const bool padding = attribute<int64_t>(node, "padding") != 0;
  if (form.fused_attention && !padding) return {-1};
  Decomposition f(b, node);
  const Shape x = f.shape(node.inputs[0]);
  const DType dtype = b.graph().tensor(node.inputs[0]).dtype;
  const TensorId like = b.tensor({.name = node.name,
                                  .shape = {1, 1, x[1], x[1]},
                                  .dtype = dtype,
                                  .kind = TensorKind::kReference});
  const TensorId lowest = f.own("fill", {like});
  const TensorId later = f.own("compare", {lowest});
  if (!padding) {
    // transformers 5.24, masking_utils.py: of as many sequences as the batch has.
    const Shape each = {x[0], 1, x[1], x[1]};
    return {f.own("where", {f.own("expand", {later}, {{"shape", each}}), lowest})};
  }
  const TensorId causal = f.own("where", {later, lowest});
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

std::vector<TensorId> decompose_sdpa(GraphBuilder& b, const Node& node, const EagerForm& form) {
  Decomposition f(b, node);
  const size_t given = node.inputs.size() - (f.flag("sinks") ? 1 : 0);
  const TensorId mask = given > 3 ? node.inputs[3] : -1;
  return {attend(f, {node.inputs[0], node.inputs[1], node.inputs[2], mask}, form,
                 f.flag("joined_heads"))};
}

/// The latent vector is expanded to keys and values for each head.
std::vector<TensorId> decompose_latent_attention(GraphBuilder& b, const Node& node,
                                                 const EagerForm& form) {
  Decomposition f(b, node);
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
  const TensorId context = attend(f, {queries, k, v, node.inputs[6]}, form, true);
  return {f.op("keep", {context, q, queries, k}, "context")};  // variables of the module
}

}  // namespace tilecast
