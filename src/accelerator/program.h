#pragma once

// A layer on an accelerator as a nest of loops over instructions. It is a graph of shared nodes, so
// that billions of instructions take no memory: a loop states how often its body runs.

#include <array>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

namespace tilecast::accelerator {

/// Times inside the simulator, in 1/64 of a clock cycle: whole numbers, so that equal states are
/// found equal, and fine enough for rates such as 16 requests in 150 cycles.
using Ticks = int64_t;
inline constexpr Ticks kTicksPerCycle = 64;

/// A place whose data an instruction depends on: a register, or a block of a memory. With a ring,
/// the place moves on: slot `base + position of the ring`.
struct Slot {
  uint16_t base = 0;
  uint16_t ring = kNoRing;
  static constexpr uint16_t kNoRing = 0xffff;
  bool operator==(const Slot&) const = default;
};

/// Use of a memory by an instruction.
struct MemoryUse {
  uint16_t memory = 0;  ///< index into Machine::memories
  Ticks busy = 0;       ///< for which its ports, or its requests in flight, are taken
  int64_t bytes = 0;
  /// Byte address of a cache access that is looked up by its tag; below 0: the misses are counted
  /// in `busy`.
  int64_t address = -1;
  bool waits = true;  ///< false: its ports are never busy, only the bytes count
  bool operator==(const MemoryUse&) const = default;
};

/// One instruction with all its times: equal attributes are stored once.
struct Instruction {
  uint16_t operation = 0;  ///< index into Machine::operations
  uint16_t unit = 0;       ///< index into Machine::units
  Ticks latency = 0;       ///< from entering the unit until its results are there
  Ticks interval = 0;      ///< until the unit takes the next one
  std::vector<Slot> reads;
  std::vector<Slot> writes;
  /// Written in part, or added to: waits for readers of the place, not for its other writers.
  std::vector<Slot> merges;
  /// Passed on through a pipeline register: waits for nobody.
  std::vector<Slot> forwards;
  std::vector<MemoryUse> memories;
  int64_t macs = 0;
  double energy_j = 0;  ///< of the unit; memories have their own
  bool operator==(const Instruction&) const = default;
};

using NodeId = int32_t;

struct ProgramNode {
  enum class Kind : uint8_t { kInstruction, kAdvance, kFence, kSequence, kLoop };
  Kind kind = Kind::kSequence;
  int32_t index = 0;  ///< of an instruction, or of the ring to advance
  int64_t count = 1;  ///< of a loop
  int32_t first = 0;  ///< children: Program::children[first, first + size)
  int32_t size = 0;
  int64_t instructions = 0;  ///< that one run of the node issues
};

/// The nest of one layer.
struct LoopNest {
  std::vector<Instruction> instructions;
  std::vector<ProgramNode> nodes;
  std::vector<NodeId> children;
  std::vector<uint16_t> ring_sizes, ring_bases;  ///< places of each ring, and its first slot
  uint16_t slots = 0;
  NodeId root = -1;

  std::span<const NodeId> children_of(const ProgramNode& node) const {
    return std::span(children).subspan(static_cast<size_t>(node.first),
                                       static_cast<size_t>(node.size));
  }
  int64_t instruction_count() const {
    return nodes.empty() ? 0 : nodes[static_cast<size_t>(root)].instructions;
  }
};

/// Builds a nest from the inside out. Equal nodes are one node, and equal parts that follow each
/// other a loop, so that what a node does from a state is found once. Throws Error{kUnsupported}
/// above 2^62 instructions.
class LoopNestBuilder {
 public:
  Slot slot();               ///< a new place
  Slot ring(uint16_t size);  ///< `size` new places that are used in turn
  NodeId instruction(Instruction instruction);
  NodeId advance(Slot ring);  ///< moves a ring on by one
  /// Later instructions are fetched when all before the previous fence have completed: two tiles
  /// are in flight.
  NodeId fence();
  NodeId sequence(const std::vector<NodeId>& parts);
  NodeId loop(int64_t count, NodeId body);
  LoopNest finish(NodeId root);

 private:
  NodeId add(ProgramNode node, const std::vector<NodeId>& children);
  LoopNest nest_;
  std::map<std::vector<int64_t>, NodeId> known_;  ///< by kind, index, count and children
};

}  // namespace tilecast::accelerator
