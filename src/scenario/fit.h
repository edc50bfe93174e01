#pragma once

// Finds the largest batch that fits into memory, and makes the warning if a model does not fit.

#include <cstdint>
#include <functional>
#include <optional>

#include "devices/device.h"
#include "tilecast/result.h"

namespace tilecast {

struct Shortage {
  int64_t needed_bytes = 0;
  int64_t usable_bytes = 0;
  std::optional<int64_t> largest_batch;  ///< 0: not even one sequence fits; nullopt: not computed
};

/// Bytes needed and there, the largest batch.
Warning does_not_fit(const Shortage& shortage, const Device& device);

/// Whether the peak fits, but leaves less than what the caching allocator may not be able to use.
bool is_tight(const Memory& memory);
/// Whether the peak fits, but leaves less than a forecast of memory may err by.
bool may_not_fit(const Memory& memory);
/// A warning of either, for one of `ranks`.
Warning tight_memory(const Memory& memory, const Device& device, int64_t ranks);

/// Memory of a batch in bytes.
struct BatchBytes {
  int64_t batch = 0;
  int64_t bytes = 0;
};

/// The largest batch whose memory is within `limit`; 0 if not even one sequence fits. `bytes_of`
/// must not decrease with the batch. `too_many` is a batch known not to fit, if any. Memory is
/// almost linear in the batch, so the search extrapolates and needs few calls.
int64_t largest_within(int64_t limit, const std::function<int64_t(int64_t)>& bytes_of,
                       std::optional<BatchBytes> too_many = std::nullopt);

}  // namespace tilecast
