#pragma once

// Blocks of the prefix cache in the host's memory, of all ranks of one server. The least recently
// used are lost first, of one request the last ones first, as in vLLM's LRUOffloadingManager
// (vllm/v1/kv_offload/lru_manager.py, 0.19.0, from memory: `touch` goes from the last block to the
// first). A block that a GPU reads stays here. Not modelled: memory bandwidth of the host, copies
// to the host (they take the other direction of the link).

#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

namespace tilecast {

struct PrefixPiece;

class HostCache {
 public:
  explicit HostCache(int64_t blocks) : capacity_(blocks) {}

  /// Keeps the blocks [begin, end) of the piece with this chain (PrefixPiece::chain).
  void store(uint64_t chain, int64_t begin, int64_t end);
  /// How many blocks of the sequence are here in a row from a place on: after `in_piece` blocks of
  /// `pieces[piece]`; `most` at most.
  int64_t find(std::span<const PrefixPiece> pieces, size_t piece, int64_t in_piece,
               int64_t most) const;
  /// These pieces were used.
  void touch(std::span<const PrefixPiece> pieces);

  int64_t blocks() const { return used_; }

 private:
  static constexpr uint32_t kNone = 0xffffffff;
  /// Blocks [begin, end) of a piece.
  struct Entry {
    uint64_t chain = 0;
    int64_t begin = 0, end = 0;
    uint32_t before = kNone, after = kNone;  ///< the least recently used is first
  };
  void append(uint32_t entry);
  void unlink(uint32_t entry);

  int64_t capacity_, used_ = 0;
  std::vector<Entry> entries_;
  std::vector<uint32_t> unused_;
  std::unordered_map<uint64_t, uint32_t> known_;
  uint32_t first_ = kNone, last_ = kNone;
};

}  // namespace tilecast
