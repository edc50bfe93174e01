#pragma once

// Memory over the steps of a pass: how much is in use, and when most.

#include <cstdint>
#include <vector>

#include "memory/lifetimes.h"

namespace tilecast {

/// The moment of the largest sum.
struct MemoryPeak {
  int64_t bytes = 0;    ///< of all uses
  BytesByUse by_use{};  ///< their parts
  int32_t step = 0;     ///< of Lifetimes::steps
  /// The largest sums of tensors that nodes compute, without gradients, before the optimizer step
  /// and in it; they may be at other steps.
  int64_t computed_bytes = 0, optimizer_computed_bytes = 0;
};

/// Throws Error{kInput} if bytes overflow 64 bits.
MemoryPeak find_peak(const Lifetimes& lifetimes);

/// Bytes of computed tensors, without gradients, that are in use both at a step and after it.
int64_t bytes_across(const Lifetimes& lifetimes, int32_t step);

/// Bytes in use at each step, by use. For lifetimes that are not folded.
std::vector<BytesByUse> bytes_by_step(const Lifetimes& lifetimes);

/// The use of a tensor's memory at a step of its life.
inline MemoryUse use_at(const Lifetime& life, int32_t step) {
  return life.gradient_from >= 0 && step >= life.gradient_from ? MemoryUse::kGradients : life.use;
}

}  // namespace tilecast
