#pragma once

// What the measurements behind a learned model say about one kernel: whether such a kernel was
// measured, and how far forecasts of such kernels are off.

#include <span>
#include <string_view>
#include <vector>

#include "predict/near.h"

namespace tilecast {

/// What the measurements say about a combination of software and precision on a device.
struct Coverage {
  Combination combination;
  std::string_view missing;   ///< what was not measured: a feature's name; "" where all was
  std::vector<bool> by_near;  ///< whether the rows of a near device hold it
};

/// Looks kernels up in what a model was trained on, for one device and the device residuals near
/// it.
class Coverages {
 public:
  Coverages(const Net& net, std::span<const Near> near, const Device& device);

  /// Valid until the next call. A batch of kernels holds few combinations: each is looked up once.
  const Coverage& of(const Combination& combination);
  /// What of a kernel no row of the model's training was like: the name of a feature, the last that
  /// holds of dtype, scheme, software or combination; batch, backward or convolution; vendor. ""
  /// where all was measured.
  std::string_view unmeasured(const Kernel& kernel, const Coverage& coverage) const;

 private:
  const Net& net_;
  std::span<const Near> near_;
  bool knows_vendor_;
  std::vector<Coverage> known_;
};

/// How far measurements lie from a forecast: logarithms of the interval's factors.
struct Spread {
  double low, high;
  double common_share;  ///< see IntervalLaw
};

/// That of left-out devices, or nearer to that of a measured device the more alike the two are. A
/// near device whose rows do not hold the combination says nothing of its errors. `bound` is in
/// latency floors.
Spread spread_of(const Net& net, std::span<const Near> near, const Coverage& coverage,
                 double bound);

}  // namespace tilecast
