#include "predict/chip.h"

#include <algorithm>
#include <cmath>

#include "devices/vendor.h"

namespace tilecast {
namespace {

/// Share of the DRAM bandwidth of the data sheet that large matrix products reach.
double reached_share(const ChipConstants& c, MemoryType type) {
  if (!is_hbm(type)) return c.gddr_dram_share;
  return type >= MemoryType::kHbm3 ? c.hbm3_dram_share : c.hbm_dram_share;
}

}  // namespace

Chip::Chip(const Device& of, const LawConstants& constants, const LawScales& scales)
    : device(of),
      gpu(of.gpu()),
      laws(constants),
      sms(static_cast<double>(gpu.sm_count)),
      clock_hz(gpu.boost_clock_hz),
      l2_bytes(static_cast<double>(gpu.l2_bytes)),
      board_power_w(gpu.board_power_w),
      dram_bytes_per_s(reached_share(laws.chip, gpu.memory_type) * of.memory_bytes_per_s /
                       scales.factor(LawConstant::kDram)),
      hbm(is_hbm(gpu.memory_type)),
      amd(is_amd(gpu.architecture)),
      units(scales.factor(LawConstant::kUnits)),
      blocks(scales.factor(LawConstant::kBlocks)),
      start(scales.factor(LawConstant::kStart)),
      energy(scales.factor(LawConstant::kEnergy)),
      power_log(std::log(laws.matmul.power.to_s / laws.matmul.power.from_s)),
      dram_time_(scales.factor(LawConstant::kDram)),
      l2_time_(scales.factor(LawConstant::kL2)) {}

double ramp(double x, double low, double high) {
  return std::clamp((x - low) / (high - low), 0.0, 1.0);
}

double launch_latency_s(double microseconds, const Chip& chip) {
  return chip.start * microseconds * kMicrosecond *
         std::sqrt(chip.laws.chip.launch_reference_hz / chip.clock_hz);
}

}  // namespace tilecast
