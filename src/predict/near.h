#pragma once

#include <vector>

#include "devices/device.h"
#include "predict/weights.h"

namespace tilecast {

/// What is known of a device counts for another down to this similarity.
inline constexpr float kNegligible = 0.02f;

/// A residual that counts on a device, and how much.
struct Near {
  const DeviceResidual* residual;
  float weight;
};

/// How much each of the net's residuals counts on a device (simple kriging over the data sheets:
/// a measured device gets its own in full and no other's).
std::vector<float> residual_weights(const Net& net, const Device& device);

/// Those that count.
std::vector<Near> near_residuals(const Net& net, const Device& device);

/// What single calls on an idle machine add to a net's kernels: a measured device's own, or what
/// the machines of the others say.
CallOverhead call_overhead(const Net& net, const Device& device);

}  // namespace tilecast
