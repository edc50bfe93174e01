// Attention over selected keys. DeepSeek Sparse Attention (V3.2; GLM-5): an indexer scores all keys
// with small heads in fp8, and each query attends to the best of them. DeepSeek-V4: keys are the
// last tokens and, further back, one key for several tokens, which an indexer may select too.
// Sources: the papers of these models; transformers 5.23, modeling_deepseek_v32.py and
// modeling_deepseek_v4.py.

#include <fmt/format.h>

#include <algorithm>

#include "base/checked.h"
#include "graph/dtype.h"
#include "ops/decompose.h"
#include "ops/gradient.h"
#include "ops/op_def.h"

namespace tilecast {
namespace {

/// Σ floor(n / ratio) over n = 1 … count, at most `most` each.
int64_t sum_of_entries(int64_t count, int64_t ratio, int64_t most) {
  const int64_t ramp = std::min(count, checked_multiply(most, ratio));
  const int64_t whole = (ramp + 1) / ratio, rest = (ramp + 1) % ratio;
  const int64_t ramp_sum =
      checked_add(checked_multiply(ratio, checked_multiply(whole, whole - 1) / 2),
                  checked_multiply(whole, rest));
  return checked_add(ramp_sum, checked_multiply(count - ramp, most));
}

/// (query, key) pairs of one head of one sequence: queries are the last of `keys` tokens, there is
/// a key for every `ratio` tokens, and a query sees at most `most` of those before it.
int64_t entry_pairs(int64_t queries, int64_t keys, int64_t ratio, int64_t most) {
  return sum_of_entries(keys, ratio, most) - sum_of_entries(keys - queries, ratio, most);
}

int64_t limit_or_all(int64_t limit, int64_t keys) { return limit > 0 ? limit : keys; }

void expect_all(const OpContext& context, bool fits, const char* what) {
  if (fits) return;
  std::string found;
  for (size_t i = 0; i < context.input_count(); ++i)
    found += (i == 0 ? "" : ", ") + format_shape(context.input(i).shape);
  context.fail(fmt::format("expected {}, found {}", what, found));
}

/// Keys or, where they are selected in blocks, blocks of them.
int64_t entries_of(const OpContext& context, int64_t keys) {
  return ceil_divide(keys, context.integer("block"));
}

// indexer: q [b, s, heads · d], k [b, t, d], weights [b, s, heads] → selected keys [b, s, top_k].
// With blocks there are no weights, and each head selects: [b, s · heads, top_k / block].
std::vector<TensorSpec> infer_indexer(const OpContext& context) {
  const Shape& q = context.input(0).shape;
  const Shape& k = context.input(1).shape;
  const int64_t heads = context.integer("heads"), block = context.integer("block");
  const bool weighted = block == 1;
  expect_all(context,
             q.size() == 3 && k.size() == 3 && q[2] == checked_multiply(heads, k[2]) &&
                 context.input_count() == (weighted ? 3U : 2U) &&
                 (!weighted || context.input(2).shape == Shape{q[0], q[1], heads}),
             "q [b, s, heads · d], k [b, t, d] and, of single keys, weights [b, s, heads]");
  if (!weighted)
    return {{.shape = {q[0], checked_multiply(q[1], heads),
                       std::min(ceil_divide(context.integer("top_k"), block),
                                entries_of(context, k[1]))},
             .dtype = DType::kInt32}};
  return {
      {.shape = {q[0], q[1], std::min(context.integer("top_k"), k[1])}, .dtype = DType::kInt32}};
}

// index_scores: q [b, s, heads, d], cache [b, t, d], weights [b, s, heads] → [b, s, t]; the largest
// of each block for each head: [b, s · heads, t / block].
std::vector<TensorSpec> infer_index_scores(const OpContext& context) {
  const Shape& q = context.input(0).shape;
  const Shape& k = context.input(1).shape;
  expect_all(context,
             q.size() == 4 && k.size() == 3 && q[0] == k[0] && q[3] == k[2] &&
                 context.input_count() == (context.integer("block") == 1 ? 3U : 2U) &&
                 (context.input_count() == 2 || context.input(2).shape == Shape{q[0], q[1], q[2]}),
             "q [b, s, heads, d], keys [b, t, d] and, of single keys, weights [b, s, heads]");
  if (context.integer("block") > 1)
    return {{.shape = {q[0], q[1] * q[2], entries_of(context, k[1])}, .dtype = DType::kFp32}};
  return {{.shape = {q[0], q[1], k[1]}, .dtype = DType::kFp32}};
}

/// Σ over heads of weight · relu(q · k), one kernel (DeepGEMM's fp8_mqa_logits).
void work_index_scores(const OpContext& context, std::vector<Kernel>& kernels) {
  const Shape& q = context.input(0).shape;
  const Tensor& keys = context.input(1);
  const int64_t ratio = context.integer("ratio");
  const int64_t tokens = std::max(checked_multiply(keys.shape[1], ratio), q[1]);
  const int64_t pairs = entry_pairs(q[1], tokens, ratio, keys.shape[1]);
  Kernel kernel{.shape = Attention{.batch = q[0],
                                   .queries = q[1],
                                   .keys = keys.shape[1],
                                   .head_dim = q[3],
                                   .v_head_dim = 1,
                                   .heads = q[2],
                                   .kv_heads = 1,
                                   .causal = true,
                                   .latent = true,
                                   .kv_dtype = keys.dtype},
                .dtype = context.input(0).dtype};
  kernel.flops = checked_product({2, q[3] + 1, pairs, q[2], q[0]});
  add_traffic(kernel, context);
  kernels.push_back(kernel);
}

std::vector<TensorSpec> infer_token_top_k(const OpContext& context) {
  Shape shape = context.input(0).shape;
  if (shape.empty()) context.fail("expected rows of scores, found a scalar");
  shape.back() = std::min(shape.back(), context.integer("top_k"));
  return {{.shape = std::move(shape), .dtype = DType::kInt32}};
}

void work_token_top_k(const OpContext& context, std::vector<Kernel>& kernels) {
  const Shape& shape = context.input(0).shape;
  Kernel kernel{.shape = Stream{.rows = element_count(Shape(shape.begin(), shape.end() - 1)),
                                .elements = shape.back()},
                .dtype = context.input(0).dtype};
  kernel.flops = element_count(shape);  // one comparison each
  add_traffic(kernel, context);
  kernels.push_back(kernel);
}

// sparse_attention: q [b, s, heads, d] against a cache [b, entries, d] of one vector per key.
std::vector<TensorSpec> infer_sparse_attention(const OpContext& context) {
  const Shape& q = context.input(0).shape;
  const Shape& cache = context.input(1).shape;
  expect_all(context, q.size() == 4 && cache.size() == 3 && q[0] == cache[0] && q[3] == cache[2],
             "q [b, s, heads, d] and a cache [b, entries, d]");
  if (q[1] > context.integer("keys"))
    context.fail(
        fmt::format("causal attention of {} queries to {} keys", q[1], context.integer("keys")));
  return {{.shape = {q[0], q[1], q[2], integer_or(context.node, "v_head_dim", q[3])},
           .dtype = context.input(0).dtype}};
}

void work_sparse_attention(const OpContext& context, std::vector<Kernel>& kernels) {
  const Shape& q = context.input(0).shape;
  const Tensor& cache = context.input(1);
  const int64_t keys = context.integer("keys"), window = context.integer("window");
  const int64_t ratio = context.integer("ratio"), top_k = context.integer("top_k");
  int64_t pairs = window > 0 ? entry_pairs(q[1], keys, 1, window) : 0;
  int64_t seen = window > 0 ? std::min(keys, window + q[1] - 1) : 0;  // keys that are read
  int64_t most = window;
  if (ratio > 0) {
    const int64_t far = entry_pairs(q[1], keys, ratio, limit_or_all(top_k, keys));
    pairs = checked_add(pairs, far);
    seen = checked_add(seen, std::min(keys / ratio, far));
    most = checked_add(most, limit_or_all(top_k, keys / ratio));
  }
  const int64_t v_head_dim = context.output(0).shape[3];
  Kernel kernel{.shape = Attention{.batch = q[0],
                                   .queries = q[1],
                                   .keys = keys,
                                   .head_dim = q[3],
                                   .v_head_dim = v_head_dim,
                                   .heads = q[2],
                                   .kv_heads = 1,
                                   .window = most,
                                   .causal = true,
                                   .latent = true,
                                   .kv_dtype = cache.dtype},
                .dtype = context.input(0).dtype};
  kernel.flops = checked_product({2, q[3] + v_head_dim, pairs, q[2], q[0]});
  kernel.read_bytes =
      checked_add(tensor_bytes(context.input(0)),
                  checked_product({q[0], seen, q[3], dtype_bits(cache.dtype)}) / kBitsPerByte);
  kernel.write_bytes = tensor_bytes(context.output(0));
  kernels.push_back(kernel);
}

// compressed_attention: q [b, heads, s, d], kv [b, s, d], optional compressed keys [b, c, d].
std::vector<TensorSpec> infer_compressed_attention(const OpContext& context) {
  const Shape& q = context.input(0).shape;
  const Shape& kv = context.input(1).shape;
  expect_all(context,
             q.size() == 4 && kv.size() == 3 && kv[2] == q[3] &&
                 (context.input_count() < 3 || context.input(2).shape.back() == q[3]),
             "q [b, heads, s, d], kv [b, s, d] and compressed keys [b, c, d]");
  return {{.shape = {q[0], q[2], q[1] * q[3]}, .dtype = context.input(0).dtype}};
}

std::vector<SizeDef> sparse_sizes() {
  return {{.name = "batch", .doc = "sequences"},
          {.name = "queries", .doc = "new tokens per sequence", .other_names = {"m"}},
          {.name = "keys", .doc = "tokens per sequence", .other_names = {"n"}},
          {.name = "head_dim", .doc = "elements of a key", .other_names = {"k"}},
          {.name = "heads", .doc = "query heads", .default_value = int64_t{64}},
          {.name = "top_k", .doc = "keys that a query selects", .default_value = int64_t{2048}}};
}

Operands sparse_operands(GraphBuilder& b, const GivenSizes& s) {
  return {{b.input("q", {s["batch"], s["queries"], s["heads"], s["head_dim"]}, s.dtype()),
           b.input("cache", {s["batch"], s["keys"], s["head_dim"]}, s.dtype())},
          {{"keys", s["keys"]}, {"top_k", s["top_k"]}}};
}

Operands token_index_operands(GraphBuilder& b, const GivenSizes& s) {
  Operands operands = sparse_operands(b, s);
  operands.inputs.push_back(b.input("w", {s["batch"], s["queries"], s["heads"]}, s.dtype()));
  operands.attributes.clear();
  return operands;
}

AttributeDef number(std::string_view name, std::string_view doc, int64_t fallback, int64_t min) {
  return {.name = name, .doc = doc, .default_value = fallback, .min = min};
}

}  // namespace

std::vector<OpDef> sparse_attention_ops() {  // NOLINT(readability-function-size): a table
  const AttributeDef ratio = number("ratio", "tokens per key", 1, 1);
  const AttributeDef block = number("block", "keys that are selected together", 1, 1);
  const AttributeDef top_k = number("top_k", "keys that a query selects", 2048, 1);
  const AttributeDef selected = number("top_k", "keys that a query selects; 0: all", 0, 0);
  const AttributeDef window = number("window", "last tokens that a query sees; 0: none", 0, 0);
  return {
      {.name = "indexer",
       .doc = "selects keys for each query by the scores of small heads",
       .min_inputs = 2,
       .max_inputs = 3,
       .attributes = {number("heads", "of the indexer", 1, 1), top_k, ratio, block},
       .infer = infer_indexer,
       .decompose = decompose_indexer,
       .example = "q: bf16[2, 128, 256] k: bf16[2, 128, 64] w: bf16[2, 128, 4] {heads=4}"},
      {.name = "index_scores",
       .doc = "scores of an indexer: the sum over heads of weight times relu(q k); of blocks, each "
              "head's largest q k",
       .min_inputs = 2,
       .max_inputs = 3,
       .attributes = {ratio, block},
       .infer = infer_index_scores,
       .work = work_index_scores,
       .sizes = sparse_sizes(),
       .operands = token_index_operands,
       .example = "q: bf16[2, 1, 4, 64] k: bf16[2, 128, 64] w: bf16[2, 1, 4]"},
      {.name = "top_keys",
       .doc = "the places of the largest numbers of each row",
       .aten = "aten::topk",
       .attributes = {top_k},
       .infer = infer_token_top_k,
       .work = work_token_top_k,
       .example = "x: fp32[64, 256] {top_k=8}"},
      {.name = "sparse_attention",
       .doc = "attention of q [b, s, heads, d] to the last tokens and to selected keys of a cache "
              "[b, entries, d], whose vectors are keys and values",
       .min_inputs = 2,
       .max_inputs = 2,
       .attributes = {number("keys", "tokens per sequence", 1, 1),
                      window,
                      number("ratio", "tokens per key further back; 0: none further back", 1, 0),
                      selected,
                      {.name = "v_head_dim", .doc = "size of a value; default: as q's"}},
       .infer = infer_sparse_attention,
       .work = work_sparse_attention,
       .backward = refuse_gradient,
       .sizes = sparse_sizes(),
       .operands = sparse_operands,
       .example = "q: bf16[2, 1, 8, 64] cache: bf16[2, 512, 64] {keys=512, top_k=128}"},
      {.name = "compressed_attention",
       .doc =
           "attention of q [b, heads, s, d] to the last tokens of kv [b, s, d] and to compressed "
           "keys [b, c, d]",
       .min_inputs = 2,
       .max_inputs = 3,
       .attributes = {window, number("ratio", "tokens per compressed key; 0: none", 0, 0),
                      selected},
       .infer = infer_compressed_attention,
       .decompose = decompose_compressed_attention,
       .shard = shard_heads,
       .example = "q: bf16[2, 8, 128, 64] kv: bf16[2, 128, 64] c: bf16[2, 32, 64] {window=16, "
                  "ratio=4}"},
  };
}

}  // namespace tilecast
