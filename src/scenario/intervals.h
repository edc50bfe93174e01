#pragma once

// Arithmetic on times with their 80 % intervals.

#include <cmath>
#include <map>
#include <string_view>

#include "tilecast/result.h"

namespace tilecast {

inline Interval scaled(const Interval& x, double factor) {
  return {x.value * factor, x.low * factor, x.high * factor};
}

/// How far a sum of kernels may be off. Part of a predictor's error is common to all its kernels
/// and adds up. The rest is independent from kernel to kernel and partly cancels, as do the errors
/// of different predictors.
class SummedErrors {
 public:
  /// A summand that may be `down` less and `up` more. `predictor` must outlive the sum.
  void add(std::string_view predictor, double common_share, double down, double up) {
    const double share = std::sqrt(common_share);
    Deviation& sum = common_[predictor];
    sum.low += share * down;
    sum.high += share * up;
    apart_.low += (1 - common_share) * down * down;
    apart_.high += (1 - common_share) * up * up;
  }
  double low() const { return total(&Deviation::low); }
  double high() const { return total(&Deviation::high); }

 private:
  struct Deviation {
    double low = 0, high = 0;
  };
  double total(double Deviation::* end) const {
    double squares = apart_.*end;
    for (const auto& [predictor, deviation] : common_) squares += deviation.*end * (deviation.*end);
    return std::sqrt(squares);
  }

  std::map<std::string_view, Deviation> common_;
  Deviation apart_;  ///< squares
};

}  // namespace tilecast
