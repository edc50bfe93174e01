#include <fmt/format.h>

#include <array>

#include "measurements/aiconfigurator.h"

// DeepSeek's latent attention (MLA): aiconfigurator's tables mla_prefill, mla_decode and mla_bmm.
// They state the heads of a rank only; the other sizes are DeepSeek-V2's and V3's (config.json:
// kv_lora_rank 512, qk_rope_head_dim 64, qk_nope_head_dim and v_head_dim 128).
//
// vLLM's rows of prefill and decode are left out. They were timed without a CUDA graph: the
// shortest take 0.11 to 0.31 ms, which is the host's time, and 0.01 to 0.02 ms with other software.
// And they hold other kernels beside attention: new prompts of 64 tokens take 3 to 4 times as long
// as with TensorRT-LLM, as with the expansion of the latent vectors.

namespace tilecast {
namespace {

constexpr int64_t kRank = 512, kRotary = 64, kNope = 128, kValue = 128;

/// Attention to the latent vectors as a single key head, with queries that were carried into the
/// latent space (weight absorption).
SizeList absorbed(int64_t queries, int64_t keys) {
  return {{"queries", queries},  {"keys", keys}, {"head_dim", kRank + kRotary},
          {"v_head_dim", kRank}, {"latent", 1},  {"causal", 1}};
}

/// Attention to keys and values of each head, as expanded from the latent vectors of a new prompt.
SizeList expanded(int64_t length) {
  return {{"queries", length},
          {"keys", length},
          {"head_dim", kNope + kRotary},
          {"v_head_dim", kValue},
          {"causal", 1}};
}

void add_attention(AiTable& table, size_t row, const char* op, SizeList sizes, RowFacts facts) {
  if (facts.software == software_of("vllm"))
    return table.skip("vLLM's latent attention was timed with other kernels and its host");
  const auto p = table.precision(row, "dtype"), kv = table.precision(row, "kv_dtype");
  if (!p || !kv) return;
  sizes.push_back({"batch", table.size(row, "batch")});
  sizes.push_back({"heads", table.size(row, "num_heads")});
  sizes.push_back({"kv_dtype", compute_dtype(kv->scheme, kv->dtype)});
  facts.caches = Caches::kWarm;  // replays with the same operands
  facts.label_note = " (latent)";
  table.add(row, op, compute_dtype(p->scheme, p->dtype), sizes, std::move(facts));
}

/// Whether new prompts were measured with absorbed weights. The tables do not state it, but with
/// these kernels long prompts take 3.0 to 3.3 times as long as with TensorRT-LLM on H100 and H200;
/// absorbed, each query and key takes 3.4 times the FLOPs: 576 + 512 instead of 192 + 128 elements.
/// On L40S short prompts reach 77 % of the DRAM bandwidth if they are absorbed, else 45 %.
bool absorbs_prompts(const AiTable& table, size_t row, Software software) {
  const std::string& kernel = table.text(row, "kernel");
  return software == software_of("sglang") && (kernel == "flash_attention" || kernel == "triton");
}

void read_latent_prefill(AiTable& table, size_t row, RowFacts facts) {
  const int64_t length = table.size(row, "seq_len");
  if (absorbs_prompts(table, row, facts.software))
    return add_attention(table, row, "cached_attention", absorbed(length, length),
                         std::move(facts));
  add_attention(table, row, "attention", expanded(length), std::move(facts));
}

/// kv_len counts the cached tokens; the new token attends to itself too.
void read_latent_decode(AiTable& table, size_t row, RowFacts facts) {
  add_attention(table, row, "cached_attention", absorbed(1, table.size(row, "kv_len") + 1),
                std::move(facts));
}

/// The products of each head that carry queries into the latent space and values out of it. In FP8
/// they quantize their input, per tensor in SGLang, in blocks in TensorRT-LLM, except where the
/// kernel's name says that weights are converted back to bf16.
void read_latent_product(AiTable& table, size_t row, RowFacts facts) {
  const auto p = table.precision(row, "dtype");
  if (!p) return;
  QuantScheme scheme = p->scheme;
  if (scheme == QuantScheme::kFp8 && facts.software == software_of("trtllm"))
    scheme = QuantScheme::kFp8Block;
  if (table.text(row, "kernel").ends_with("_dequant_bf16")) scheme = QuantScheme::kNone;
  const std::string& op = table.text(row, "op");
  const bool into = op == "mla_gen_pre";
  if (!into && op != "mla_gen_post")
    return table.skip(fmt::format("operator '{}' is not forecast", op));
  const SizeList sizes = {{"batch", table.size(row, "num_heads")},
                          {"m", table.size(row, "num_tokens")},
                          {"n", into ? kRank : kValue},
                          {"k", into ? kNope : kRank},
                          {"scheme", scheme}};
  // Replays with the same weights, at up to 2.8 times the DRAM bandwidth where they fit into L2.
  facts.caches = Caches::kWarm;
  facts.label_note = " (warm L2)";
  table.add(row, "matmul", p->dtype, sizes, std::move(facts));
}

}  // namespace

std::vector<AiKind> latent_attention_tables() {
  const std::vector<std::string_view> heads = {"batch", "num_heads"},
                                      dtypes = {"dtype", "kv_dtype"};
  return {{{"dtype", "op", "num_tokens", "num_heads", "kernel"}, read_latent_product},
          {{"dtype", "kv_dtype", "batch", "kv_len", "num_heads", "kernel"},
           read_latent_decode,
           SeriesColumns{"kv_len", heads, dtypes}},
          {{"dtype", "kv_dtype", "batch", "seq_len", "num_heads", "kernel"},
           read_latent_prefill,
           SeriesColumns{"seq_len", heads, dtypes}}};
}

}  // namespace tilecast
