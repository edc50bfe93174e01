#pragma once

#include "devices/device.h"
#include "laws/tile.h"
#include "ops/kernel.h"
#include "predict/conditions.h"

namespace tilecast {

/// Physics of one kernel on one device: the least time that the data sheet allows.
struct Bound {
  double compute_s = 0;  ///< FLOPs over the peak rate of the unit that runs them
  double memory_s = 0;   ///< traffic over DRAM and L2 bandwidth
  double seconds() const { return compute_s > memory_s ? compute_s : memory_s; }
};

/// With `kCold`, all traffic comes from DRAM. With warm caches, what exceeds L2 does. Throws
/// Error{kUnsupported} where the device has no unit for the kernel's dtype.
Bound physical_bound(const Kernel& kernel, const Device& device, Caches caches);

/// The classic roofline (Williams, Waterman, Patterson 2009), which knows DRAM only. Throws as
/// physical_bound.
Bound roofline_bound(const Kernel& kernel, const Device& device);

/// Whether the device has a unit that multiplies what the kernel multiplies.
bool has_unit_for(const Kernel& kernel, const Device& device);

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
