#pragma once

// The laws: how long a kernel takes, by its work, the data sheet and the software. Each kind of
// kernels has one, a formula with few constants that is the same for all GPUs. The constants are
// data (src/laws, data/laws). Derivation, fit and errors: research/law_study.md. A law is no lower
// bound; forecasts multiply it by a learned residual (residual.h).
//
// Laws fall, or stay the same, if any of these grows while the others stay the same: bandwidth, L2,
// clock, number of SMs, rates per clock and SM, board power. They have no steps in numbers that are
// continuous. They differ between architectures and between HBM and GDDR.

#include <cmath>
#include <cstdint>
#include <optional>

#include "graph/dtype.h"
#include "laws/tile.h"
#include "ops/kernel.h"
#include "predict/chip.h"
#include "predict/conditions.h"

namespace tilecast {

struct LawTime {
  double seconds = 0;
  Tile tile{};  ///< of matrix products: the tile with which the law is shortest
  // Its terms, for people. Memory and compute overlap, each law in its own way.
  double start_s = 0;    ///< launches, and what happens before and after the work
  double memory_s = 0;   ///< bytes from DRAM and L2
  double compute_s = 0;  ///< cycles of the multiprocessors
  double busy = 1;       ///< mean share of them that has a block; less in the tail of the waves
  /// The part of the start in which activations are quantized, where the kernel before has done it.
  /// It is in `seconds`, as in measurements of the product alone.
  double fused_s = 0;
  /// Time of an earlier version's kernel over that of the measured one, which the law describes.
  double version_ratio = 1;
  /// The residual was learned from other kernels and says nothing of this one.
  bool stands_alone = false;
};
using Law = LawTime (*)(const Kernel& kernel, const Chip& chip, const Conditions& conditions);

/// What counts as no time at all: the scale of sizes in intervals, and the time within twice of
/// which nothing but latency can be seen. About what profilers show for empty kernels (guess; the
/// measurement kit's null kernel will settle it).
inline constexpr double kLatencyFloor = 2e-6;

/// The start of a kernel that streams memory. At another clock than that of the data sheet it moves
/// as the latency of a launch does (launch_latency_s).
inline double stream_start_s(const Chip& chip) {
  return chip.start * chip.laws.stream.start_s / std::sqrt(chip.gpu.clock_share);
}
/// Of pairs, so that nothing is divided by zero.
inline constexpr double kFewest = 1e-9;

inline double element_bytes(DType dtype) {
  return static_cast<double>(dtype_bits(dtype)) / kBitsPerByte;
}
inline bool has_16_bits(DType dtype) { return dtype_bits(dtype) == 2 * kBitsPerByte; }
inline bool has_8_bits_or_less(DType dtype) { return dtype_bits(dtype) <= kBitsPerByte; }

/// Bits of a stored weight of a product or a layer of experts.
int64_t weight_bits(const Kernel& kernel);
/// Whether weights are stored in fewer bits than they are multiplied in: the block that multiplies
/// converts them.
bool converts_weights(const Kernel& kernel);

/// Matrix products in FP32.
LawTime single_precision_law(const Kernel&, const Chip&, const Conditions&);
/// Matrix products in all other types.
LawTime low_precision_law(const Kernel&, const Chip&, const Conditions&);
/// Convolutions and their gradients.
LawTime convolution_law(const Kernel&, const Chip&, const Conditions&);
/// Fused attention of prompts and encoders.
LawTime prefill_law(const Kernel&, const Chip&, const Conditions&);
/// Fused attention of one query per sequence.
LawTime decode_law(const Kernel&, const Chip&, const Conditions&);
/// Fused layers of experts.
LawTime experts_law(const Kernel&, const Chip&, const Conditions&);
/// Kernels that stream memory once.
LawTime stream_law(const Kernel&, const Chip&, const Conditions&);
/// Linear recurrences over tokens.
LawTime scan_law(const Kernel&, const Chip&, const Conditions&);
/// Softmax and norms.
LawTime rows_law(const Kernel&, const Chip&, const Conditions&);
/// Operators for which serving software has kernels with a block for each row.
LawTime block_rows_law(const Kernel&, const Chip&, const Conditions&);
/// These operators: RMS norms, gated activations and rotary embedding.
struct BlockRows {
  enum class Kind : uint8_t { kNorm, kGate, kRotary };
  Kind kind;
  int64_t rows, columns;
};
std::optional<BlockRows> block_rows_of(const Kernel& kernel);

}  // namespace tilecast
