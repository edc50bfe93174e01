#pragma once

#include <array>

#include "devices/device.h"

namespace tilecast {

/// Numbers that tell devices apart, in log2: ratios and sizes of the data sheet, never a name.
inline constexpr size_t kSignatureSize = 6;
using Signature = std::array<float, kSignatureSize>;

/// log2 of fp32 rate over bandwidth, L2 bytes, SMs, boost clock, FLOPs per SM and clock,
/// power over fp32 rate.
Signature signature_of(const Device& device);

/// Least similarity at which knowledge of a device counts for another.
inline constexpr float kNegligible = 0.02f;

/// How far what was learned on one device holds for another: 1 for the same data sheet, falling as
/// exp(-d² / 2l²) of the distance d in log2, l = 1/2 (a device whose sheet differs by 40 % in one
/// figure keeps 61 %, one that differs by a factor of 4 nothing).
float similarity(const Signature& a, const Signature& b);

}  // namespace tilecast
