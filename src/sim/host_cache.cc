#include "sim/host_cache.h"

#include <algorithm>

#include "sim/prefix_cache.h"

namespace tilecast {

void HostCache::append(uint32_t entry) {
  entries_[entry].before = last_;
  entries_[entry].after = kNone;
  (last_ == kNone ? first_ : entries_[last_].after) = entry;
  last_ = entry;
}

void HostCache::unlink(uint32_t entry) {
  const uint32_t before = entries_[entry].before, after = entries_[entry].after;
  (before == kNone ? first_ : entries_[before].after) = after;
  (after == kNone ? last_ : entries_[after].before) = before;
}

void HostCache::store(uint64_t chain, int64_t begin, int64_t end) {
  const auto [found, added] = known_.try_emplace(chain, kNone);
  if (added) {
    if (unused_.empty()) {
      entries_.emplace_back();
      found->second = static_cast<uint32_t>(entries_.size() - 1);
    } else {
      found->second = unused_.back();
      unused_.pop_back();
    }
    entries_[found->second] = {.chain = chain, .begin = begin, .end = begin};
  } else {
    unlink(found->second);
  }
  Entry& entry = entries_[found->second];
  used_ -= entry.end - entry.begin;
  // Parts come next to each other; of two with a gap the newer one counts.
  const bool joins = begin <= entry.end && end >= entry.begin;
  entry.begin = joins ? std::min(entry.begin, begin) : begin;
  entry.end = joins ? std::max(entry.end, end) : end;
  used_ += entry.end - entry.begin;
  append(found->second);
  while (used_ > capacity_) {
    Entry& oldest = entries_[first_];
    const int64_t lost = std::min(used_ - capacity_, oldest.end - oldest.begin);
    oldest.end -= lost;
    used_ -= lost;
    if (oldest.end > oldest.begin) continue;
    known_.erase(oldest.chain);
    unused_.push_back(first_);
    unlink(first_);
  }
}

int64_t HostCache::find(std::span<const PrefixPiece> pieces, size_t piece, int64_t in_piece,
                        int64_t most) const {
  int64_t blocks = 0;
  while (blocks < most && piece < pieces.size()) {
    if (in_piece == pieces[piece].blocks) {
      piece += 1;
      in_piece = 0;
      continue;
    }
    const auto found = known_.find(pieces[piece].chain);
    if (found == known_.end()) break;
    const Entry& entry = entries_[found->second];
    if (in_piece < entry.begin || in_piece >= entry.end) break;
    const int64_t here = std::min(entry.end - in_piece, most - blocks);
    blocks += here;
    in_piece += here;
  }
  return blocks;
}

void HostCache::touch(std::span<const PrefixPiece> pieces) {
  for (size_t i = pieces.size(); i-- > 0;) {
    const auto found = known_.find(pieces[i].chain);
    if (found == known_.end()) continue;
    unlink(found->second);
    append(found->second);
  }
}

}  // namespace tilecast
