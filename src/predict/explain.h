#pragma once

// Why a kernel takes its time: the terms of its law, what was learned, and what was measured.

#include <optional>
#include <string>
#include <string_view>

#include "predict/law.h"
#include "predict/predictor.h"
#include "predict/weights.h"

namespace tilecast {

/// What the weights know of measurements like a kernel. They hold no rows, but say which devices,
/// software, precisions and sizes the rows were of.
struct NearestRows {
  KernelClass of;            ///< the class whose residual counts
  bool own_class = false;    ///< whether it is the device's own
  std::string device;        ///< id of the most similar measured device of the class
  double similarity = 0;     ///< 1: the same data sheet
  bool on_device = false;    ///< rows of that device hold the software and precision
  bool in_class = false;     ///< rows of another device of the class do
  bool anywhere = false;     ///< rows of any device do
  std::string_view outside;  ///< the feature that is furthest outside the range of rows; "": none
};

struct Explanation {
  double clock_hz = 0;
  double roofline_s = 0;  ///< the least time that the data sheet allows
  /// Of kernels with a learned model.
  std::optional<LawTime> law;
  double power_s = 0;                  ///< part of the law that the power of the board adds
  double learned_factor = 1;           ///< forecast over law
  std::optional<NearestRows> nearest;  ///< nullopt: no class counts, the law is alone
};

/// Of a kernel whose time is known.
Explanation explain(const Kernel& kernel, const Device& device, const Conditions& conditions,
                    const KernelTime& time, const Weights& weights);

}  // namespace tilecast
