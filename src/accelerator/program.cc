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
  nest_.ring_bases.push_back(slot.base);
  return slot;
}

NodeId LoopNestBuilder::add(ProgramNode node, const std::vector<NodeId>& children) {
  std::vector<int64_t> key = {static_cast<int64_t>(node.kind), node.index, node.count};
  key.insert(key.end(), children.begin(), children.end());
  const auto [it, fresh] = known_.emplace(std::move(key), static_cast<NodeId>(nest_.nodes.size()));
  if (!fresh) return it->second;
  node.first = static_cast<int32_t>(nest_.children.size());
  node.size = static_cast<int32_t>(children.size());
  nest_.children.insert(nest_.children.end(), children.begin(), children.end());
  nest_.nodes.push_back(node);
  return it->second;
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
  struct Run {
    NodeId body;
    int64_t count;
  };
  std::vector<Run> runs;
  for (const NodeId part : parts) {
    const ProgramNode& child = nest_.nodes[static_cast<size_t>(part)];
    const bool empty = child.kind == ProgramNode::Kind::kSequence && child.size == 0;
    if (empty) continue;
    const bool loops = child.kind == ProgramNode::Kind::kLoop;
    const Run run{loops ? nest_.children_of(child).front() : part, loops ? child.count : 1};
    // Advances and fences are no loops: see `loop`.
    if (!runs.empty() && runs.back().body == run.body && child.instructions > 0)
      runs.back().count += run.count;
    else
      runs.push_back(run);
  }
  std::vector<NodeId> kept;
  ProgramNode node{.kind = ProgramNode::Kind::kSequence};
  for (const Run& run : runs) {
    kept.push_back(loop(run.count, run.body));
    const int64_t inside = nest_.nodes[static_cast<size_t>(kept.back())].instructions;
    node.instructions = std::min(kMostInstructions, node.instructions + inside);
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
