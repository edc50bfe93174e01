#include "predict/chip.h"

#include <algorithm>
#include <cmath>

#include "devices/vendor.h"

namespace tilecast {
namespace {

/// Share of the DRAM bandwidth of the data sheet that large matrix products reach, by the type of
/// memory (research/law_study.md). One share for all types of HBM3, so that between two boards of
/// one architecture only the bandwidth counts.
double reached_share(MemoryType type) {
  if (!is_hbm(type)) return 0.82;
  return type >= MemoryType::kHbm3 ? 0.87 : 0.80;
}

}  // namespace

Chip::Chip(const Device& of, const LawScales& scales)
    : device(of),
      gpu(of.gpu()),
      sms(static_cast<double>(gpu.sm_count)),
      clock_hz(gpu.boost_clock_hz),
      l2_bytes(static_cast<double>(gpu.l2_bytes)),
      board_power_w(gpu.board_power_w),
      dram_bytes_per_s(reached_share(gpu.memory_type) * of.memory_bytes_per_s /
                       scales.factor(LawConstant::kDram)),
      hbm(is_hbm(gpu.memory_type)),
      amd(is_amd(gpu.architecture)),
      units(scales.factor(LawConstant::kUnits)),
      blocks(scales.factor(LawConstant::kBlocks)),
      start(scales.factor(LawConstant::kStart)),
      energy(scales.factor(LawConstant::kEnergy)),
      dram_time_(scales.factor(LawConstant::kDram)),
      l2_time_(scales.factor(LawConstant::kL2)) {}

double ramp(double x, double low, double high) {
  return std::clamp((x - low) / (high - low), 0.0, 1.0);
}

double launch_latency_s(double microseconds, const Chip& chip) {
  constexpr double kReferenceHz = 1.7e9;
  return chip.start * microseconds * 1e-6 * std::sqrt(kReferenceHz / chip.clock_hz);
}

}  // namespace tilecast
