#pragma once

// The instruction dependency graph, evaluated as instructions are issued. A node is an instruction
// in an object; it enters when all its predecessors have left:
// - the object before it on its way (fetch stage, pipeline stages, unit),
// - the object's previous users: a stage holds `capacity` instructions, a unit one at a time,
// - the writers of what it reads, the writers and readers of what it overwrites,
// - the memories it uses: their ports and requests in flight,
// - the issue buffer: an instruction is fetched when one of its places is free.
// The graph itself is not stored: only the times that later instructions can depend on.

#include <cstdint>
#include <span>
#include <vector>

#include "accelerator/machine.h"
#include "accelerator/program.h"

namespace tilecast::accelerator {

/// When an instruction was where.
struct Passage {
  Ticks fetched = 0;
  Ticks entered = 0;  ///< its unit
  Ticks completed = 0;
};

/// Runs the instructions of one nest on one machine.
class Simulator {
 public:
  Simulator(const Machine& machine, const LoopNest& nest);

  Ticks end() const { return times_[end_]; }

  Passage issue(int32_t instruction);
  void advance(int32_t ring);
  void fence();

  /// Numbers of a state: `time_count` times, the last being the end of all that ran, and what
  /// caches hold that look up addresses.
  size_t state_size() const { return times_.size() + tags_.size(); }
  size_t time_count() const { return times_.size(); }
  /// Writes the state relative to the earliest time at which an instruction can be fetched: before
  /// it no later one enters anything, and earlier times are equal to it. Returns that time. From
  /// equal states all goes on equally.
  Ticks canonical(std::span<Ticks> state) const;
  /// Continues from a canonical state at time 0.
  void restore(std::span<const Ticks> state);

 private:
  struct Pool {
    size_t first;
    size_t size;
  };
  Ticks* least(const Pool& pool);
  Ticks next_fetch(size_t fetch) const;
  Ticks memory_free(const Instruction& instruction) const;
  size_t slot(Slot slot) const;
  Ticks lookup(const MemoryUse& use);

  const Machine& machine_;
  const LoopNest& nest_;
  std::vector<Pool> buffers_, stages_;
  size_t units_ = 0, memories_ = 0, written_ = 0, read_ = 0, fence_ = 0, end_ = 0;
  std::vector<size_t> tags_first_;
  /// Fetch times, issue buffers, stage entries, units, memories, slots written, slots read, the
  /// fence, and the end of all that ran.
  std::vector<Ticks> times_;
  std::vector<uint16_t> rings_;
  std::vector<int64_t> tags_;
};

}  // namespace tilecast::accelerator
