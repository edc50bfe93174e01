#include "sim/prefix_pieces.h"

#include "base/check.h"

namespace tilecast {
namespace {

/// Collects the blocks of one request. A block belongs to the part that has its last token.
struct Blocks {
  std::vector<PrefixPiece>& pieces;
  int64_t block_tokens;
  int64_t tokens = 0, full = 0;
  uint64_t chain = 0;   ///< of all pieces
  uint64_t before = 0;  ///< of parts that ended in the block that is not full yet

  void add(const ContentPart& part) {
    const uint64_t key = mix_keys(mix_keys(before, part.key), static_cast<uint64_t>(part.tokens));
    tokens += part.tokens;
    const int64_t blocks = tokens / block_tokens - full;
    before = blocks > 0 ? 0 : key;
    if (blocks == 0) return;
    chain = mix_keys(chain, key);
    pieces.push_back({key, blocks, chain});
    full += blocks;
  }
};

}  // namespace

PrefixPieces::PrefixPieces(const ServingLoad& load, int64_t block_tokens) {
  begin_.push_back(0);
  for (const RequestSpec& r : load.requests) {
    Blocks blocks{pieces_, block_tokens};
    for (size_t i = 0; i < r.part_count; ++i) blocks.add(load.parts[r.first_part + i]);
    TILECAST_CHECK(blocks.tokens == r.prompt) << "the parts of a prompt are not the whole prompt";
    blocks.add({r.output_key, r.output});
    begin_.push_back(pieces_.size());
  }
}

int64_t most_hit_tokens(const ServingLoad& load, const PrefixPieces& pieces, int64_t block_tokens,
                        const std::vector<bool>& counts) {
  PrefixCache cache(0, {});
  int64_t hits = 0;
  for (size_t i = 0; i < load.requests.size(); ++i) {
    const RequestSpec& r = load.requests[i];
    const PrefixCache::Place found =
        cache.hold(cache.find(pieces.of(i), (r.prompt - 1) / block_tokens));
    if (counts.empty() || counts[i]) hits += found.blocks * block_tokens;
    const int64_t computed = r.prompt + r.output - 1;
    cache.release(cache.publish(pieces.of(i), found, computed / block_tokens).place);
  }
  return hits;
}

}  // namespace tilecast
