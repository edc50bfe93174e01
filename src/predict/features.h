#pragma once

#include <array>
#include <string_view>
#include <vector>

#include "devices/device.h"
#include "ops/kernel.h"
#include "predict/tiles.h"

namespace tilecast {

/// The learned networks: one per kind of law. Matrix products share one, so do all kernels that
/// only stream memory.
enum class NetKind : uint8_t { kMatmul, kElementwise, kSoftmax, kLayerNorm };
inline constexpr size_t kNetCount = 4;
std::string_view net_name(NetKind kind);
NetKind net_of(KernelFamily family);

/// The lowest logit of utilization that a network may give: where it extrapolates it has no other
/// floor.
float lowest_logit(NetKind kind);

/// Most features that any network reads.
inline constexpr size_t kMaxFeatures = 24;
using Features = std::array<float, kMaxFeatures>;

/// Names of a network's features, in order.
const std::vector<std::string_view>& feature_names(NetKind kind);

/// The first so many features are what the law shared by all devices sees; corrections to single
/// devices see all.
size_t shared_feature_count(NetKind kind);

/// Physics of one kernel on one device: the least time that the data sheet allows.
struct Bound {
  double compute_s = 0;  ///< FLOPs over the peak rate of the unit that runs them
  double memory_s = 0;   ///< traffic over DRAM and L2 bandwidth
  double seconds() const { return compute_s > memory_s ? compute_s : memory_s; }
};

/// Throws Error{kUnsupported} where the device has no unit for the kernel's dtype.
Bound physical_bound(const Kernel& kernel, const Device& device);

/// Ratios and logarithms that describe a kernel on a device; never its name. `tile` is read for
/// matrix products only.
Features make_features(const Kernel& kernel, const Device& device, const Bound& bound, Tile tile);

/// Tiles of a kernel, one per block, and the waves they take with one block on each SM.
struct Waves {
  double tiles = 1;
  double waves = 1;      ///< ceil(tiles / sm)
  double occupancy = 1;  ///< tiles / (waves · sm): 1 where the last wave is full
};
Waves count_waves(const Kernel& kernel, const Device& device, Tile tile);

}  // namespace tilecast
