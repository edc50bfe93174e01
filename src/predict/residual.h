#pragma once

// Which residual counts on a device, and what the model adds to a law:
//   time = law(kernel, device, conditions) · exp(residual of the class(kernel))
// Forecasts, training and calibration compute it here.

#include <span>

#include "predict/kernel_kinds.h"
#include "predict/weights.h"

namespace tilecast {

/// The residual that counts on a device.
struct Applied {
  const ClassResidual* residual = nullptr;  ///< nullptr: none, the law alone
  bool own_class = false;                   ///< else borrowed from another architecture
  bool libraries = false, apart = false;    ///< see ClassResidual::forest_of
  bool only_faster = false;                 ///< what it adds to the law does not count
  /// How alike the device is to the most similar measured device of the class, and which that is.
  float similarity = 0;
  const MeasuredDevice* nearest = nullptr;
  /// The interval of forecasts for classes that were not measured.
  const IntervalLaw* unmeasured_class = nullptr;
  /// Its widths by precision, and those of the class's interval; nullptr: none.
  const PrecisionWidths *class_widths = nullptr, *sibling_widths = nullptr;
};
Applied applied_residual(const KindModel& model, KernelKind kind, const Device& device);

/// How far a kernel lies outside the training range.
struct Outside {
  double excess = 0;   ///< in widths of that range
  size_t feature = 0;  ///< which is furthest outside
};

/// Holds features in the training range and standardizes them: writes as many as the model has.
Outside standardize(const KindModel& model, const Features& features, float* inputs);

/// Standardized features of several kernels, one row after the other.
struct InputRows {
  const float* data = nullptr;
  size_t width = 0;
  size_t count = 0;
};

/// Adds the residual to the logarithms of the factors on the law.
void add_residual(const Applied& applied, Software software, InputRows inputs,
                  std::span<float> log_factors);

/// Time that single calls of an operator on an idle machine add to a kernel: the measured device's
/// own, or the kind's on the machines of other devices.
CallOverhead call_overhead(const KindModel& model, KernelKind kind, const Device& device,
                           std::string_view op);

/// A kernel's size for intervals: its law in units of a short launch, 2 us.
double size_of(double law_s);

}  // namespace tilecast
