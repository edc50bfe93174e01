#include "predict/chip.h"

#include <algorithm>
#include <cmath>

#include "devices/vendor.h"

namespace tilecast {
namespace {

/// The shares of GDDR were found on cards whose error correction takes a part of the bus.
double uncorrected_ratio(const ChipConstants& c, const Gpu& gpu) {
  return is_hbm(gpu.memory_type) || gpu.inline_ecc == InlineEcc::kOn ? 1 : 1 / c.inline_ecc_share;
}

/// Share of the DRAM bandwidth of the data sheet that large matrix products reach.
double reached_share(const ChipConstants& c, const Gpu& gpu) {
  const MemoryType type = gpu.memory_type;
  if (!is_hbm(type)) return c.gddr_dram_share * uncorrected_ratio(c, gpu);
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
      dram_bytes_per_s(reached_share(laws.chip, gpu) * of.memory_bytes_per_s /
                       scales.factor(LawConstant::kDram)),
      uncorrected(uncorrected_ratio(laws.chip, gpu)),
      hbm(is_hbm(gpu.memory_type)),
      amd(is_amd(gpu.architecture)),
      cdna3(is_cdna3_or_later(gpu.architecture)),
      units(scales.factor(LawConstant::kUnits)),
      blocks(scales.factor(LawConstant::kBlocks)),
      start(scales.factor(LawConstant::kStart)),
      energy(scales.factor(LawConstant::kEnergy)),
      power_log(std::log(laws.matmul.power.to_s / laws.matmul.power.from_s)),
      dram_time_(scales.factor(LawConstant::kDram)),
      l2_time_(scales.factor(LawConstant::kL2)) {}

UnitsPower::UnitsPower(const Chip& chip, double hbm_j_per_flop, double gddr_j_per_flop,
                       double flops_per_s)
    : hbm_(chip.hbm) {
  const double energy = chip.energy * (hbm_ ? hbm_j_per_flop : gddr_j_per_flop);
  share_of_board_ = demand_ = energy * flops_per_s / chip.board_power_w;
  if (hbm_) return;
  const PowerConstants& c = chip.laws.power;
  if (chip.gpu.process_nm.value_or(0) >= c.old_process_nm) demand_ *= c.old_process_ratio;
  demand_ /= c.held_share - c.idle_share - c.clock_share - c.busy_share;
}

double ramp(double x, double low, double high) {
  return std::clamp((x - low) / (high - low), 0.0, 1.0);
}

double launch_latency_s(double microseconds, const Chip& chip) {
  return chip.start * microseconds * kMicrosecond *
         std::sqrt(chip.laws.chip.launch_reference_hz / chip.clock_hz);
}

}  // namespace tilecast
