#pragma once

// Features of a problem on a chip for the solver model: sizes, divisibility, what tiles waste,
// waves on the compute units, and the data sheet's times. tools/train_tuner.py computes the same;
// features_test.cc compares both on the lines that the weights file carries.

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <string_view>

#include "devices/device.h"
#include "tuning/conv_problem.h"

namespace tilecast::tuning {

/// A GPU that has compute units of AMD, in the units of the features.
struct TunedChip {
  double units = 0;  ///< compute units
  double clock_ghz = 0;
  double gbytes_per_s = 0;
  double l2_mib = 0;
  double vector_tflops = 0;        ///< FP32
  double vector_dtype_tflops = 0;  ///< of the vector unit for the dtype
  double peak_tflops = 0;          ///< of the fastest unit for the dtype
  bool matrix_unit = false;        ///< MFMA
  Architecture architecture{};
  int kernel_class = -1;  ///< index in kMeasuredClasses; -1: none of them
};

/// `dtype`: a dtype without a rate of its own runs at that of FP32, as libraries convert it.
TunedChip tuned_chip(const Device& device, DType dtype);

inline constexpr size_t kProblemFeatures = 95;
/// Whose kernels were measured.
inline constexpr std::array kMeasuredClasses = {Architecture::kGcn5, Architecture::kCdna,
                                                Architecture::kCdna2};
inline constexpr size_t kKernelClasses = kMeasuredClasses.size();
inline constexpr size_t kFeatures = kProblemFeatures + kKernelClasses;

/// log2 of a size above 0.
inline double log2_size(double x) { return std::log2(std::max(x, 1e-9)); }
/// Computed over needed elements where `size` is cut into tiles.
inline double tile_waste(double size, double tile) { return std::ceil(size / tile) * tile / size; }

struct Features {
  std::array<float, kFeatures> x{};
  /// The least time that the data sheet allows, plus 5 us for a launch: times are learned as
  /// multiples of it.
  double roofline_us = 0;
  /// The same for kernels that are written for the vector unit.
  double vector_roofline_us = 0;
};

/// The larger of FLOPs over `peak_tflops` and bytes over bandwidth, plus a launch.
double roofline_us(const ConvProblem& problem, const TunedChip& chip, double peak_tflops);

Features features_of(const ConvProblem& problem, const TunedChip& chip);

}  // namespace tilecast::tuning
