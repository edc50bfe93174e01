#pragma once

// The efficiency model: how a kernel's time follows from its bound and its features.
//   logit = min(base model, what the board's power allows) + Σ device residuals that are networks
//   time  = (latency floor + bound · (1 + exp(-logit))) · exp(Σ device residuals that are forests)
// 1 + exp(-logit) is 1 / utilization, so no time is below the bound. Forecasts, training and
// calibration compute it here.

#include <algorithm>
#include <cmath>
#include <span>

#include "predict/bound.h"
#include "predict/near.h"

namespace tilecast {

/// Beyond it a logit changes nothing: the loss is less than a part in 10^17 of the bound.
inline constexpr float kHighestLogit = 40.0f;

/// The time of one kernel as a function of the logit of its utilization.
struct Law {
  double floor_s = 0;  ///< latency_floor_s
  double bound_s = 0;  ///< Bound::law_s
  double lowest_logit = 0;

  /// exp(-logit), the logit held between the lowest and the highest: what utilization loses, as a
  /// share of the bound.
  double loss(double logit) const;
  double seconds(double logit) const;
  /// The logit at which the law takes `seconds`. Faster than the bound can't be forecast; 0.25 %
  /// above it is as near as makes sense.
  double logit(double seconds) const;
  /// The bound in latency floors, which says how long a kernel is.
  double size() const;
};
Law law_of(NetKind kind, const Bound& bound, const Device& device);

/// The law as training takes it: the logarithm of the time in latency floors, and its derivative
/// by the logit, in single precision.
struct LogTime {
  float value, slope;
};
// Static: the files of training are compiled for other instruction sets than those of forecasts,
// and the linker must not put one's code into the other.
static inline LogTime log_time(float bound, float logit, float lowest_logit) {
  const float loss = bound * std::exp(-std::clamp(logit, lowest_logit, kHighestLogit));
  const float time = 1.0f + bound + loss;
  return {std::log(time), -loss / time};
}

/// How far a kernel lies outside the training range.
struct Outside {
  double excess = 0;   ///< in widths of that range
  size_t feature = 0;  ///< which is furthest outside
};

/// Holds features in the training range and standardizes them: writes as many as the net has.
Outside standardize(const Net& net, const Features& features, float* inputs);

/// Standardized features of several kernels, one row after the other.
struct InputRows {
  const float* data = nullptr;
  size_t width = 0;
  size_t count = 0;
};

/// The logits of the base model, none above its row's cap (power_cap_logit).
void base_logits(const Net& net, InputRows inputs, std::span<const float> caps,
                 std::span<float> logits);

/// Adds the residuals of the near devices: networks to the logits, forests to the logarithms
/// of factors on the time.
void add_residuals(std::span<const Near> near, Software software, InputRows inputs,
                   std::span<float> logits, std::span<float> log_factors);

}  // namespace tilecast
