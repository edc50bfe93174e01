// Attention of a serving step: keys and values are written to a cache, and each group of sequences
// has its own kernels.

#include <algorithm>

#include "ops/decompose.h"
#include "ops/op_def.h"
#include "passes/serving_step.h"

namespace tilecast {

struct ServingStep::Latent {
  std::string p;  ///< prefix of node names
  int64_t heads, nope_dim, rope_dim, v_head_dim, kv_lora_rank;
  TensorId q, latent;
  TensorId kv_b, kv_b_scales, per_head;  ///< -1: not needed by any group
  int64_t top_k = 0;                     ///< sparse attention: keys of a query; 0: all
  QuantScheme scheme;
};

/// The rows of a group's tokens, as a view.
TensorId ServingStep::rows_of(TensorId x, const StepRequest::Group& group,
                              const std::string& name) {
  if (request_.groups.size() == 1) return x;
  return op("slice_rows", {x}, name, {{"rows", group.sequences * group.tokens}});
}

/// The buffer that the kernels of all groups write their rows to; -1 if there is a single group,
/// which has its own output tensor.
TensorId ServingStep::buffer_like(TensorId x, int64_t columns, const std::string& name) {
  if (request_.groups.size() == 1) return -1;
  return op("empty", {x}, name, {{"shape", Shape{tokens_, columns}}});
}

/// The results of all groups as one tensor, without a copy.
TensorId ServingStep::join(TensorId buffer, std::vector<TensorId> parts, const std::string& name) {
  if (parts.size() == 1) return parts.front();
  for (const TensorId part : parts) {
    const TensorId own = to_.tensor(part).storage;
    // No tensor before it shares its storage.
    for (auto tensor = to_.tensors.begin() + own; tensor != to_.tensors.end(); ++tensor) {
      if (tensor->storage == own) tensor->storage = to_.tensor(buffer).storage;
    }
  }
  parts.insert(parts.begin(), buffer);
  return op("join_rows", std::move(parts), name);
}

/// Writes the keys and values of all tokens in one kernel; returns the cache of each group.
std::vector<TensorId> ServingStep::append_cache(const std::string& p, int64_t columns,
                                                std::vector<TensorId> added) {
  std::vector<TensorId> caches;
  for (const StepRequest::Group& g : request_.groups)
    caches.push_back(
        states(p + "cache", {g.sequences, g.past + g.tokens, columns}, request_.kv_dtype));
  if (added.empty()) return caches;  // an earlier layer has written them
  added.insert(added.begin(), caches.front());
  caches.front() = op("append_cache", std::move(added), p + "cache");
  return caches;
}

void ServingStep::attention(int32_t index) {
  const Node& node = node_at(index);
  const std::string p = name_prefix(node.name);
  // [b, heads, s, size]
  const Shape &qs = module_shape(node.inputs[0]), &ks = module_shape(node.inputs[1]),
              &vs = module_shape(node.inputs[2]);
  const int64_t heads = qs[1], kv_heads = ks[1], size = qs[3], v_head_dim = vs[3];
  // Keys and values of an earlier layer are in its cache already.
  const bool shared = from_.tensor(node.inputs[1]).kind == TensorKind::kReference;
  std::vector<TensorId> qkv = {get(node.inputs[0])};
  for (size_t i = 1; i < 3 && !shared; ++i) qkv.push_back(get(node.inputs[i]));
  const int32_t maker = fusions_.producer[static_cast<size_t>(node.inputs[0])];
  if (op_def(node_at(maker).op).name == "apply_rotary") {
    std::vector<TensorId> turning(qkv.begin(), qkv.begin() + (shared ? 1 : 2));
    const std::vector<TensorId> turned = b_.add("rotary", std::move(turning), p + "rotary");
    std::copy(turned.begin(), turned.end(), qkv.begin());
  }
  const TensorId q = qkv[0];
  if (attribute<int64_t>(node, "sinks") != 0) get(node.inputs.back());
  const auto window = attribute<int64_t>(node, "window");
  const std::vector<TensorId> caches = append_cache(
      p, kv_heads * (size + v_head_dim), std::vector<TensorId>(qkv.begin() + 1, qkv.end()));
  const TensorId buffer = buffer_like(q, heads * v_head_dim, p + "outputs");
  std::vector<TensorId> outputs;
  for (const StepRequest::Group& g : request_.groups) {
    const RoleScope role(b_, Role::kGroup);
    const auto part = [&](TensorId t, int64_t count, int64_t dim) {
      return view(rows_of(t, g, p + "rows"), {g.sequences, g.tokens, count, dim});
    };
    const TensorId queries = part(q, heads, size);
    TensorId context;
    if (g.past == 0 && !shared) {
      const TensorId keys = part(qkv[1], kv_heads, size),
                     values = part(qkv[2], kv_heads, v_head_dim);
      context = op("attention", {queries, keys, values}, p + "attention",
                   {{"causal", 1}, {"window", window}});
    } else {
      context = op(
          "cached_attention", {queries, caches[outputs.size()]}, p + "attention",
          {{"kv_heads", kv_heads}, {"v_head_dim", v_head_dim}, {"causal", 1}, {"window", window}});
    }
    outputs.push_back(view(context, {g.sequences * g.tokens, heads * v_head_dim}));
  }
  set(node.outputs[0], join(buffer, std::move(outputs), p + "joined"));
}

/// For new prompts, the latent vector is expanded to keys and values of each head. With cached
/// tokens, queries are projected into the latent space instead and attend to the cache as a single
/// key head (weight absorption).
void ServingStep::latent_attention(int32_t index) {
  const Node& node = node_at(index);
  const Shape &qs = module_shape(node.inputs[0]), &ws = module_shape(node.inputs[3]);
  const Tensor& weight = from_.tensor(node.inputs[3]);
  Latent l{.p = name_prefix(node.name), .heads = qs[1]};
  l.rope_dim = attribute<int64_t>(node, "rope_dim");
  l.nope_dim = qs[3] - l.rope_dim;
  l.v_head_dim = ws[0] / l.heads - l.nope_dim;
  l.kv_lora_rank = ws[1];
  l.q = get(node.inputs[0]);
  l.latent = get(node.inputs[1]);
  const TensorId down = get(node.inputs[2]);
  const TensorId q_part = slice(l.q, l.heads * l.rope_dim, l.p + "q_rotary");
  const TensorId turned =
      b_.add("rotary", {q_part, slice(down, l.rope_dim, l.p + "k_rotary")}, l.p + "rotary")[1];
  l.scheme = scheme_of(l.p + "kv_b_proj", weight.role);
  l.kv_b = get(node.inputs[3]);
  if (l.scheme != QuantScheme::kNone) to_.tensor(l.kv_b).dtype = scheme_info(l.scheme).weight_dtype;
  const std::vector<TensorId> caches =
      append_cache(l.p, l.kv_lora_rank + l.rope_dim, {l.latent, turned});
  const TensorId buffer = buffer_like(l.q, l.heads * l.v_head_dim, l.p + "outputs");
  l.top_k = attribute<int64_t>(node, "top_k");
  // Tensors that several groups need are created once. With sparse attention, prompts longer than
  // the number of selected keys attend to the cache too, as in SGLang.
  const auto is_fresh = [&](const StepRequest::Group& g) {
    return g.past == 0 && (l.top_k == 0 || g.tokens <= l.top_k);
  };
  const auto& groups = request_.groups;
  const bool fresh = std::any_of(groups.begin(), groups.end(), is_fresh);
  l.kv_b_scales =
      fresh && l.scheme != QuantScheme::kNone
          ? b_.scales(l.p + "kv_b_proj", l.scheme, element_count(ws), b_.current_segment())
          : -1;
  l.per_head = l.kv_b;
  // Serving software keeps the absorbed weights in the activations' dtype.
  if (l.scheme != QuantScheme::kNone && !std::all_of(groups.begin(), groups.end(), is_fresh))
    l.per_head = b_.tensor({.name = l.p + "kv_b_absorbed",
                            .shape = ws,
                            .dtype = weight.dtype,
                            .kind = TensorKind::kBuffer,
                            .segment = b_.current_segment()});
  std::vector<TensorId> outputs;
  for (const StepRequest::Group& g : groups) {
    const RoleScope role(b_, Role::kGroup);
    outputs.push_back(is_fresh(g) ? fresh_latent(g, l)
                                  : cached_latent(g, l, caches[outputs.size()]));
  }
  set(node.outputs[0], join(buffer, std::move(outputs), l.p + "joined"));
}

TensorId ServingStep::fresh_latent(const StepRequest::Group& g, const Latent& l) {
  const TensorId queries = view(rows_of(l.q, g, l.p + "rows"),
                                {g.sequences, g.tokens, l.heads, l.nope_dim + l.rope_dim});
  std::vector<TensorId> inputs = {rows_of(l.latent, g, l.p + "rows"), l.kv_b};
  if (l.kv_b_scales >= 0) inputs.push_back(l.kv_b_scales);
  const TensorId wide = linear_of(std::move(inputs), l.scheme, l.p + "kv_b_proj");
  const auto heads = [&](int64_t size, const char* name) {
    return view(slice(wide, l.heads * size, l.p + name), {g.sequences, g.tokens, l.heads, size});
  };
  const TensorId keys =
      op("pad_columns", {heads(l.nope_dim, "k")}, l.p + "cat_k", {{"columns", l.rope_dim}});
  const TensorId context = op("attention", {queries, keys, heads(l.v_head_dim, "v")},
                              l.p + "attention", {{"causal", 1}});
  return view(context, {g.sequences * g.tokens, l.heads * l.v_head_dim});
}

TensorId ServingStep::cached_latent(const StepRequest::Group& g, const Latent& l, TensorId cache) {
  const int64_t tokens = g.sequences * g.tokens;
  // [b, s, heads, size] → [heads, tokens, size], read through strides.
  const auto transpose = [&](TensorId x) {
    return op("transpose", {x}, "transpose", {{"order", Shape{1, 0, 2}}});
  };
  const auto by_head = [&](TensorId x, int64_t size) {
    return transpose(view(x, {tokens, l.heads, size}));
  };
  const TensorId queries = view(rows_of(l.q, g, l.p + "rows"),
                                {g.sequences, g.tokens, l.heads, l.nope_dim + l.rope_dim});
  const TensorId own = by_head(slice(queries, l.nope_dim, l.p + "q_plain"), l.nope_dim);
  const TensorId plain = op(
      "matmul", {own, weight_part(l.per_head, {l.heads, l.nope_dim, l.kv_lora_rank}, l.p + "w_uk")},
      l.p + "absorb_q");
  const TensorId wide = view(transpose(plain), {g.sequences, g.tokens, l.heads, l.kv_lora_rank});
  const TensorId carried = op("pad_columns", {wide}, l.p + "cat_q", {{"columns", l.rope_dim}});
  const TensorId context =
      l.top_k > 0
          ? op("sparse_attention", {carried, cache}, l.p + "attention",
               {{"keys", g.past + g.tokens}, {"top_k", l.top_k}, {"v_head_dim", l.kv_lora_rank}})
          : op("cached_attention", {carried, cache}, l.p + "attention",
               {{"kv_heads", 1}, {"v_head_dim", l.kv_lora_rank}, {"latent", 1}, {"causal", 1}});
  const TensorId values =
      op("matmul",
         {by_head(context, l.kv_lora_rank),
          weight_part(l.per_head, {l.heads, l.kv_lora_rank, l.v_head_dim}, l.p + "w_uv")},
         l.p + "absorb_v");
  return view(op("copy", {transpose(values)}, l.p + "merge"), {tokens, l.heads * l.v_head_dim});
}

/// A part of a weight in another shape, without a kernel.
TensorId ServingStep::weight_part(TensorId whole, Shape shape, const std::string& name) {
  Tensor part = to_.tensor(whole);
  part.name = name;
  part.shape = std::move(shape);
  part.kind = TensorKind::kReference;
  return b_.tensor(std::move(part));
}

}  // namespace tilecast
