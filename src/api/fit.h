#pragma once

// What a forecast says where something does not fit into the memory.

#include <cstdint>
#include <optional>
#include <string>

#include "devices/device.h"

namespace tilecast {

struct Shortage {
  int64_t needed_bytes = 0;
  int64_t usable_bytes = 0;
  double utilization = 1;  ///< share of the device that is usable
  int64_t ranks = 1;
  std::optional<int64_t> largest_batch;  ///< 0: not even one sequence fits; nullopt: not asked
};

/// "does not fit: 2.00 GiB are missing; …": bytes missing, needed and there, the largest batch.
std::string does_not_fit(const Shortage& shortage, const Device& device);

}  // namespace tilecast
