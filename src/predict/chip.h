#pragma once

#include <cmath>
#include <cstdint>

#include "devices/device.h"
#include "laws/constants.h"
#include "predict/law_scales.h"

namespace tilecast {

/// Numbers of a GPU's data sheet, as the laws read them.
struct Chip {
  const Device& device;
  const Gpu& gpu;
  const LawConstants& laws;
  double sms, clock_hz, l2_bytes, board_power_w;
  /// DRAM bandwidth that large kernels reach, bytes/s.
  double dram_bytes_per_s;
  /// What GDDR reaches over the same memory with inline error correction; 1: it corrects.
  double uncorrected;
  bool hbm;
  bool amd;
  bool cdna3;  ///< or later
  /// Factors on constants of the laws that no member above holds.
  double units, blocks, start, energy;
  /// Logarithm of the times between which the power of the board begins to count.
  double power_log;

  /// `scales`: what a calibration has moved the constants of the law by. `device` and `laws` must
  /// outlive it.
  Chip(const Device& device, const LawConstants& laws, const LawScales& scales = {});
  /// Seconds of this many clock cycles.
  double seconds(double cycles) const { return cycles / clock_hz; }
  /// L2 bandwidth of all SMs at so many bytes per clock and SM, bytes/s.
  double l2_bytes_per_s(double per_clock_per_sm) const {
    return per_clock_per_sm * sms * clock_hz / l2_time_;
  }
  /// Bandwidth that kernels reach if they reach this share of the data sheet's, bytes/s.
  double reached_dram_bytes_per_s(double share) const {
    return share * device.memory_bytes_per_s / dram_time_;
  }

 private:
  double dram_time_, l2_time_;
};

/// Matrix units at their full rate, and the power that the board has for them.
class UnitsPower {
 public:
  /// Energies in J/FLOP by the memory of the board.
  UnitsPower(const Chip& chip, double hbm_j_per_flop, double gddr_j_per_flop, double flops_per_s);
  /// How much longer a step takes where this share of the SMs is busy. With HBM each joule counts,
  /// as bursts show. Boards with GDDR that have more power than the units need are not slowed down:
  /// L40S at 1.6 times its power is, a GeForce at half its rate is not.
  double stretch(double busy) const {
    if (hbm_) return 1 + demand_ * busy;
    const double squared = demand_ * busy * demand_ * busy;
    return std::sqrt(std::sqrt(1 + squared * squared));
  }
  /// Power of the units over that of the board.
  double share_of_board() const { return share_of_board_; }

 private:
  bool hbm_;
  double share_of_board_, demand_;
};

inline constexpr double kMicrosecond = 1e-6;  ///< seconds
/// Stands for the time of what cannot be.
inline constexpr double kNever = 1e30;
/// Bytes of a number in FP32.
inline constexpr double kFp32Bytes = sizeof(float);

/// 0 below `low`, 1 above `high`, linear in between.
double ramp(double x, double low, double high);

/// The least whole number that is not below x, for 0 <= x < 2^53. std::ceil is a call on processors
/// without SSE 4.1, which builds do not require.
inline double ceil_of(double x) {
  const auto whole = static_cast<double>(static_cast<int64_t>(x));
  return whole < x ? whole + 1 : whole;
}

/// Blocks of equal work on the SMs: how many of them run one after the other. Below one wave it is
/// 1. `idle_share` is the part of a partly filled last wave that counts: 0 where blocks start as
/// soon as others end, 1 where all of a wave end together.
inline double waves_of(double blocks_per_sm, double idle_share) {
  if (blocks_per_sm <= 1) return 1;
  return blocks_per_sm + idle_share * (ceil_of(blocks_per_sm) - blocks_per_sm);
}

/// x^2.5. Powers without calls where it can be: a law is computed for every kernel.
inline double power_2_5(double x) { return x * x * std::sqrt(x); }

/// Seconds of two kinds of work, each of which hides most of the other.
inline double overlapped_s(double a, double b) {
  constexpr double kExponent = 2.5;
  return std::pow(power_2_5(a) + power_2_5(b), 1 / kExponent);
}

/// Latency of a launch, given for the clock chip.launch_reference_hz. It falls with
/// the root of the clock.
double launch_latency_s(double microseconds, const Chip& chip);

}  // namespace tilecast
