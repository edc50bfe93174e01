#include "accelerator/simulator.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/budget.h"

namespace tilecast::accelerator {

Simulator::Simulator(const Machine& machine, const LoopNest& nest)
    : machine_(machine), nest_(nest) {
  size_t next = machine.fetches.size();
  for (const FetchStage& fetch : machine.fetches) {
    buffers_.push_back({next, static_cast<size_t>(fetch.issue_buffer)});
    next += buffers_.back().size;
  }
  for (const Stage& stage : machine.stages) {
    stages_.push_back({next, static_cast<size_t>(stage.capacity)});
    next += stages_.back().size;
  }
  units_ = next;
  memories_ = units_ + machine.units.size();
  written_ = memories_ + machine.memories.size();
  read_ = written_ + nest.slots;
  fence_ = read_ + nest.slots;
  end_ = fence_ + 1;
  times_.assign(end_ + 1, 0);
  rings_.assign(nest.ring_sizes.size(), 0);
  const bool looks_up = std::any_of(
      nest.instructions.begin(), nest.instructions.end(), [](const Instruction& instruction) {
        return std::any_of(instruction.memories.begin(), instruction.memories.end(),
                           [](const MemoryUse& use) { return use.address >= 0; });
      });
  for (const Memory& memory : machine.memories) {
    tags_first_.push_back(tags_.size());
    if (memory.type == "cache" && looks_up)
      tags_.resize(tags_.size() + static_cast<size_t>(memory.bytes / memory.request_bytes), -1);
  }
}

Ticks* Simulator::least(const Pool& pool) {
  Ticks* first = &times_[pool.first];
  return std::min_element(first, first + pool.size);
}

size_t Simulator::slot(Slot slot) const {
  return slot.ring == Slot::kNoRing ? slot.base : size_t{slot.base} + rings_[slot.ring];
}

Ticks Simulator::memory_free(const Instruction& instruction) const {
  Ticks free = 0;
  for (const MemoryUse& use : instruction.memories)
    if (use.waits) free = std::max(free, times_[memories_ + use.memory]);
  return free;
}

/// The extra time of a miss. Each set keeps its lines in the order of their last use.
Ticks Simulator::lookup(const MemoryUse& use) {
  const Memory& cache = machine_.memories[use.memory];
  const auto lines = static_cast<int64_t>(cache.bytes / cache.request_bytes);
  const int64_t ways = std::min(cache.ways, lines);
  const int64_t line = use.address / static_cast<int64_t>(cache.request_bytes);
  const auto set = static_cast<size_t>(line % std::max<int64_t>(1, lines / ways));
  const auto first = tags_.begin() + static_cast<int64_t>(tags_first_[use.memory] +
                                                          set * static_cast<size_t>(ways));
  const auto found = std::find(first, first + ways, line);
  const bool hit = found != first + ways;
  std::rotate(first, hit ? found : first + ways - 1, (hit ? found : first + ways - 1) + 1);
  *first = line;
  if (hit || cache.backing < 0) return 0;
  const Memory& next = machine_.memories[static_cast<size_t>(cache.backing)];
  return std::llround(next.read_latency * static_cast<double>(kTicksPerCycle));
}

Ticks Simulator::next_fetch(size_t fetch) const {
  const auto first = times_.begin() + static_cast<int64_t>(buffers_[fetch].first);
  const auto end = first + static_cast<int64_t>(buffers_[fetch].size);
  return std::max(times_[fetch], *std::min_element(first, end));
}

Passage Simulator::issue(int32_t index) {
  const Instruction& instruction = nest_.instructions[static_cast<size_t>(index)];
  const Unit& unit = machine_.units[instruction.unit];
  const auto fetch = static_cast<size_t>(unit.fetch);

  go_on("running the instructions of an accelerator");
  Passage passage;
  Ticks* held = least(buffers_[fetch]);
  passage.fetched = std::max(times_[fetch], *held);
  times_[fetch] = passage.fetched + machine_.fetches[fetch].interval;
  Ticks arrived = passage.fetched + machine_.fetches[fetch].interval;

  bool until_complete = false;
  for (const int stage : unit.stages) {
    const Stage& object = machine_.stages[static_cast<size_t>(stage)];
    Ticks* entry = least(stages_[static_cast<size_t>(stage)]);
    arrived = std::max(arrived, *entry);
    *held = arrived;  // it leaves the object before when it enters this one
    held = entry;
    until_complete = object.until_complete;
    arrived += object.latency;
  }

  const auto wait = [&](Ticks until) { arrived = std::max(arrived, until); };
  wait(times_[units_ + instruction.unit]);
  wait(memory_free(instruction));
  for (const Slot read : instruction.reads) wait(times_[written_ + slot(read)]);
  for (const Slot written : instruction.writes)
    wait(std::max(times_[written_ + slot(written)], times_[read_ + slot(written)]));
  for (const Slot merged : instruction.merges) wait(times_[read_ + slot(merged)]);

  Ticks extra = 0;
  for (const MemoryUse& use : instruction.memories) {
    if (use.address >= 0) extra += lookup(use);
    if (use.waits) times_[memories_ + use.memory] = arrived + use.busy;
  }
  passage.entered = arrived;
  passage.completed = arrived + instruction.latency + extra;
  *held = until_complete ? passage.completed : arrived;
  times_[units_ + instruction.unit] = arrived + instruction.interval + extra;
  for (const Slot read : instruction.reads) {
    Ticks& last = times_[read_ + slot(read)];
    last = std::max(last, passage.completed);
  }
  for (const Slot written : instruction.writes)
    times_[written_ + slot(written)] = passage.completed;
  for (const Slot merged : instruction.merges) {
    Ticks& last = times_[written_ + slot(merged)];
    last = std::max(last, passage.completed);
  }
  for (const Slot passed : instruction.forwards)
    times_[written_ + slot(passed)] = passage.completed;
  times_[end_] = std::max(times_[end_], passage.completed);
  return passage;
}

void Simulator::advance(int32_t ring) {
  const auto i = static_cast<size_t>(ring);
  rings_[i] = static_cast<uint16_t>((rings_[i] + 1) % nest_.ring_sizes[i]);
}

void Simulator::fence() {
  for (size_t i = 0; i < machine_.fetches.size(); ++i)
    times_[i] = std::max(times_[i], times_[fence_]);
  times_[fence_] = end();
}

Ticks Simulator::canonical(std::span<Ticks> state) const {
  // A fetch waits for the next place of its buffer in any case.
  Ticks base = std::numeric_limits<Ticks>::max();
  for (size_t i = 0; i < buffers_.size(); ++i) base = std::min(base, next_fetch(i));
  for (size_t i = 0; i < times_.size(); ++i) state[i] = std::max<Ticks>(0, times_[i] - base);
  for (size_t i = 0; i < buffers_.size(); ++i) state[i] = next_fetch(i) - base;
  std::copy(tags_.begin(), tags_.end(), state.begin() + static_cast<int64_t>(times_.size()));
  // Which entry of a stage an instruction takes does not matter.
  for (const std::vector<Pool>* pools : {&buffers_, &stages_})
    for (const Pool& pool : *pools) {
      const auto first = state.begin() + static_cast<int64_t>(pool.first);
      std::sort(first, first + static_cast<int64_t>(pool.size));
    }
  // Nor does which place of a ring is the present one: the others follow in turn.
  for (size_t i = 0; i < rings_.size(); ++i) {
    if (rings_[i] == 0) continue;
    for (const size_t slots : {written_, read_}) {
      const auto first = state.begin() + static_cast<int64_t>(slots + nest_.ring_bases[i]);
      std::rotate(first, first + rings_[i], first + nest_.ring_sizes[i]);
    }
  }
  return base;
}

void Simulator::restore(std::span<const Ticks> state) {
  const auto times = static_cast<int64_t>(times_.size());
  std::copy(state.begin(), state.begin() + times, times_.begin());
  std::copy(state.begin() + times, state.end(), tags_.begin());
  std::fill(rings_.begin(), rings_.end(), 0);
}

}  // namespace tilecast::accelerator
