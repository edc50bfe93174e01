#pragma once

// Whether the measurements behind a learned model cover a kernel: whether such a kernel was
// measured, and how far forecasts of such kernels are off.

#include <string_view>
#include <vector>

#include "predict/residual.h"

namespace tilecast {

/// Whether the measurements cover a combination of software and precision on a device.
struct Coverage {
  Combination combination;
  std::string_view missing;  ///< what was not measured: a feature's name; "" where all was
  bool other_unit = false;   ///< rows of FP32 are missing: all are of matrix units
  bool anywhere = false;     ///< whether rows of any class hold it
  bool in_class = false;     ///< whether rows of the device's class hold it
  bool on_nearest = false;   ///< whether rows of the most similar device of the class do
};

/// Looks kernels up in what a model was trained on, for one device and the residual that counts on
/// it.
class Coverages {
 public:
  Coverages(const KindModel& model, const Applied& applied, const Device& device);

  /// Valid until the next call. A batch of kernels holds few combinations: each is looked up once.
  const Coverage& of(const Combination& combination);
  /// Why this kernel counts as unmeasured: the last that holds of architecture, dtype, scheme,
  /// software or combination; batch, backward or convolution; vendor. "" where all was measured.
  std::string_view unmeasured(const Kernel& kernel, const Coverage& coverage) const;

 private:
  const KindModel& model_;
  const Applied& applied_;
  bool knows_vendor_;
  std::vector<Coverage> known_;
};

/// How far measurements lie from a forecast: logarithms of the interval's factors.
struct Spread {
  double low, high;
  double common_share;  ///< see IntervalLaw
};

/// That of left-out devices of a measured class or of left-out classes; nearer to that of a
/// measured device the more alike the two are. `size` as size_of.
Spread spread_of(const Applied& applied, const Coverage& coverage, double size);

}  // namespace tilecast
