#include "ops/attention_sizes.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/checked.h"
#include "base/rng.h"
#include "ops/builder.h"
#include "ops/op_def.h"

namespace tilecast {
namespace {

/// A size that is 0 or not given means the other one.
int64_t size_or(const GivenSizes& s, std::string_view name, int64_t other) {
  const int64_t given = s.value_or(name, other);
  return given == 0 ? other : given;
}

int64_t kv_heads_of(const GivenSizes& s) {
  const int64_t heads = s["heads"], kv_heads = size_or(s, "kv_heads", heads);
  if (heads % kv_heads != 0)
    s.fail(fmt::format("{} kv_heads do not divide {} heads", kv_heads, heads));
  return kv_heads;
}

int64_t v_head_dim_of(const GivenSizes& s) { return size_or(s, "v_head_dim", s["head_dim"]); }

/// Draws the numbers of heads and the head size.
void draw_heads(Rng& rng, SizeList& sizes) {
  constexpr std::array<int64_t, 4> kHeadSizes = {64, 128, 192, 256};
  sizes.push_back({"head_dim", kHeadSizes[rng.below(kHeadSizes.size())]});
  const int64_t kv_heads = rng.log_uniform(5);
  sizes.push_back({"kv_heads", kv_heads});
  sizes.push_back({"heads", kv_heads * (int64_t{1} << rng.below(5))});
}

void draw_attention_window(Rng& rng, SizeList& sizes) {
  if (rng.below(4) == 0) sizes.push_back({"window", int64_t{128} << rng.below(7)});
}

/// A prompt, with one more key than queries.
void draw_attention(Rng& rng, SizeList& sizes) {
  draw_heads(rng, sizes);
  sizes.push_back({"causal", static_cast<int64_t>(rng.below(2) == 0)});
  const int64_t queries = integer_in(sizes, "keys");
  sizes.push_back({"queries", queries});
  integer_in(sizes, "keys") += 1;
  draw_attention_window(rng, sizes);
}

/// Causal attention needs at least as many keys as queries.
void fit_attention(SizeList& sizes) {
  int64_t& keys = integer_in(sizes, "keys");
  if (integer_in(sizes, "causal") != 0) keys = std::max(keys, integer_in(sizes, "queries"));
}

/// One query per sequence.
void draw_cached_attention(Rng& rng, SizeList& sizes) {
  draw_heads(rng, sizes);
  integer_in(sizes, "keys") += 1;
  draw_attention_window(rng, sizes);
}

}  // namespace

std::vector<SizeDef> attention_sizes_by_name(bool decodes) {
  constexpr int kDrawnBatch = 7, kDrawnKeys = 14;
  return {{.name = "batch", .doc = "sequences", .drawn_bits = kDrawnBatch, .grows = true},
          {.name = "queries", .doc = "of a sequence", .other_names = {"m"}, .grows = !decodes},
          {.name = "keys",
           .doc = "keys per sequence, the queries' own included",
           .other_names = {"n"},
           .drawn_bits = kDrawnKeys,
           .grows = true},
          {.name = "heads", .doc = "of queries", .default_value = int64_t{8}},
          {.name = "kv_heads",
           .doc = "heads of keys and values",
           .default_value = std::nullopt,
           .default_rule = "as many as heads",
           .min = 0},
          {.name = "head_dim", .doc = "elements per head", .other_names = {"k", "head_size"}},
          {.name = "v_head_dim",
           .doc = "elements of a value per head",
           .default_value = std::nullopt,
           .default_rule = "as head_dim",
           .min = 0},
          {.name = "window",
           .doc = "maximum number of keys per query (sliding window); 0: all",
           .default_value = int64_t{0},
           .min = 0},
          switch_size("causal", "causal mask: a query attends to no later key"),
          kv_dtype_size("dtype of keys and values", "as the queries")};
}

std::vector<SizeDef> cached_attention_sizes_by_name() {
  std::vector<SizeDef> sizes = attention_sizes_by_name(true);
  sizes.push_back(switch_size("latent",
                              "values are parts of the keys: one vector of head_dim elements per "
                              "token in the cache, for all heads (MLA)"));
  return sizes;
}

Operands attention_operands(GraphBuilder& b, const GivenSizes& s) {
  const int64_t kv_heads = kv_heads_of(s);
  const DType kv_dtype = s.dtype_or("kv_dtype", s.dtype());
  return {{b.input("q", {s["batch"], s["queries"], s["heads"], s["head_dim"]}, s.dtype()),
           b.input("k", {s["batch"], s["keys"], kv_heads, s["head_dim"]}, kv_dtype),
           b.input("v", {s["batch"], s["keys"], kv_heads, v_head_dim_of(s)}, kv_dtype)},
          {{"causal", s["causal"]}, {"window", s["window"]}}};
}

Operands attention_backward_operands(GraphBuilder& b, const GivenSizes& s) {
  Operands operands = attention_operands(b, s);
  const Shape output = {s["batch"], s["queries"], s["heads"], v_head_dim_of(s)};
  for (const char* name : {"dy", "y"}) operands.inputs.push_back(b.input(name, output, s.dtype()));
  operands.inputs.push_back(b.input("lse", {s["batch"], s["heads"], s["queries"]}, DType::kFp32));
  return operands;
}

Operands cached_attention_operands(GraphBuilder& b, const GivenSizes& s) {
  const bool latent = s["latent"] != 0;
  const int64_t head_dim = s["head_dim"], v_head_dim = v_head_dim_of(s);
  const int64_t kv_heads = latent ? size_or(s, "kv_heads", 1) : kv_heads_of(s);
  if (latent && (kv_heads != 1 || v_head_dim > head_dim))
    s.fail(fmt::format(
        "a latent cache has 1 kv_heads and a v_head_dim of at most head_dim, found {} and {} of {}",
        kv_heads, v_head_dim, head_dim));
  const int64_t token_elements =
      latent ? head_dim : checked_multiply(kv_heads, checked_add(head_dim, v_head_dim));
  return {{b.input("q", {s["batch"], s["queries"], s["heads"], head_dim}, s.dtype()),
           b.input("cache", {s["batch"], s["keys"], token_elements},
                   s.dtype_or("kv_dtype", s.dtype()))},
          {{"kv_heads", kv_heads},
           {"v_head_dim", v_head_dim},
           {"latent", s["latent"]},
           {"causal", s["causal"]},
           {"window", s["window"]}}};
}

RandomSizes random_attention() { return {draw_attention, fit_attention, true}; }

RandomSizes random_cached_attention() {
  return {.draw = draw_cached_attention, .in_training = true};
}

}  // namespace tilecast
