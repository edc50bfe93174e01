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
#include <vector>

#include "accelerator/machine.h"
#include "accelerator/program.h"

namespace tilecast::accelerator {

/// What an instruction waited for last before it entered its unit.
enum class Stall : uint8_t { kNone, kUnit, kData, kMemory, kStage, kFetch };
inline constexpr size_t kStallCount = 6;

/// What instructions did, summed.
struct Activity {
  int64_t instructions = 0;
  int64_t macs = 0;
  std::vector<Ticks> unit_busy;
  std::vector<Ticks> memory_busy;
  std::vector<Ticks> fetch_busy;
  std::vector<int64_t> memory_bytes;
  std::vector<double> unit_energy_j;
  std::array<Ticks, kStallCount> stall{};

  void add(const Activity& other, int64_t times = 1);
  Activity minus(const Activity& other) const;
};

/// All times that later instructions depend on.
struct State {
  /// Layout: fetch times, issue buffers, stage entries, units, memories, slots written, slots read,
  /// and the end of all that ran.
  std::vector<Ticks> times;
  std::vector<uint16_t> rings;
  std::vector<int64_t> tags;  ///< of caches that look up addresses
  bool operator==(const State&) const = default;
};

/// When an instruction was where.
struct Passage {
  Ticks fetched = 0;
  Ticks entered = 0;  ///< its unit
  Ticks completed = 0;
  Stall stall = Stall::kNone;
};

/// Runs the instructions of one nest on one machine.
class Simulator {
 public:
  Simulator(const Machine& machine, const LoopNest& nest);

  const State& state() const { return state_; }
  const Activity& activity() const { return activity_; }
  Ticks end() const { return state_.times[end_]; }
  /// Their times are the first of a state.
  size_t fetch_count() const { return machine_.fetches.size(); }

  Passage issue(int32_t instruction);
  void advance(int32_t ring);
  void fence();

  /// The state relative to the earliest fetch stage, from which on every later instruction enters:
  /// times before it are equal to it. `base` gets that time. States that are equal behave equally.
  State canonical(Ticks* base) const;
  /// Continues from a canonical state at a time.
  void restore(const State& canonical, Ticks base);
  void add_activity(const Activity& activity, int64_t times) { activity_.add(activity, times); }

 private:
  struct Pool {
    size_t first;
    size_t size;
  };
  Ticks* least(const Pool& pool);
  Ticks memory_free(const Instruction& instruction) const;
  size_t slot(Slot slot) const;
  Ticks lookup(const MemoryUse& use);

  const Machine& machine_;
  const LoopNest& nest_;
  std::vector<Pool> buffers_, stages_;
  size_t units_ = 0, memories_ = 0, written_ = 0, read_ = 0, fence_ = 0, end_ = 0;
  std::vector<size_t> tags_first_;
  State state_;
  Activity activity_;
};

}  // namespace tilecast::accelerator
