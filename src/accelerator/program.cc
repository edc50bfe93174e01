#include "accelerator/program.h"

#include <algorithm>

#include "base/check.h"

namespace tilecast::accelerator {
namespace {

constexpr int64_t kMostInstructions = int64_t{1} << 62;

}  // namespace

Slot LoopNestBuilder::slot() {
  TILECAST_CHECK(nest_.slots < 0xfff0) << "too many slots";
  return {.base = nest_.slots++};
}

Slot LoopNestBuilder::ring(uint16_t size) {
  if (size <= 1) return slot();
  TILECAST_CHECK(nest_.slots + size < 0xfff0) << "too many slots";
  Slot slot{.base = nest_.slots, .ring = static_cast<uint16_t>(nest_.ring_sizes.size())};
  nest_.slots = static_cast<uint16_t>(nest_.slots + size);
  nest_.ring_sizes.push_back(size);
  return slot;
}

NodeId LoopNestBuilder::add(ProgramNode node, const std::vector<NodeId>& children) {
  node.first = static_cast<int32_t>(nest_.children.size());
  node.size = static_cast<int32_t>(children.size());
  nest_.children.insert(nest_.children.end(), children.begin(), children.end());
  nest_.nodes.push_back(node);
  return static_cast<NodeId>(nest_.nodes.size() - 1);
}

NodeId LoopNestBuilder::instruction(Instruction instruction) {
  std::vector<Instruction>& all = nest_.instructions;
  auto it = std::find(all.begin(), all.end(), instruction);
  if (it == all.end()) it = all.insert(all.end(), std::move(instruction));
  return add({.kind = ProgramNode::Kind::kInstruction,
              .index = static_cast<int32_t>(it - all.begin()),
              .instructions = 1},
             {});
}

NodeId LoopNestBuilder::advance(Slot ring) {
  if (ring.ring == Slot::kNoRing) return sequence({});
  return add({.kind = ProgramNode::Kind::kAdvance, .index = ring.ring}, {});
}

NodeId LoopNestBuilder::fence() { return add({.kind = ProgramNode::Kind::kFence}, {}); }

NodeId LoopNestBuilder::sequence(const std::vector<NodeId>& parts) {
  ProgramNode node{.kind = ProgramNode::Kind::kSequence};
  std::vector<NodeId> kept;
  for (const NodeId part : parts) {
    const ProgramNode& child = nest_.nodes[static_cast<size_t>(part)];
    const bool empty = child.kind == ProgramNode::Kind::kSequence && child.size == 0;
    if (empty) continue;
    kept.push_back(part);
    node.instructions = std::min(kMostInstructions, node.instructions + child.instructions);
  }
  if (kept.size() == 1) return kept.front();
  return add(node, kept);
}

NodeId LoopNestBuilder::loop(int64_t count, NodeId body) {
  if (count == 1) return body;
  const int64_t inner = nest_.nodes[static_cast<size_t>(body)].instructions;
  if (count <= 0 || inner == 0) return sequence({});
  if (inner > kMostInstructions / count)
    throw Error(ErrorKind::kUnsupported, "a layer of more than 2^62 instructions");
  return add({.kind = ProgramNode::Kind::kLoop, .count = count, .instructions = inner * count},
             {body});
}

LoopNest LoopNestBuilder::finish(NodeId root) {
  nest_.root = root;
  return std::move(nest_);
}

}  // namespace tilecast::accelerator
