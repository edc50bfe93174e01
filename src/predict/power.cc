#include "predict/power.h"

#include <cmath>

namespace tilecast {

double process_node_nm(const Device& device) {
  constexpr double kUnknown = 5;  // of current data-center GPUs
  return device.gpu().process_nm.value_or(kUnknown);
}

double process_energy_ratio(const Device& device) {
  // TSMC's 12 nm is a variant of its 16 nm process, and T4 needs what P4 needs. Below, energy is
  // taken to fall with the node's name (guess: TSMC states -65 % from 16 to 7 nm and -30 % from 7
  // to 5 nm at like speed, of which designs spend some on speed; a card that is limited by its
  // power at 5 nm, such as an L4, would settle it).
  constexpr double kClass16 = 16;
  const double node = process_node_nm(device);
  return node >= 12 ? 1.0 : node / kClass16;
}

std::optional<double> power_limited_flops_per_s(const Device& device, DType dtype,
                                                double vector_pj_per_flop) {
  const bool on_vector_lanes = dtype == DType::kFp32 && device.gpu().matrix_peak(dtype) == 0;
  if (!on_vector_lanes || vector_pj_per_flop <= 0) return std::nullopt;
  return device.gpu().board_power_w / (vector_pj_per_flop * 1e-12 * process_energy_ratio(device));
}

float power_cap_logit(const Kernel& kernel, const Device& device, const Bound& bound,
                      double vector_pj_per_flop) {
  constexpr float kNoCap = 20;
  if (!kernel.is_product()) return kNoCap;
  const auto rate = power_limited_flops_per_s(device, kernel.dtype, vector_pj_per_flop);
  if (!rate) return kNoCap;
  const double utilization = bound.law_s / (static_cast<double>(kernel.flops) / *rate);
  if (utilization >= 1) return kNoCap;
  return static_cast<float>(std::log(utilization / (1 - utilization)));
}

}  // namespace tilecast
