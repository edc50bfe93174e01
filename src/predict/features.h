#pragma once

#include <array>
#include <string_view>
#include <vector>

#include "devices/device.h"
#include "ops/kernel.h"
#include "predict/tiles.h"

namespace tilecast {

/// The learned networks: one per kind of law. Matrix products in single precision share one, those
/// in other types (tensor cores) another, all kernels that only stream memory a third.
enum class NetKind : uint8_t { kMatmul, kElementwise, kSoftmax, kLayerNorm, kTensorMatmul };
inline constexpr size_t kNetCount = 5;
std::string_view net_name(NetKind kind);
NetKind net_of(const Kernel& kernel);

/// The shortest time that any kernel occupies the device: 2 us, about what profilers show for empty
/// kernels (guess; the measurement kit's null kernel will settle it).
inline constexpr double kShortestKernel = 2e-6;

/// That of a network's kernels on a device. What products on tensor cores take beside their bound
/// (launch, filling the pipeline, the first loads) carries over between devices in cycles.
double shortest_kernel_s(NetKind kind, const Device& device);

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

  /// What utilization is relative to, at least seconds(). Products in narrow types are forecast for
  /// cold caches, as other layers leave them: all their traffic comes from DRAM.
  double law_s = 0;
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
