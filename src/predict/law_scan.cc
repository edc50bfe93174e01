// The law of linear recurrences (gated delta nets, Mamba-2), by kernels that work in chunks of
// tokens: the products of all chunks on the matrix units, and the states from chunk to chunk, one
// after the other.

#include <algorithm>
#include <cmath>

#include "predict/law.h"

namespace tilecast {

LawTime scan_law(const Kernel& kernel, const Chip& chip, const Conditions& conditions) {
  const ScanConstants& c = chip.laws.scan;
  const auto& scan = std::get<Scan>(kernel.shape);
  const auto bytes = static_cast<double>(kernel.bytes());
  const double warm = conditions.caches == Caches::kCold
                          ? 0
                          : 1 - ramp(bytes / chip.l2_bytes, c.all_in_l2_ratio, c.none_in_l2_ratio);
  const double l2 = std::max(chip.l2_bytes_per_s(c.l2_bytes_per_cycle), chip.dram_bytes_per_s);
  const double memory_s = bytes * ((1 - warm) / chip.dram_bytes_per_s + warm / l2);
  const auto tokens = static_cast<double>(scan.tokens);
  if (scan.tokens == 1) {
    const double start_s = launch_latency_s(c.step_launch_us, chip);
    return {start_s + memory_s, {}, start_s, memory_s};
  }
  const double heads = static_cast<double>(scan.batch) * static_cast<double>(scan.heads);
  const double chunks = std::ceil(tokens / c.chunk_tokens);
  const double chain_s =
      chip.seconds(chip.units * chunks * c.chunk_cycles * waves_of(heads / chip.sms, c.idle_share));
  const double start_s = launch_latency_s(c.prompt_launch_us, chip);
  const double passes_s = c.prompt_passes * memory_s;
  return {start_s + passes_s + chain_s, {}, start_s, passes_s, chain_s};
}

}  // namespace tilecast
