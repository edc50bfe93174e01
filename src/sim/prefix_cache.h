#pragma once

// The prefix cache of one data-parallel rank: a radix tree over full blocks of the cache. Goals:
// which blocks a request finds, and in which order others take them, are those of the software; the
// cost of a request grows with the parts that its prompt consists of, not with its blocks.
//
// A block is known by its tokens and all tokens before it. So the blocks of requests form a tree. A
// node is a run of blocks that are held together: whoever holds a node holds its parents. Blocks
// that nobody holds wait in a list in which those that were let go first are taken first. A request
// lets its last blocks go first, so the first node of the list is always a leaf, and taking blocks
// from its end is the least recently used order of
// - vLLM: vllm/v1/core/block_pool.py (BlockPool.free_blocks, get_new_blocks) and kv_cache_utils.py
//   (FreeKVCacheBlockQueue), release 0.19.0: requests free their blocks in reverse order to the end
//   of a queue; a block keeps its hash until it is taken from the front. Full blocks can be found
//   as soon as they are allocated (KVCacheManager.allocate_slots).
// - SGLang: python/sglang/srt/mem_cache/radix_cache.py (RadixCache.evict), releases 0.4 to 0.5:
//   free tokens first, then the least recently used leaf as a whole. Prompts are inserted after
//   each step that computes them, answers at the end of a request; what a retracted request has
//   written is freed.
// - TensorRT-LLM: cpp/tensorrt_llm/batch_manager/kvCacheManager.cpp and evictionPolicy.cpp
//   (LRUEvictionPolicy), releases 0.17 to 1.0: freed blocks wait in a queue, leaves first. A prompt
//   is stored when its last part is computed, an answer when the request ends.
// All three are from memory of these files.
// Simplified: where two requests compute the same blocks at the same time, the second's copies are
// free at once when they are found to be copies (as in SGLang; vLLM keeps both until they are
// taken). Left out: TensorRT-LLM's priorities and its copies of blocks that agree in part.

#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "base/rng.h"
#include "sim/host_cache.h"
#include "software/software.h"

namespace tilecast {

/// A part of a sequence: full blocks that always come together.
struct PrefixPiece {
  uint64_t key = 0;  ///< what they contain
  int64_t blocks = 0;
  uint64_t chain = 0;  ///< what they and all blocks before them contain
};

/// One number of two.
inline uint64_t mix_keys(uint64_t a, uint64_t b) { return Rng(a ^ Rng(b).next()).next(); }

class PrefixCache {
 public:
  /// `blocks` in all, which are free and empty.
  /// `host`: takes blocks by the same rule; may be null.
  PrefixCache(int64_t blocks, const PrefixRule& rule, HostCache* host = nullptr);

  /// Where the known blocks of a sequence end: in the piece `piece`, after `in_piece` of its
  /// blocks. `blocks`: in all.
  struct Place {
    uint32_t node = 0;
    uint32_t piece = 0;
    int64_t in_piece = 0;
    int64_t blocks = 0;
  };
  struct Match {
    Place place;
    int64_t part_of_node = 0;  ///< blocks of the last node that count; 0: all
    int64_t free_blocks = 0;   ///< of all, that nobody holds
  };
  /// The longest beginning of the sequence that is here, `most_blocks` at most.
  Match find(std::span<const PrefixPiece> pieces, int64_t most_blocks) const;
  /// Holds the blocks of a match, which must be newer than any other change. They are free no more.
  Place hold(const Match& match);

  /// How many blocks of a holder turned out to be copies, which are its own no more, and by how
  /// much that changes the number of free blocks.
  struct Published {
    Place place;
    int64_t freed = 0;
  };
  /// Blocks that a request has computed can be found from now on: all up to the first `blocks` of
  /// its sequence. It holds them as those up to `place`.
  Published publish(std::span<const PrefixPiece> pieces, Place place, int64_t blocks);
  /// Lets the blocks up to a place go. Returns how many are free now.
  int64_t release(Place place);

  /// Takes free blocks, or gives some back that can not be found.
  void take(int64_t blocks);
  void give(int64_t blocks);

  const PrefixRule& rule() const { return rule_; }
  HostCache* host() const { return host_; }
  /// Tokens of a prompt, and of these, what was found here and in the host's memory.
  void note_hit(int64_t prompt, int64_t tokens, int64_t host_tokens) {
    prompt_tokens_ += prompt;
    hit_tokens_ += tokens;
    host_hit_tokens_ += host_tokens;
  }
  /// What was before is not counted.
  void forget_counts() { prompt_tokens_ = hit_tokens_ = host_hit_tokens_ = evicted_blocks_ = 0; }
  int64_t prompt_tokens() const { return prompt_tokens_; }
  int64_t hit_tokens() const { return hit_tokens_; }
  int64_t host_hit_tokens() const { return host_hit_tokens_; }
  /// Blocks that can be found, and those that were lost to others.
  int64_t cached_blocks() const { return cached_blocks_; }
  int64_t evicted_blocks() const { return evicted_blocks_; }
  /// Free blocks, counted anew. For tests.
  int64_t count_free() const;

 private:
  static constexpr uint32_t kRoot = 0, kNone = 0xffffffff;
  struct Node {
    uint64_t key = 0, chain = 0;
    int64_t offset = 0;  ///< of its first block in its piece
    int64_t blocks = 0;
    uint32_t parent = kNone;
    uint32_t before = kNone, after = kNone;  ///< in the list of free nodes
    int32_t holders = 0;
    /// A child that was inserted with it and never parted from it: both are one node of SGLang's.
    uint32_t joined_child = kNone;
    bool empty = false;  ///< its blocks cannot be found: it is in the list only
  };
  struct Edge {
    uint64_t key = 0;
    int64_t offset = 0;
    uint32_t parent = 0;
    bool operator==(const Edge&) const = default;
  };
  struct EdgeHash {
    size_t operator()(const Edge& e) const;
  };

  uint32_t child(uint32_t parent, uint64_t key, int64_t offset) const;
  uint32_t new_node();
  void append(uint32_t node);
  void insert_after(uint32_t node, uint32_t before);
  void unlink(uint32_t node);
  void drop(uint32_t node);
  uint32_t split(uint32_t node, int64_t blocks);
  void evict_leaf(uint32_t leaf);

  PrefixRule rule_;
  HostCache* host_ = nullptr;
  std::vector<Node> nodes_;
  std::vector<uint32_t> unused_;
  std::unordered_map<Edge, uint32_t, EdgeHash> edges_;
  uint32_t first_ = kNone, last_ = kNone;  ///< of the list
  int64_t cached_blocks_ = 0, evicted_blocks_ = 0;
  int64_t prompt_tokens_ = 0, hit_tokens_ = 0, host_hit_tokens_ = 0;
};

}  // namespace tilecast
