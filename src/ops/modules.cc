// Modules that no single kernel implements: importers build models from them, before it is decided
// whether PyTorch or serving software runs the model. Modules that may also be a single kernel (a
// norm, an activation) are declared with the kernels.

#include <fmt/format.h>

#include "base/checked.h"
#include "ops/decompose.h"
#include "ops/op_def.h"
#include "ops/sharding.h"

namespace tilecast {
namespace {

[[noreturn]] void expected(const OpContext& context, std::string_view what) {
  std::string found;
  for (size_t i = 0; i < context.input_count(); ++i)
    found += (i == 0 ? "" : ", ") + format_shape(context.input(i).shape);
  context.fail(fmt::format("expected {}, found {}", what, found));
}

std::vector<TensorSpec> infer_split_heads(const OpContext& context) {
  const Shape& x = context.input(0).shape;
  const int64_t heads = context.integer("heads");
  const bool flat = x.size() == 3 && x[2] % heads == 0;
  if (!flat && (x.size() != 4 || x[2] != heads))
    expected(context, fmt::format("[b, s, {} heads · size] or [b, s, heads, size]", heads));
  const int64_t size = flat ? x[2] / heads : x[3];
  return {{.shape = {x[0], heads, x[1], size},
           .dtype = context.input(0).dtype,
           .contiguous = false,
           .view = true}};
}

std::vector<TensorSpec> infer_causal_mask(const OpContext& context) {
  const Tensor& x = context.input(0);
  if (x.shape.size() != 3) expected(context, "activations [b, s, hidden_dim]");
  return {{.shape = {x.shape[0], 1, x.shape[1], x.shape[1]}, .dtype = x.dtype}};
}

std::vector<TensorSpec> infer_rotary_table(const OpContext& context) {
  const Tensor& x = context.input(0);
  if (x.shape.size() != 3) expected(context, "activations [b, s, hidden_dim]");
  const TensorSpec wave{.shape = {1, 1, x.shape[1], context.integer("rope_dim")}, .dtype = x.dtype};
  return {wave, wave};
}

std::vector<TensorSpec> infer_sdpa(const OpContext& context) {
  const Shape& q = context.input(0).shape;
  const Shape& k = context.input(1).shape;
  const Shape& v = context.input(2).shape;
  if (q.size() != 4 || k.size() != 4 || v.size() != 4 || q[0] != k[0] || k[0] != v[0] ||
      k[1] != v[1] || k[2] != v[2] || q[3] != k[3] || k[1] < 1 || q[1] % k[1] != 0)
    expected(context, "q [b, heads, s, d], k [b, kv heads, t, d], v [b, kv heads, t, e]");
  return {{.shape = {q[0], q[2], checked_multiply(q[1], v[3])}, .dtype = context.input(0).dtype}};
}

std::vector<TensorSpec> infer_latent_attention(const OpContext& context) {
  const Shape& q = context.input(0).shape;
  const Shape& latent = context.input(1).shape;
  const Shape& both = context.input(2).shape;
  const Shape& kv_b = context.input(3).shape;
  const int64_t rope_dim = context.integer("rope_dim");
  if (q.size() != 4 || latent.size() != 3 || both.size() != 3 || kv_b.size() != 2 ||
      kv_b[1] != latent[2] || both[2] != latent[2] + rope_dim || q[3] <= rope_dim ||
      kv_b[0] % q[1] != 0 || kv_b[0] / q[1] <= q[3] - rope_dim)
    expected(context,
             "q [b, heads, s, nope + rope], latent [b, s, rank], latent and rope part [b, s, rank "
             "+ rope], kv_b [heads · (nope + v), rank]");
  const int64_t v_head_dim = kv_b[0] / q[1] - (q[3] - rope_dim);
  return {
      {.shape = {q[0], q[2], checked_multiply(q[1], v_head_dim)}, .dtype = context.input(0).dtype}};
}

}  // namespace

std::vector<OpDef> module_ops() {  // NOLINT(readability-function-size): a table
  const std::vector<AttributeDef> attention = {
      causal_attribute(),
      window_attribute(),
      AttributeDef{
          .name = "scale",
          .doc = "how eager code scales scores: mul, div, or none if queries are scaled instead",
          .type = AttributeType::kText,
          .default_value = std::string("mul")},
      AttributeDef{.name = "softcap",
                   .doc = "1: scores are soft-capped, c tanh(x / c)",
                   .old_name = "cap",
                   .default_value = int64_t{0},
                   .max = 1},
      flag_attribute("dropout", "1: dropout of the weights in training"),
      flag_attribute("softmax_fp32",
                     "1: eager code computes the softmax of half precision in fp32"),
      flag_attribute("stored_mask", "1: a stored buffer is the mask (GPT-2)"),
      flag_attribute("learned_bias",
                     "1: the mask has a gradient, so that PyTorch has no fused kernel in training"),
      flag_attribute("joined_heads",
                     "1: queries are joined of rotated and other parts, so that fused attention's "
                     "result is in the order of heads"),
      flag_attribute(
          "equal_heads",
          "1: eager code asks for no shared key heads, of which PyTorch then has no fused "
          "kernel"),
      flag_attribute("clamped", "1: eager code keeps scores above the lowest number (XGLM)"),
      flag_attribute("fp32_scores", "1: eager attention multiplies queries and keys in fp32"),
      flag_attribute("holds_fp32", "1: variables hold those copies to the end of attention"),
      flag_attribute("masks_in_call",
                     "1: the mask is added in the call of the softmax, while a variable holds the "
                     "scores"),
      flag_attribute(
          "returns_weights",
          "1: eager code returns the weights of attention, which live until its module returns"),
      flag_attribute("ones_mask", "1: the mask is all ones; today's transformers leaves it out"),
      flag_attribute("sinks",
                     "1: attention sinks, the last input has a number per head that is added to "
                     "the sum of the softmax")};
  std::vector<OpDef> ops = {
      {.name = "split_heads",
       .doc = "[b, s, heads · size] or [b, s, heads, size] as [b, heads, s, size]",
       .attributes = {count_attribute("heads", "how many"),
                      flag_attribute("copied", "1: eager code copies heads to contiguous memory")},
       .infer = infer_split_heads,
       .decompose = decompose_split_heads,
       .shard = shard_split_heads,
       .example = "x: bf16[2, 128, 512] {heads=8}"},
      {.name = "causal_mask",
       .doc = "causal mask for activations [b, s, hidden_dim]",
       .attributes = {flag_attribute("padding", "1: combined with a padding mask")},
       .infer = infer_causal_mask,
       .decompose = decompose_causal_mask,
       .shard = shard_sizes,
       .example = "x: bf16[2, 128, 512]"},
      {.name = "rotary_table",
       .doc = "cosines and sines of rotary positions for activations [b, s, hidden_dim]",
       .attributes = {AttributeDef{.name = "rope_dim",
                                   .doc = "rotated elements per head",
                                   .old_name = "size",
                                   .required = true,
                                   .min = 1}},
       .infer = infer_rotary_table,
       .decompose = decompose_rotary_table,
       .shard = shard_sizes,
       .example = "x: bf16[2, 128, 512] {rope_dim=64}"},
      {.name = "apply_rotary",
       .doc = "rotary position embedding of x [b, heads, s, size] by cosines and sines",
       .min_inputs = 3,
       .max_inputs = 3,
       .attributes = {flag_attribute("scaled",
                                     "1: cosines and sines are scaled (YaRN), which Transformer "
                                     "Engine's kernel does not do")},
       .infer = infer_same,
       .decompose = decompose_apply_rotary,
       .shard = shard_like_first,
       .example = "x: bf16[2, 8, 128, 64] cos: bf16[1, 1, 128, 64] sin: bf16[1, 1, 128, 64]"},
      {.name = "sdpa",
       .doc = "scaled dot-product attention of q [b, heads, s, d] to k [b, kv heads, t, d] and v, "
              "optional mask and sinks: [b, s, heads · e]",
       .aten = "aten::scaled_dot_product_attention",
       .min_inputs = 3,
       .max_inputs = 5,
       .attributes = attention,
       .infer = infer_sdpa,
       .decompose = decompose_sdpa,
       .shard = shard_heads,
       .example = "q: bf16[2, 8, 128, 64] k: bf16[2, 2, 128, 64] v: bf16[2, 2, 128, 64]"},
      {.name = "latent_attention",
       .doc = "attention of q [b, heads, s, nope + rope] to keys and values expanded from a latent "
              "vector (MLA): latent, latent with the rope part, kv_b, cos, sin, mask",
       .min_inputs = 7,
       .max_inputs = 7,
       .attributes = attention,
       .infer = infer_latent_attention,
       .decompose = decompose_latent_attention,
       .shard = shard_latent,
       .example = "q: bf16[2, 8, 128, 48] latent: bf16[2, 128, 64] both: bf16[2, 128, 80] w: "
                  "bf16[512, 64] cos: bf16[1, 1, 128, 16] sin: bf16[1, 1, 128, 16] mask: bf16[1, "
                  "1, 128, 128] {rope_dim=16}"}};
  ops.back().attributes.push_back({.name = "top_k",
                                   .doc = "sparse attention: keys that a query sees; 0: all",
                                   .default_value = int64_t{0}});
  ops.back().attributes.push_back({.name = "rope_dim",
                                   .doc = "rotated elements per head",
                                   .old_name = "rotary",
                                   .required = true,
                                   .min = 1});
  return ops;
}

}  // namespace tilecast
