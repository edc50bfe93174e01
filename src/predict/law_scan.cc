// The law of linear recurrences (gated delta nets, Mamba-2), by kernels that work in chunks of
// tokens: the products of all chunks on the matrix units, and the states from chunk to chunk, one
// after the other.

#include <algorithm>
#include <cmath>

#include "predict/law.h"

namespace tilecast {

LawTime scan_law(const Kernel& kernel, const Chip& chip, const Conditions& conditions) {
  constexpr double kLaunchUs = 4, kPrefillLaunchUs = 30;  // one kernel; about six for prompts
  constexpr double kChunk = 64;                           // tokens
  constexpr double kChunkCycles = 1200;                   // of a head's state from one to the next
  const auto& scan = std::get<Scan>(kernel.shape);
  const auto bytes = static_cast<double>(kernel.bytes());
  const double warm =
      conditions.caches == Caches::kCold ? 0 : 1 - ramp(bytes / chip.l2_bytes, 0.75, 1.25);
  const double memory_s = bytes * ((1 - warm) / chip.dram_bytes_per_s +
                                   warm / std::max(chip.l2_bytes_per_s(24), chip.dram_bytes_per_s));
  const auto tokens = static_cast<double>(scan.tokens);
  if (scan.tokens == 1) return {launch_latency_s(kLaunchUs, chip) + memory_s};
  const double heads = static_cast<double>(scan.batch) * static_cast<double>(scan.heads);
  const double chunks = std::ceil(tokens / kChunk);
  const double chain_s =
      chip.seconds(chip.units * chunks * kChunkCycles * waves_of(heads / chip.sms, 0.5));
  // Reads and writes between the kernels of a layer: about three times its operands.
  constexpr double kPasses = 3;
  return {launch_latency_s(kPrefillLaunchUs, chip) + kPasses * memory_s + chain_s};
}

}  // namespace tilecast
