#pragma once

#include <optional>

#include "devices/device.h"
#include "graph/dtype.h"
#include "ops/kernel.h"
#include "predict/features.h"

namespace tilecast {

/// The law of the board's power: a card whose power, over the energy that its silicon needs for a
/// FLOP, is less than its peak rate runs long matrix products below its boost clock.
/// `vector_pj_per_flop` is that energy on the vector lanes in a process of the 16 nm class, board
/// losses and memory included, fitted by training (the least that any card at hand shows).
/// Returns the rate that power allows in FLOP/s; nullopt where the law says nothing: units other
/// than the vector lanes have not been measured at their power limit.
/// Source: P4 (75 W, 16 nm) and T4 (70 W, 12 nm) both stop at 17.7 pJ/FLOP.
/// Not modelled: temperature, the time until the limit bites, memory-bound kernels.
std::optional<double> power_limited_flops_per_s(const Device& device, DType dtype,
                                                double vector_pj_per_flop);

/// The logit of utilization that the law allows a kernel; far above all others where it does not
/// bind.
float power_cap_logit(const Kernel& kernel, const Device& device, const Bound& bound,
                      double vector_pj_per_flop);

/// The device's process node; that of current data-center GPUs where its file does not say.
double process_node_nm(const Device& device);

/// Energy of a FLOP in the device's process over that in the 16 nm class.
double process_energy_ratio(const Device& device);

}  // namespace tilecast
