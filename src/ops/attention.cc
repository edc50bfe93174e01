// Fused attention: one kernel that never writes the scores
// (FlashAttention; Dao et al. 2022).

#include <fmt/format.h>

#include <algorithm>

#include "base/checked.h"
#include "graph/dtype.h"
#include "ops/attention_sizes.h"
#include "ops/gradient.h"
#include "ops/op_def.h"

namespace tilecast {
namespace {

/// Number of (query, key) pairs that one head of one sequence computes. Queries are the last tokens
/// of the keys.
int64_t visible_pairs(int64_t queries, int64_t keys, bool causal, int64_t window) {
  const int64_t reach = window == 0 ? keys : std::min(window, keys);
  if (!causal) return checked_multiply(queries, reach);
  // Query i sees min(past + i + 1, reach) keys: the number first grows by 1 per query, then stays
  // at reach.
  const int64_t past = keys - queries;
  const int64_t ramp = std::clamp<int64_t>(reach - past, 0, queries);
  const int64_t ramp_sum =
      checked_add(checked_multiply(ramp, past), checked_multiply(ramp, ramp + 1) / 2);
  return checked_add(ramp_sum, checked_multiply(queries - ramp, reach));
}

struct AttentionSizes {
  int64_t batch, queries, keys, heads, kv_heads, head_dim, v_head_dim;
  int64_t kv_elements;  ///< elements of keys and values per token
  DType dtype, kv_dtype;
  bool latent = false;
};

void check_sizes(const OpContext& context, const AttentionSizes& s) {
  if (s.kv_heads < 1 || s.heads % s.kv_heads != 0)
    context.fail(fmt::format("{} key heads do not divide {} query heads", s.kv_heads, s.heads));
  if (context.integer("causal") != 0 && s.queries > s.keys)
    context.fail(fmt::format("causal attention of {} queries to {} keys", s.queries, s.keys));
}

Kernel attention_kernel(const OpContext& context, const AttentionSizes& s) {
  const Attention sizes{.batch = s.batch,
                        .queries = s.queries,
                        .keys = s.keys,
                        .head_dim = s.head_dim,
                        .v_head_dim = s.v_head_dim,
                        .heads = s.heads,
                        .kv_heads = s.kv_heads,
                        .window = context.integer("window"),
                        .causal = context.integer("causal") != 0,
                        .latent = s.latent,
                        .kv_dtype = s.kv_dtype};
  Kernel kernel{.shape = sizes, .dtype = s.dtype};
  const int64_t pairs = visible_pairs(s.queries, s.keys, sizes.causal, sizes.window);
  kernel.flops = checked_product({2, s.head_dim + s.v_head_dim, pairs, s.heads, s.batch});
  const int64_t reach = sizes.window == 0 ? s.keys : std::min(s.keys, sizes.window + s.queries - 1);
  const int64_t kv_bytes =
      checked_product({s.batch, reach, s.kv_elements, dtype_bits(s.kv_dtype)}) / kBitsPerByte;
  const int64_t query_bytes = tensor_bytes(context.input(0));
  kernel.read_bytes = checked_add(query_bytes, kv_bytes);
  kernel.write_bytes = tensor_bytes(context.output(0));
  return kernel;
}

/// As a kernel for sequences of varying length takes them: each row holds some.
AttentionSizes packed(AttentionSizes s, int64_t sequences) {
  s.batch = checked_multiply(s.batch, sequences);
  s.queries = ceil_divide(s.queries, sequences);
  s.keys = ceil_divide(s.keys, sequences);
  return s;
}

// attention: q [b, s, heads, d], k [b, t, kv heads, d], v [b, t, kv heads, e] → [b, s, heads, e].
AttentionSizes attention_sizes(const OpContext& context) {
  const Shape& q = context.input(0).shape;
  const Shape& k = context.input(1).shape;
  const Shape& v = context.input(2).shape;
  if (q.size() != 4 || k.size() != 4 || v.size() != 4 || q[0] != k[0] || k[0] != v[0] ||
      k[1] != v[1] || k[2] != v[2] || q[3] != k[3])
    context.fail(
        fmt::format("expected q [b, s, heads, d], k [b, t, kv heads, d], v [b, t, kv heads, e], "
                    "found {}, {}, {}",
                    format_shape(q), format_shape(k), format_shape(v)));
  const AttentionSizes s{q[0],
                         q[1],
                         k[1],
                         q[2],
                         k[2],
                         q[3],
                         v[3],
                         checked_multiply(k[2], checked_add(k[3], v[3])),
                         context.input(0).dtype,
                         context.input(1).dtype};
  check_sizes(context, s);
  return s;
}

std::vector<TensorSpec> infer_attention(const OpContext& context) {
  const AttentionSizes s = attention_sizes(context);
  return {{.shape = {s.batch, s.queries, s.heads, s.v_head_dim}, .dtype = s.dtype},
          {.shape = {s.batch, s.heads, s.queries}, .dtype = DType::kFp32}};
}

void work_attention(const OpContext& context, std::vector<Kernel>& kernels) {
  kernels.push_back(
      attention_kernel(context, packed(attention_sizes(context), context.integer("sequences"))));
}

void backward_attention(GradientBuilder& g, const Node& node) {
  const std::vector<TensorId> grads =
      g.add("attention_backward",
            {node.inputs[0], node.inputs[1], node.inputs[2], g.dense(g.gradient(node.outputs[0])),
             node.outputs[0], node.outputs[1]},
            node.attributes);
  for (size_t i = 0; i < 3; ++i) {
    if (g.requires_grad(node.inputs[i])) g.add_gradient(node.inputs[i], grads[i]);
  }
}

std::vector<TensorSpec> infer_attention_backward(const OpContext& context) {
  attention_sizes(context);
  std::vector<TensorSpec> specs;
  for (size_t i = 0; i < 3; ++i)
    specs.push_back({.shape = context.input(i).shape, .dtype = context.input(i).dtype});
  return specs;
}

/// Five products instead of two: the scores are recomputed, then come the gradients of v, scores, q
/// and k.
void work_attention_backward(const OpContext& context, std::vector<Kernel>& kernels) {
  Kernel kernel =
      attention_kernel(context, packed(attention_sizes(context), context.integer("sequences")));
  std::get<Attention>(kernel.shape).backward = true;
  kernel.flops = checked_multiply(kernel.flops, 5) / 2;
  for (size_t i = 3; i < context.input_count(); ++i)
    kernel.read_bytes = checked_add(kernel.read_bytes, tensor_bytes(context.input(i)));
  kernel.write_bytes = 0;
  for (size_t i = 0; i < 3; ++i)
    kernel.write_bytes = checked_add(kernel.write_bytes, tensor_bytes(context.output(i)));
  kernels.push_back(kernel);
}

// cached_attention: q [b, s, heads, d] against a cache [b, t, elements of a token].
AttentionSizes cached_sizes(const OpContext& context) {
  const Shape& q = context.input(0).shape;
  const Shape& cache = context.input(1).shape;
  if (q.size() != 4 || cache.size() != 3 || q[0] != cache[0])
    context.fail(fmt::format(
        "expected q [b, s, heads, d] and a cache [b, t, elements of a token], found {}, {}",
        format_shape(q), format_shape(cache)));
  const int64_t kv_heads = integer_or(context.node, "kv_heads", q[2]);
  const int64_t v_head_dim = integer_or(context.node, "v_head_dim", q[3]);
  const bool latent = context.integer("latent") != 0;
  const int64_t token_elements =
      latent ? q[3] : checked_multiply(kv_heads, checked_add(q[3], v_head_dim));
  if (cache[2] != token_elements)
    context.fail(fmt::format("expected {} elements per token in the cache, found {}",
                             token_elements, cache[2]));
  const AttentionSizes s{q[0],
                         q[1],
                         cache[1],
                         q[2],
                         kv_heads,
                         q[3],
                         v_head_dim,
                         token_elements,
                         context.input(0).dtype,
                         context.input(1).dtype,
                         latent};
  check_sizes(context, s);
  return s;
}

std::vector<TensorSpec> infer_cached_attention(const OpContext& context) {
  const AttentionSizes s = cached_sizes(context);
  return {{.shape = {s.batch, s.queries, s.heads, s.v_head_dim}, .dtype = s.dtype}};
}

void work_cached_attention(const OpContext& context, std::vector<Kernel>& kernels) {
  kernels.push_back(attention_kernel(context, cached_sizes(context)));
}

}  // namespace

std::vector<OpDef> attention_ops() {
  const AttributeDef causal = causal_attribute(), window = window_attribute();
  const AttributeDef sequences{.name = "sequences",
                               .doc = "of equal length in each row, which do not see each other",
                               .default_value = int64_t{1},
                               .min = 1};
  return {
      {.name = "attention",
       .doc =
           "fused attention of q [b, s, heads, d] to k [b, t, kv heads, d] and v; also gives the "
           "rows' log-sum-exp",
       .aten = "aten::_scaled_dot_product_flash_attention",
       .onnx = "Attention",
       .min_inputs = 3,
       .max_inputs = 3,
       .attributes = {causal, window, sequences},
       .infer = infer_attention,
       .work = work_attention,
       .backward = backward_attention,
       .autocast = AutocastClass::kLowPrecision,
       .sizes = attention_sizes_by_name(false),
       .operands = attention_operands,
       .random_sizes = random_attention(),
       .example = "q: bf16[2, 128, 8, 64] k: bf16[2, 128, 2, 64] v: bf16[2, 128, 2, 64]"},
      {.name = "attention_backward",
       .doc = "gradients of q, k and v of fused attention",
       .aten = "aten::_scaled_dot_product_flash_attention_backward",
       .onnx = "",
       .min_inputs = 6,
       .max_inputs = 6,
       .attributes = {causal, window, sequences},
       .infer = infer_attention_backward,
       .work = work_attention_backward,
       .sizes = attention_sizes_by_name(false),
       .operands = attention_backward_operands,
       .example =
           "q: bf16[2, 128, 8, 64] k: bf16[2, 128, 8, 64] v: bf16[2, 128, 8, 64] dy: bf16[2, "
           "128, 8, 64] y: bf16[2, 128, 8, 64] lse: fp32[2, 8, 128]"},
      {.name = "cached_attention",
       .doc = "fused attention of q [b, s, heads, d] to a cache [b, t, elements of a token]",
       .aten = "",
       .onnx = "",
       .min_inputs = 2,
       .max_inputs = 2,
       .attributes = {{.name = "kv_heads", .doc = "key and value heads; default: as many as q's"},
                      {.name = "v_head_dim",
                       .doc = "size of a value head; default: as q's",
                       .old_name = "value_size"},
                      flag_attribute("latent",
                                     "1: keys and values are parts of one latent vector (MLA)"),
                      causal,
                      window},
       .infer = infer_cached_attention,
       .work = work_cached_attention,
       .sizes = cached_attention_sizes_by_name(),
       .operands = cached_attention_operands,
       .random_sizes = random_cached_attention(),
       .example = "q: bf16[2, 1, 8, 64] cache: bf16[2, 512, 1024]"},
  };
}

}  // namespace tilecast
