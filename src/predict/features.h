#pragma once

#include <string_view>
#include <vector>

#include "predict/conditions.h"
#include "predict/nets.h"

namespace tilecast {

std::string_view net_name(NetKind kind);
NetKind net_of(const Kernel& kernel);

/// The shortest time that any kernel occupies the device: 2 us, about what profilers show for empty
/// kernels (guess; the measurement kit's null kernel will settle it).
inline constexpr double kShortestKernel = 2e-6;

/// That of a network's kernels on a device.
double shortest_kernel_s(NetKind kind, const Device& device);

/// The logit of utilization at which the law takes `seconds`. Faster than the bound can't be
/// forecast; 0.25 % above it is as near as makes sense.
double logit_of(double seconds, double law_s, double shortest_s);

/// Names of a network's features, in order.
const std::vector<std::string_view>& feature_names(NetKind kind);
size_t shared_feature_count(NetKind kind);
float lowest_logit(NetKind kind);

/// Physics of one kernel on one device: the least time that the data sheet allows.
struct Bound {
  double compute_s = 0;  ///< FLOPs over the peak rate of the unit that runs them
  double memory_s = 0;   ///< traffic over DRAM and L2 bandwidth
  double seconds() const { return compute_s > memory_s ? compute_s : memory_s; }

  /// What utilization is relative to, at least seconds(). Products in narrow types are measured
  /// with cold caches: all their traffic comes from DRAM. Attention and experts are measured by
  /// replay: what fits L2 is warm.
  double law_s = 0;
  /// What a kernel that is learned warm takes longer where its operands come from DRAM.
  double cold_s = 0;
};

/// Throws Error{kUnsupported} where the device has no unit for the kernel's dtype.
Bound physical_bound(const Kernel& kernel, const Device& device);

/// The classic roofline (Williams, Waterman, Patterson 2009), which knows DRAM only: the baseline.
Bound roofline_bound(const Kernel& kernel, const Device& device);

/// Ratios and logarithms that describe a kernel on a device; never its name. `tile` is read for
/// matrix products only.
Features make_features(const Kernel& kernel, const Device& device, const Conditions& conditions,
                       const Bound& bound, Tile tile);

/// Queries that one block of fused attention computes: what FlashAttention's kernels have for head
/// sizes of 64 and 128.
inline constexpr int64_t kQueryTile = 128;
/// Tokens and columns of one block of an experts' grouped product: the smallest usual tile.
inline constexpr int64_t kExpertTile = 64;

/// Tiles of a kernel, one per block, and the waves they take with one block on each SM.
struct Waves {
  double tiles = 1;
  double waves = 1;      ///< ceil(tiles / sm)
  double occupancy = 1;  ///< tiles / (waves · sm): 1 where the last wave is full
};
/// `tile` is read for matrix products only.
Waves count_waves(const Kernel& kernel, const Device& device, Tile tile);

}  // namespace tilecast
