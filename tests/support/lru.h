#pragma once

// Streams of lookups drawn from a reuse histogram, and an exact simulation of a cache that drops
// the least recently used rows.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "base/rng.h"
#include "embedding/reuse.h"

namespace tilecast {

/// Ids of about `lookups` lookups in random order, whose rows are used as often as the histogram
/// says. `means`: the mean uses of the rows of each bin, where they are known; 0: log-uniform.
inline std::vector<int32_t> draw_stream(const ReuseShares& shares, double lookups, Rng& rng,
                                        const ReuseShares& means = {}) {
  std::vector<int32_t> stream;
  int32_t row = 0;
  for (size_t bin = 0; bin < kReuseBins; ++bin) {
    const double low = bin == 0 ? 0 : std::exp2(static_cast<double>(bin) - 1);
    const double high = bin == 0 ? 1 : 2 * low;
    // Uses n with a density of n^-power, so that their mean is the given one.
    double power = 2;
    if (means[bin] > low) {
      double least = -20, most = 20;
      for (int i = 0; i < 50; ++i) {
        power = (least + most) / 2;
        double sum = 0, weight = 0;
        for (int step = 0; step < 64; ++step) {
          const double n = low + (high - low) * (step + 0.5) / 64, w = std::pow(n / high, -power);
          sum += n * w;
          weight += w;
        }
        (sum / weight > means[bin] ? least : most) = power;
      }
    }
    const double wanted = shares[bin] * lookups;
    for (double drawn = 0; drawn + low / 2 < wanted;) {
      double n = 0.5;
      while (bin > 0) {  // by rejection
        n = low + (high - low) * rng.uniform();
        if (rng.uniform() <= std::pow(n / (power >= 0 ? low : high), -power)) break;
      }
      const double uses = bin == 0 ? 1 : std::floor(n) + 1;
      for (double i = 0; i < uses; ++i) stream.push_back(row);
      ++row;
      drawn += uses;
    }
  }
  rng.shuffle(stream);
  return stream;
}

/// The share of lookups that find their row in a cache of `capacity` rows, empty at first.
inline double lru_hit_share(const std::vector<int32_t>& stream, size_t capacity) {
  const int32_t rows = stream.empty() ? 0 : 1 + *std::max_element(stream.begin(), stream.end());
  const auto end = static_cast<size_t>(rows);  // the list's sentinel
  std::vector<size_t> next(end + 1, end), previous(end + 1, end);
  std::vector<bool> cached(end, false);
  const auto unlink = [&](size_t id) {
    next[previous[id]] = next[id];
    previous[next[id]] = previous[id];
  };
  size_t held = 0;
  int64_t hits = 0;
  for (const int32_t row : stream) {
    const auto id = static_cast<size_t>(row);
    if (cached[id]) {
      ++hits;
      unlink(id);
    } else {
      cached[id] = true;
      if (++held > capacity) {
        const size_t oldest = previous[end];
        unlink(oldest);
        cached[oldest] = false;
        --held;
      }
    }
    next[id] = next[end];
    previous[id] = end;
    previous[next[end]] = id;
    next[end] = id;
  }
  return stream.empty() ? 0 : static_cast<double>(hits) / static_cast<double>(stream.size());
}

}  // namespace tilecast
