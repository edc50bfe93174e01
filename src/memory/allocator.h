#pragma once

// PyTorch's caching allocator for CUDA memory, simulated (c10/cuda/CUDACachingAllocator.cpp, with
// its default settings).

#include <cstdint>
#include <map>
#include <set>

namespace tilecast {

/// Blocks are cut from segments, which are taken from the driver and never given back. Requests are
/// rounded up to 512 bytes. Blocks up to 1 MiB are cut from segments of 2 MiB, blocks below 10 MiB
/// from segments of 20 MiB; larger ones get a segment of their size, rounded up to 2 MiB. A free
/// block is split if more than 1 MiB remains (512 bytes among the small ones); neighbours that are
/// free are joined. Not simulated: giving back cached segments when the device is full, expandable
/// segments, streams.
class CachingAllocator {
 public:
  using BlockId = int64_t;

  /// Throws Error{kInput} if bytes overflow 64 bits.
  BlockId allocate(int64_t bytes);
  /// The block must be in use.
  void free(BlockId block);

  int64_t allocated_bytes() const { return allocated_; }
  int64_t max_allocated_bytes() const { return max_allocated_; }
  int64_t reserved_bytes() const { return reserved_; }  ///< never falls

 private:
  struct Block {
    int64_t bytes = 0;
    bool used = false;
    bool small = false;
    bool first = false;  ///< of its segment
  };
  using Blocks = std::map<int64_t, Block>;  // by address; segments do not touch each other

  void join(Blocks::iterator block, Blocks::iterator next);
  Blocks::iterator take_segment(int64_t bytes, bool small);

  Blocks blocks_;
  std::set<std::pair<int64_t, int64_t>> free_[2];  // size and address; large and small
  int64_t next_address_ = 0;
  int64_t allocated_ = 0, max_allocated_ = 0, reserved_ = 0;
};

/// The size of the segment that a block of `bytes`, rounded, is cut from if no free block fits.
int64_t segment_bytes(int64_t bytes);

}  // namespace tilecast
