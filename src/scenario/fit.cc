#include "scenario/fit.h"

#include <algorithm>

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
                   {"device_bytes", device.memory_bytes}}};
  if (s.largest_batch) warning.facts.push_back({"largest_batch", *s.largest_batch});
  return warning;
}

bool is_tight(const MemoryForecast& memory) {
  // 49 of the 56 measured runs above 20 GiB reserved at most 1.1 times what they allocated
  // (data/measurements/nvidia-h100-sxm5-80gb/models*.csv).
  constexpr double kRoom = 1.1;
  return memory.fits && static_cast<double>(memory.peak_bytes) * kRoom >=
                            static_cast<double>(memory.usable_bytes());
}

Warning tight_memory(const MemoryForecast& memory, const Device& device) {
  return {WarningCode::kTightMemory,
          device.id,
          static_cast<double>(memory.margin_bytes) / static_cast<double>(memory.usable_bytes()),
          {{"free_bytes", memory.margin_bytes}}};
}

int64_t largest_within(int64_t limit, const std::function<int64_t(int64_t)>& bytes_of,
                       std::optional<BatchBytes> too_many) {
  constexpr int64_t kLargest = int64_t{1} << 31;  // larger than any real batch
  if (too_many && too_many->batch <= 1) return 0;
  BatchBytes low{1, bytes_of(1)};
  if (low.bytes > limit) return 0;
  if (!too_many) {
    BatchBytes high{2, bytes_of(2)};
    while (high.bytes <= limit && high.batch < kLargest) {
      const int64_t guess = on_the_line(limit, low, high);
      low = high;
      high.batch = std::min(kLargest, std::max(guess + 1, 2 * low.batch));
      high.bytes = bytes_of(high.batch);
    }
    too_many = high;
  }
  BatchBytes high = *too_many;
  // Try the linear estimate and the batch after it; if both fail, bisect.
  for (int probe = 0; high.batch - low.batch > 1; ++probe) {
    int64_t next = low.batch + (high.batch - low.batch) / 2;
    if (probe % 3 != 2) next = on_the_line(limit, low, high);
    next = std::clamp(next, low.batch + 1, high.batch - 1);
    const BatchBytes point{next, bytes_of(next)};
    (point.bytes <= limit ? low : high) = point;
  }
  return low.batch;
}

}  // namespace tilecast
