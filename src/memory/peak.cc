#include "memory/peak.h"

#include <tuple>

#include "base/checked.h"

namespace tilecast {
namespace {

/// Changes of a sum from step to step.
class Changes {
 public:
  explicit Changes(const Lifetimes& lifetimes) : change_(lifetimes.steps.size() + 2, 0) {}

  /// `bytes` more from step `first` to step `last`.
  void add(int32_t first, int32_t last, int64_t bytes) {
    if (last < first) return;
    int64_t& rise = change_[static_cast<size_t>(first)];
    int64_t& fall = change_[static_cast<size_t>(last) + 1];
    rise = checked_add(rise, bytes);
    fall = checked_add(fall, -bytes);
  }

  /// The largest sum from step `first` on and its first step.
  std::pair<int64_t, int32_t> largest(int32_t first = 0) const {
    return largest(first, static_cast<int32_t>(change_.size()));
  }
  /// The same, before step `end`.
  std::pair<int64_t, int32_t> largest(int32_t first, int32_t end) const {
    int64_t sum = 0, most = 0;
    int32_t at = 0;
    for (int32_t i = 0; i < end; ++i) {
      sum = checked_add(sum, change_[static_cast<size_t>(i)]);
      if (i < first || sum <= most) continue;
      most = sum;
      at = i;
    }
    return {most, at};
  }

 private:
  std::vector<int64_t> change_;
};

}  // namespace

MemoryPeak find_peak(const Lifetimes& lifetimes) {
  Changes all(lifetimes), computed(lifetimes);
  for (const Lifetime& life : lifetimes.lifetimes) {
    const int64_t more = life.more > 0 ? checked_multiply(life.bytes, life.more) : 0;
    all.add(life.born, life.last, life.bytes);
    if (more > 0) all.add(life.more_born, life.more_last, more);
    if (life.use == MemoryUse::kGradients) continue;
    const bool becomes = life.gradient_from >= 0;
    computed.add(life.born, becomes ? life.gradient_from : life.last, life.bytes);
    if (more > 0 && !becomes) computed.add(life.more_born, life.more_last, more);
  }
  MemoryPeak peak;
  std::tie(peak.bytes, peak.step) = all.largest();
  peak.computed_bytes = computed.largest(0, lifetimes.optimizer_from).first;
  peak.optimizer_computed_bytes = computed.largest(lifetimes.optimizer_from).first;
  peak.by_use = lifetimes.permanent_bytes;
  for (const Lifetime& life : lifetimes.lifetimes) {
    int64_t& part = peak.by_use[static_cast<size_t>(use_at(life, peak.step))];
    if (life.born <= peak.step && peak.step <= life.last) part += life.bytes;
    if (life.more > 0 && life.more_born <= peak.step && peak.step <= life.more_last)
      part += life.bytes * life.more;
  }
  for (const int64_t bytes : lifetimes.permanent_bytes) peak.bytes = checked_add(peak.bytes, bytes);
  return peak;
}

int64_t bytes_across(const Lifetimes& lifetimes, int32_t step) {
  int64_t sum = 0;
  for (const Lifetime& life : lifetimes.lifetimes) {
    if (life.use == MemoryUse::kGradients) continue;
    if (life.born <= step && step < life.last) sum = checked_add(sum, life.bytes);
    if (life.more > 0 && life.more_born <= step && step < life.more_last)
      sum = checked_add(sum, checked_multiply(life.bytes, life.more));
  }
  return sum;
}

std::vector<BytesByUse> bytes_by_step(const Lifetimes& lifetimes) {
  std::vector<BytesByUse> bytes(lifetimes.steps.size() + 1, BytesByUse{});
  const auto add = [&](MemoryUse use, int32_t first, int32_t last, int64_t each) {
    const auto u = static_cast<size_t>(use);
    if (last < first) return;
    bytes[static_cast<size_t>(first)][u] += each;
    bytes[static_cast<size_t>(last) + 1][u] -= each;
  };
  for (const Lifetime& life : lifetimes.lifetimes) {
    const int32_t until = life.gradient_from >= 0 ? life.gradient_from - 1 : life.last;
    add(life.use, life.born, until, life.bytes);
    add(MemoryUse::kGradients, until + 1, life.last, life.bytes);
  }
  for (size_t u = 0; u < kMemoryUseCount; ++u) bytes[0][u] += lifetimes.permanent_bytes[u];
  for (size_t i = 1; i < bytes.size(); ++i) {
    for (size_t u = 0; u < kMemoryUseCount; ++u) bytes[i][u] += bytes[i - 1][u];
  }
  bytes.pop_back();
  return bytes;
}

}  // namespace tilecast
