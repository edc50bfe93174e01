#pragma once

#include <cstdint>
#include <optional>

#include "devices/device.h"
#include "software/software.h"

namespace tilecast {

/// Where a kernel's operands lie when it starts.
enum class Caches : uint8_t {
  kCold,  ///< in DRAM, as in a model, where other layers come in between
  kWarm,  ///< in L2 as far as they fit, as when a benchmark replays a kernel
  /// A benchmark of matrix products alternates between some copies of the weight: in L2 as far as
  /// all copies fit. How many: SoftwareTraits::benchmark_weight_copies.
  kAlternating,
};

/// Conditions that a kernel's time depends on, beside its work and the device.
struct Conditions {
  Software software{};
  Caches caches = Caches::kCold;
  /// The clock in force, where it is known not to be the boost clock of the data sheet.
  std::optional<double> clock_hz;
  /// 16-bit products are summed in 16 bits, as in a BLAS's half precision; else in FP32, as
  /// frameworks do.
  bool half_sums = false;
  /// Norms, gates and rotary embedding move single elements, as vLLM's did when Vidur measured
  /// them, whatever SoftwareTraits::moves_rows_by_vectors says.
  bool scalar_rows = false;
  /// Of experts whose weights have fewer bits than what they multiply.
  MoeBackend moe_backend = MoeBackend::kAuto;
  bool operator==(const Conditions&) const = default;
};

/// The device as it runs under the conditions: `device` itself, or a copy at another clock that
/// `store` holds.
inline const Device& running_device(const Device& device, const Conditions& conditions,
                                    std::optional<Device>& store) {
  if (!conditions.clock_hz) return device;
  return store.emplace(at_clock(device, *conditions.clock_hz));
}

}  // namespace tilecast
