#include "tilecast/result.h"

namespace tilecast {

std::vector<MemoryBlock> memory_blocks(const MemoryTimeline& t) {
  std::vector<MemoryBlock> blocks;
  for (size_t i = 0; i < t.points.size(); ++i) {
    const MemoryPoint& point = t.points[i];
    const bool same = !blocks.empty() && t.points[blocks.back().highest].phase == point.phase &&
                      t.points[blocks.back().highest].segment == point.segment &&
                      t.points[blocks.back().highest].repetition == point.repetition;
    if (!same) blocks.push_back({.first = i, .last = i, .highest = i});
    MemoryBlock& block = blocks.back();
    block.last = i;
    if (point.parts.sum() > t.points[block.highest].parts.sum()) block.highest = i;
  }
  return blocks;
}

std::vector<MemoryRepetition> MemoryTimeline::repetitions() const {
  std::vector<MemoryRepetition> repetitions;
  for (const MemoryBlock& block : memory_blocks(*this))
    repetitions.push_back({points[block.highest], points[block.last].parts.sum()});
  return repetitions;
}

}  // namespace tilecast
