#include "scenario/generation/served_cache.h"

#include <algorithm>

#include "base/checked.h"
#include "graph/dtype.h"
#include "passes/stage.h"
#include "scenario/generation/drafts.h"

namespace tilecast {
namespace {

int64_t decoder_cache_bytes(const Decoder& decoder, DType kv_dtype, int64_t sequences,
                            int64_t tokens, int64_t ranks) {
  int64_t total = checked_multiply(sequences, decoder.state_bytes) / ranks;
  for (const Decoder::Cache& cache : decoder.caches) {
    // If there are fewer key heads than ranks, heads are replicated; a latent vector is replicated
    // on every rank.
    const int64_t share = std::min(ranks, cache.kv_heads);
    const int64_t entry =
        cache.dim / share * dtype_bits(cache.dtype.value_or(kv_dtype)) / kBitsPerByte;
    const int64_t kept = cache.window == 0 ? tokens : std::min(tokens, cache.window);
    total =
        checked_add(total, checked_product({cache.layers, sequences, kept / cache.ratio, entry}));
  }
  return total;
}

}  // namespace

int64_t cache_bytes(const ServedModel& served, int64_t sequences, int64_t tokens, int64_t ranks) {
  return decoder_cache_bytes(served.decoder(), served.kv_dtype, sequences, tokens, ranks);
}

int64_t stage_cache_bytes(const ServedModel& served, int64_t sequences, int64_t tokens,
                          size_t stage) {
  return decoder_cache_bytes(stage_decoder(served, stage), served.kv_dtype, sequences, tokens,
                             served.plan.tp);
}

Decoder stage_decoder(const ServedModel& served, size_t stage) {
  Decoder decoder = served.decoder();
  const LayerRange& layers = served.stages[stage].layers;
  if (served.drafter && layers.has_end) served.drafter->add_caches(decoder);
  if (served.plan.pp == 1) return decoder;
  // Kinds of layers alternate, so each stage has about its share of every kind.
  const int64_t all = layer_count(served.modules);
  const auto share = [&](int64_t number) {
    return ceil_divide(checked_multiply(number, layers.count), all);
  };
  for (Decoder::Cache& cache : decoder.caches) cache.layers = share(cache.layers);
  decoder.state_bytes = share(decoder.state_bytes);
  decoder.recurrent_layers = share(decoder.recurrent_layers);
  return decoder;
}

}  // namespace tilecast
