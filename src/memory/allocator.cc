#include "memory/allocator.h"

#include <algorithm>

#include "base/checked.h"
#include "memory/lifetimes.h"

namespace tilecast {
namespace {

// c10/core/AllocatorConfig.h and c10/cuda/CUDACachingAllocator.cpp, PyTorch 2.
constexpr int64_t kMiB = int64_t{1} << 20;
constexpr int64_t kMinBlock = 512;    // kMinBlockSize
constexpr int64_t kSmallSize = kMiB;  // the largest small block
constexpr int64_t kSmallBuffer = 2 * kMiB;
constexpr int64_t kLargeBuffer = 20 * kMiB;
constexpr int64_t kMinLargeAlloc = 10 * kMiB;
constexpr int64_t kRoundLarge = 2 * kMiB;

}  // namespace

int64_t segment_bytes(int64_t bytes) {
  if (bytes <= kSmallSize) return kSmallBuffer;
  if (bytes < kMinLargeAlloc) return kLargeBuffer;
  return checked_multiply(ceil_divide(bytes, kRoundLarge), kRoundLarge);
}

CachingAllocator::Blocks::iterator CachingAllocator::take_segment(int64_t bytes, bool small) {
  const int64_t size = segment_bytes(bytes);
  reserved_ = checked_add(reserved_, size);
  const auto block =
      blocks_.emplace(next_address_, Block{.bytes = size, .small = small, .first = true}).first;
  next_address_ = checked_add(next_address_, size);
  return block;
}

CachingAllocator::BlockId CachingAllocator::allocate(int64_t bytes) {
  bytes = block_bytes(std::max(bytes, int64_t{1}));
  const bool small = bytes <= kSmallSize;
  auto& unused = free_[small ? 1 : 0];
  Blocks::iterator block;
  if (const auto best = unused.lower_bound({bytes, 0}); best != unused.end()) {
    block = blocks_.find(best->second);
    unused.erase(best);
  } else {
    block = take_segment(bytes, small);
  }
  const int64_t rest = block->second.bytes - bytes;
  if (small ? rest >= kMinBlock : rest > kSmallSize) {
    const int64_t address = block->first + bytes;
    blocks_.emplace(address, Block{.bytes = rest, .small = small});
    unused.emplace(rest, address);
    block->second.bytes = bytes;
  }
  block->second.used = true;
  allocated_ = checked_add(allocated_, block->second.bytes);
  max_allocated_ = std::max(max_allocated_, allocated_);
  return block->first;
}

/// Joins `block` with the block after it.
void CachingAllocator::join(Blocks::iterator block, Blocks::iterator next) {
  free_[next->second.small ? 1 : 0].erase({next->second.bytes, next->first});
  block->second.bytes += next->second.bytes;
  blocks_.erase(next);
}

void CachingAllocator::free(BlockId id) {
  auto block = blocks_.find(id);
  block->second.used = false;
  allocated_ -= block->second.bytes;
  if (const auto next = std::next(block);
      next != blocks_.end() && !next->second.used && !next->second.first)
    join(block, next);
  if (!block->second.first) {
    if (const auto before = std::prev(block); !before->second.used) {
      free_[before->second.small ? 1 : 0].erase({before->second.bytes, before->first});
      before->second.bytes += block->second.bytes;
      blocks_.erase(block);
      block = before;
    }
  }
  free_[block->second.small ? 1 : 0].emplace(block->second.bytes, block->first);
}

}  // namespace tilecast
