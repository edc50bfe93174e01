#pragma once

#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace tilecast {

/// Groups of a law's constants, by what they describe. A calibration moves the constants of one
/// group together.
enum class LawConstant : uint8_t {
  kUnits,   ///< cycles of matrix units and lanes for their work
  kBlocks,  ///< cycles in which blocks start and end
  kDram,    ///< time of the bytes from DRAM: the reached share of its bandwidth
  kL2,      ///< time of the bytes from L2
  kStart,   ///< launches
  kEnergy,  ///< energy of a FLOP, where the board's power limits
};
inline constexpr size_t kLawConstantCount = 6;
/// Their names in files.
inline constexpr std::array<std::string_view, kLawConstantCount> kLawConstantNames = {
    "units", "blocks", "dram", "l2", "start", "energy"};

/// Factors on a law's constants, as logarithms; 0: as fitted. Each lengthens what its group
/// describes. One number for a device and a kind of kernels, so that laws stay as monotone and as
/// smooth as they are.
struct LawScales {
  std::array<double, kLawConstantCount> logs{};

  double factor(LawConstant constant) const {
    return std::exp(logs[static_cast<size_t>(constant)]);
  }
  bool operator==(const LawScales&) const = default;
};

}  // namespace tilecast
