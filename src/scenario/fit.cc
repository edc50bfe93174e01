#include "scenario/fit.h"

#include <algorithm>

#include "base/monotone.h"
#include "scenario/memory_total.h"

namespace tilecast {
namespace {

/// The largest batch within `limit`, by linear extrapolation through both points.
int64_t on_the_line(int64_t limit, const BatchBytes& a, const BatchBytes& b) {
  const double bytes_each = (static_cast<double>(b.bytes) - static_cast<double>(a.bytes)) /
                            static_cast<double>(b.batch - a.batch);
  constexpr double kMax = 1e18;  // fits into an int64_t, also after adding one
  const double more = static_cast<double>(limit - a.bytes) / bytes_each;
  return a.batch + static_cast<int64_t>(more < kMax ? more : kMax);
}

}  // namespace

Warning does_not_fit(const Shortage& s, const Device& device) {
  Warning warning{WarningCode::kDoesNotFit,
                  device.id,
                  0,
                  {{"needed_bytes", s.needed_bytes},
                   {"usable_bytes", s.usable_bytes},
                   {"device_bytes", visible_bytes(device)}}};
  if (s.largest_batch) warning.facts.push_back({"largest_batch", *s.largest_batch});
  return warning;
}

bool is_tight(const Memory& memory) {
  // 49 of the 56 measured runs above 20 GiB reserved at most 1.1 times what they allocated
  // (data/measurements/nvidia-h100-sxm5-80gb/models*.csv).
  constexpr double kRoom = 1.1;
  return memory.fits &&
         static_cast<double>(memory.peak_bytes) * kRoom >= static_cast<double>(memory.usable_bytes);
}

bool may_not_fit(const Memory& memory) {
  // The worst error of a training step's peak against PyTorch, 3.2 % (docs/accuracy.md,
  // tests/check_memory.py).
  constexpr double kWorstError = 1.032;
  return memory.fits && static_cast<double>(memory.peak_bytes) * kWorstError >=
                            static_cast<double>(memory.usable_bytes);
}

Warning tight_memory(const Memory& memory, const Device& device, int64_t ranks) {
  Warning warning{
      WarningCode::kTightMemory,
      device.id,
      static_cast<double>(memory.margin_bytes()) / static_cast<double>(memory.usable_bytes),
      {{"free_bytes", memory.margin_bytes()}}};
  if (ranks == 1) warning.facts.push_back({"one_gpu", int64_t{1}});
  return warning;
}

int64_t largest_within(int64_t limit, const std::function<int64_t(int64_t)>& bytes_of,
                       std::optional<BatchBytes> too_many) {
  constexpr int64_t kLargest = int64_t{1} << 31;  // larger than any real batch
  if (too_many && too_many->batch <= 1) return 0;
  BatchBytes low{1, bytes_of(1)}, high = low;
  if (low.bytes > limit) return 0;
  if (!too_many) {
    while (high.bytes <= limit && high.batch < kLargest) {
      const int64_t next = high.batch == 1 ? 2 : on_the_line(limit, low, high) + 1;
      low = high;
      high.batch = std::min(kLargest, std::max(next, 2 * low.batch));
      high.bytes = bytes_of(high.batch);
    }
    too_many = high;
  }
  high = *too_many;
  const auto fits = [&](int64_t batch) {
    const BatchBytes point{batch, bytes_of(batch)};
    (point.bytes <= limit ? low : high) = point;
    return point.bytes <= limit;
  };
  // The linear estimate and the batch after it; if both fail, the middle.
  auto guess = [&, probe = 0](const Bracket& bracket) mutable {
    return probe++ % 3 == 2 ? bracket.middle() : on_the_line(limit, low, high);
  };
  return narrow({low.batch, high.batch}, fits, guess).holds;
}

}  // namespace tilecast
