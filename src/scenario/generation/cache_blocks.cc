// Sources, from memory: vLLM 0.10 to 0.14, v1/core/kv_cache_utils.py (get_kv_cache_groups,
// get_kv_cache_config_from_groups, get_max_concurrency_for_kv_cache_config),
// v1/kv_cache_interface.py (max_memory_usage_bytes), model_executor/models/config.py (block size of
// hybrid models); SGLang 0.5, model_executor/model_runner.py (profile_max_num_token,
// set_num_token_hybrid, swa_full_tokens_ratio 0.8, mamba_full_memory_ratio 0.9); TensorRT-LLM 1.0,
// _torch/pyexecutor/resource_manager.py. Comparing the numbers with a server's log would settle
// what differs. Not modelled: speculative tokens, context parallelism, vLLM's padding of draft
// layers, FlashMLA's fp8 layout.

#include "scenario/generation/cache_blocks.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/check.h"
#include "base/checked.h"
#include "graph/dtype.h"
#include "software/software.h"

namespace tilecast {
namespace {

/// Layers that store the same.
struct Kind {
  int64_t layers = 0;
  double token_bytes = 0;  ///< of one layer
  int64_t window = 0;
  int64_t state_bytes = 0;  ///< of one layer; > 0: a recurrent layer
};

std::vector<Kind> kinds_of(const Decoder& decoder, const CacheRequest& r) {
  std::vector<Kind> kinds;
  for (const Decoder::Cache& cache : decoder.caches) {
    const int64_t share = std::min(r.ranks, cache.kv_heads);
    const auto bits = static_cast<double>(dtype_bits(cache.dtype.value_or(r.kv_dtype)));
    kinds.push_back({.layers = cache.layers,
                     .token_bytes = static_cast<double>(cache.dim / share) * bits / kBitsPerByte /
                                    static_cast<double>(cache.ratio),
                     .window = cache.window});
  }
  if (decoder.recurrent_layers > 0)
    kinds.push_back(
        {.layers = decoder.recurrent_layers,
         .state_bytes = ceil_divide(decoder.state_bytes, decoder.recurrent_layers * r.ranks)});
  return kinds;
}

int64_t page_bytes(const Kind& kind, int64_t block_tokens) {
  return kind.state_bytes > 0
             ? kind.state_bytes
             : std::max<int64_t>(
                   1, static_cast<int64_t>(kind.token_bytes * static_cast<double>(block_tokens)));
}

/// Blocks of one sequence of max_model_len in one group of layers.
int64_t blocks_of_longest(const Kind& kind, const CacheRequest& r, int64_t block_tokens) {
  if (kind.state_bytes > 0) return 1;
  if (kind.window == 0) return ceil_divide(r.max_model_len, block_tokens);
  // Tokens of a step are stored before those outside of the window are freed, and the window need
  // not start with a block.
  const int64_t tokens = std::min(kind.window - 1 + r.max_num_batched_tokens, r.max_model_len);
  return ceil_divide(tokens, block_tokens) + 1;
}

CacheBlocks result(const CacheRequest& r, int64_t block_tokens, int64_t bytes_of_block,
                   int64_t groups, int64_t blocks_of_one) {
  CacheBlocks result{.block_tokens = block_tokens};
  result.blocks = r.cache_bytes / std::max<int64_t>(1, bytes_of_block);
  result.tokens = checked_multiply(result.blocks / std::max<int64_t>(1, groups), block_tokens);
  result.concurrency =
      static_cast<double>(result.blocks) / static_cast<double>(std::max<int64_t>(1, blocks_of_one));
  return result;
}

/// vLLM's hybrid manager: layers of a kind form groups of equal size, and a block holds the tokens
/// of one group. All pages have the size of the largest.
CacheBlocks vllm_hybrid(const std::vector<Kind>& kinds, const CacheRequest& r) {
  constexpr int64_t kAligned = 16;
  int64_t block = r.block_tokens, state = 0;
  double widest = 0;
  for (const Kind& kind : kinds) {
    state = std::max(state, kind.state_bytes);
    widest = std::max(widest, kind.token_bytes);
  }
  // Blocks of attention grow until they are as large as a state.
  if (state > 0 && widest > 0) {
    const double tokens = static_cast<double>(state) / widest / static_cast<double>(kAligned);
    block = std::max(block, kAligned * static_cast<int64_t>(std::ceil(tokens)));
  }
  int64_t page = 0, fewest = kinds[0].layers, most = 0;
  for (const Kind& kind : kinds) {
    page = std::max(page, page_bytes(kind, block));
    fewest = std::min(fewest, kind.layers);
    most = std::max(most, kind.layers);
  }
  // Nearly equal numbers of layers: one group of each kind, padded.
  constexpr double kNearlyEqual = 1.25;
  const int64_t size =
      static_cast<double>(most) < kNearlyEqual * static_cast<double>(fewest) ? most : fewest;
  int64_t groups = 0, blocks_of_one = 0;
  for (const Kind& kind : kinds) {
    const int64_t count = ceil_divide(kind.layers, size);
    // Smaller pages hold more tokens.
    const int64_t own = page_bytes(kind, block);
    const int64_t tokens = page % own == 0 ? block * (page / own) : block;
    groups += count;
    blocks_of_one =
        checked_add(blocks_of_one, checked_multiply(count, blocks_of_longest(kind, r, tokens)));
  }
  return result(r, block, checked_multiply(page, size), groups, blocks_of_one);
}

CacheBlocks vllm(const std::vector<Kind>& kinds, const CacheRequest& r) {
  const bool plain = std::all_of(kinds.begin(), kinds.end(), [](const Kind& kind) {
    return kind.window == 0 && kind.state_bytes == 0;
  });
  if (!plain && kinds.size() > 1) return vllm_hybrid(kinds, r);
  int64_t bytes = 0;
  for (const Kind& kind : kinds)
    bytes = checked_add(bytes, checked_multiply(kind.layers, page_bytes(kind, r.block_tokens)));
  return result(r, r.block_tokens, bytes, 1, blocks_of_longest(kinds[0], r, r.block_tokens));
}

/// Pools of tokens: layers with a window get 0.8 of the tokens of the others; states get 0.9 of the
/// memory of keys and values.
CacheBlocks sglang(const std::vector<Kind>& kinds, const CacheRequest& r) {
  constexpr double kWindowTokens = 0.8, kStateMemory = 0.9;
  const bool mixed = std::any_of(kinds.begin(), kinds.end(), [](const Kind& kind) {
    return kind.window == 0 && kind.state_bytes == 0;
  });
  double token_bytes = 0, longest = static_cast<double>(r.max_model_len);
  bool states = false;
  for (const Kind& kind : kinds) {
    states = states || kind.state_bytes > 0;
    token_bytes += static_cast<double>(kind.layers) * kind.token_bytes *
                   (mixed && kind.window > 0 ? kWindowTokens : 1);
  }
  int64_t cache_bytes = r.cache_bytes;
  if (states && mixed)
    cache_bytes = static_cast<int64_t>(static_cast<double>(cache_bytes) / (1 + kStateMemory));
  CacheBlocks blocks{.block_tokens = r.block_tokens};
  blocks.tokens =
      static_cast<int64_t>(static_cast<double>(cache_bytes) / std::max(1.0, token_bytes)) /
      r.block_tokens * r.block_tokens;
  blocks.blocks = blocks.tokens / r.block_tokens;
  blocks.concurrency = static_cast<double>(blocks.tokens) / longest;
  return blocks;
}

/// Layers with a window keep a pool of their own, sized for the same number of sequences.
CacheBlocks trtllm(const std::vector<Kind>& kinds, const CacheRequest& r) {
  double of_one = 0;
  for (const Kind& kind : kinds) {
    const int64_t kept =
        kind.window == 0 ? r.max_model_len : std::min(kind.window, r.max_model_len);
    of_one += static_cast<double>(kind.layers) * (kind.token_bytes * static_cast<double>(kept) +
                                                  static_cast<double>(kind.state_bytes));
  }
  CacheBlocks blocks{.block_tokens = r.block_tokens};
  blocks.concurrency = static_cast<double>(r.cache_bytes) / std::max(1.0, of_one);
  blocks.blocks = static_cast<int64_t>(blocks.concurrency * static_cast<double>(r.max_model_len) /
                                       static_cast<double>(r.block_tokens));
  blocks.tokens = checked_multiply(blocks.blocks, r.block_tokens);
  return blocks;
}

}  // namespace

CacheBlocks divide_cache(const Decoder& decoder, const CacheRequest& request) {
  const std::vector<Kind> kinds = kinds_of(decoder, request);
  if (kinds.empty() || request.cache_bytes <= 0) return {.block_tokens = request.block_tokens};
  struct Rule {
    std::string_view name;
    CacheBlocks (*divide)(const std::vector<Kind>&, const CacheRequest&);
  };
  constexpr Rule kRules[] = {{"vllm", vllm}, {"sglang", sglang}, {"trtllm", trtllm}};
  const std::string& name = software_def(request.software).cache_rule;
  const auto* const rule = std::find_if(std::begin(kRules), std::end(kRules),
                                        [&](const Rule& r) { return r.name == name; });
  TILECAST_CHECK(rule != std::end(kRules)) << "no rule divides the cache of " << name;
  return rule->divide(kinds, request);
}

}  // namespace tilecast
