#pragma once

// What fits into the memory, and what a forecast says where something does not.

#include <cstdint>
#include <functional>
#include <optional>

#include "devices/device.h"
#include "tilecast/warning.h"

namespace tilecast {

struct Shortage {
  int64_t needed_bytes = 0;
  int64_t usable_bytes = 0;
  std::optional<int64_t> largest_batch;  ///< 0: not even one sequence fits; nullopt: not asked
};

/// Bytes needed and there, the largest batch.
Warning does_not_fit(const Shortage& shortage, const Device& device);

/// What a batch takes.
struct BatchBytes {
  int64_t batch = 0;
  int64_t bytes = 0;
};

/// The largest batch whose bytes are within `limit`; 0 where not even one sequence is. `bytes_of`
/// must not shrink with the batch. `too_many` is a batch that does not fit, where one is known.
/// Memory is nearly a straight line over the batch, which the search follows: a few calls suffice.
int64_t largest_within(int64_t limit, const std::function<int64_t(int64_t)>& bytes_of,
                       std::optional<BatchBytes> too_many = std::nullopt);

}  // namespace tilecast
