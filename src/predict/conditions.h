#pragma once

#include <cstdint>

#include "graph/software.h"

namespace tilecast {

/// Where a kernel's operands lie when it starts.
enum class Caches : uint8_t {
  kCold,  ///< in DRAM, as in a model, where other layers come in between
  kWarm,  ///< in L2 as far as they fit, as when a benchmark replays a kernel
};

/// What a kernel's time depends on beside its work and the device.
struct Conditions {
  Software software = Software::kPyTorch;
  Caches caches = Caches::kCold;
  bool operator==(const Conditions&) const = default;
};

}  // namespace tilecast
