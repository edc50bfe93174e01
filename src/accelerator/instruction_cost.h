#pragma once

// The times of one instruction from the block that it works on.

#include <vector>

#include "accelerator/dataflow.h"
#include "accelerator/machine.h"
#include "accelerator/program.h"

namespace tilecast::accelerator {

/// Part of an operand that an instruction reads from, or writes to, an on-chip memory.
struct OnChipMove {
  int memory = -1;  ///< index into Machine::memories
  bool write = false;
  double rows = 0;
  double row_bytes = 0;
  int64_t bytes = 0;
};

/// The block that an instruction works on.
struct Block {
  Sizes sizes = kOnes;
  int64_t rows = 1;       ///< matrix rows that it moves or computes
  double row_bytes = 0;   ///< of a row that it moves; 0: it moves nothing
  double row_stride = 0;  ///< bytes from a row to the next in the outer memory
  double miss_ratio = 1;  ///< of its requests, in a cache
  bool fresh = false;     ///< the first with a block of the stationary operand
  int64_t pool = 1;       ///< elements of the window of a pooling that is applied as it stores
  int64_t macs = 0;
  std::vector<OnChipMove> moves;
};

/// Times of an operation on a unit: its own expressions, and the times of the memories that it
/// reads and writes. With n requests of latency L and m in flight, one is served every L / m
/// cycles, or as often as the ports move their bytes; the last arrives L later.
Instruction instruction_on(const Machine& machine, int unit, int operation, const Block& block);

}  // namespace tilecast::accelerator
