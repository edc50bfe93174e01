#include "accelerator/simulator.h"

#include <algorithm>
#include <cmath>

namespace tilecast::accelerator {
namespace {

template <typename T>
void add_lists(std::vector<T>& sum, const std::vector<T>& other, int64_t times) {
  if (sum.size() < other.size()) sum.resize(other.size());
  for (size_t i = 0; i < other.size(); ++i) sum[i] += static_cast<T>(other[i] * times);
}

}  // namespace

void Activity::add(const Activity& other, int64_t times) {
  instructions += other.instructions * times;
  macs += other.macs * times;
  add_lists(unit_busy, other.unit_busy, times);
  add_lists(memory_busy, other.memory_busy, times);
  add_lists(fetch_busy, other.fetch_busy, times);
  add_lists(memory_bytes, other.memory_bytes, times);
  if (unit_energy_j.size() < other.unit_energy_j.size())
    unit_energy_j.resize(other.unit_energy_j.size());
  for (size_t i = 0; i < other.unit_energy_j.size(); ++i)
    unit_energy_j[i] += other.unit_energy_j[i] * static_cast<double>(times);
  for (size_t i = 0; i < kStallCount; ++i) stall[i] += other.stall[i] * times;
}

Activity Activity::minus(const Activity& other) const {
  Activity difference = *this;
  difference.add(other, -1);
  return difference;
}

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
  state_.times.assign(end_ + 1, 0);
  state_.rings.assign(nest.ring_sizes.size(), 0);
  activity_.unit_busy.resize(machine.units.size());
  activity_.memory_busy.resize(machine.memories.size());
  activity_.memory_bytes.resize(machine.memories.size());
  activity_.fetch_busy.resize(machine.fetches.size());
  activity_.unit_energy_j.resize(machine.units.size());
  const bool looks_up = std::any_of(
      nest.instructions.begin(), nest.instructions.end(), [](const Instruction& instruction) {
        return std::any_of(instruction.memories.begin(), instruction.memories.end(),
                           [](const MemoryUse& use) { return use.address >= 0; });
      });
  for (const Memory& memory : machine.memories) {
    tags_first_.push_back(state_.tags.size());
    if (memory.type == "cache" && looks_up)
      state_.tags.resize(
          state_.tags.size() + static_cast<size_t>(memory.bytes / memory.request_bytes), -1);
  }
}

Ticks* Simulator::least(const Pool& pool) {
  Ticks* first = &state_.times[pool.first];
  return std::min_element(first, first + pool.size);
}

size_t Simulator::slot(Slot slot) const {
  return slot.ring == Slot::kNoRing ? slot.base : size_t{slot.base} + state_.rings[slot.ring];
}

Ticks Simulator::memory_free(const Instruction& instruction) const {
  Ticks free = 0;
  for (const MemoryUse& use : instruction.memories)
    if (use.waits) free = std::max(free, state_.times[memories_ + use.memory]);
  return free;
}

/// The extra time of a miss. Each set keeps its lines in the order of their last use.
Ticks Simulator::lookup(const MemoryUse& use) {
  const Memory& cache = machine_.memories[use.memory];
  const auto lines = static_cast<int64_t>(cache.bytes / cache.request_bytes);
  const int64_t ways = std::min(cache.ways, lines);
  const int64_t line = use.address / static_cast<int64_t>(cache.request_bytes);
  const auto set = static_cast<size_t>(line % std::max<int64_t>(1, lines / ways));
  const auto first = state_.tags.begin() + static_cast<int64_t>(tags_first_[use.memory] +
                                                                set * static_cast<size_t>(ways));
  const auto found = std::find(first, first + ways, line);
  const bool hit = found != first + ways;
  std::rotate(first, hit ? found : first + ways - 1, (hit ? found : first + ways - 1) + 1);
  *first = line;
  if (hit || cache.backing < 0) return 0;
  const Memory& next = machine_.memories[static_cast<size_t>(cache.backing)];
  return std::llround(next.read_latency * static_cast<double>(kTicksPerCycle));
}

Passage Simulator::issue(int32_t index) {
  const Instruction& instruction = nest_.instructions[static_cast<size_t>(index)];
  const Unit& unit = machine_.units[instruction.unit];
  const auto fetch = static_cast<size_t>(unit.fetch);
  std::vector<Ticks>& times = state_.times;

  Passage passage;
  Ticks* held = least(buffers_[fetch]);
  passage.fetched = std::max(times[fetch], *held);
  times[fetch] = passage.fetched + machine_.fetches[fetch].interval;
  activity_.fetch_busy[fetch] += machine_.fetches[fetch].interval;
  Ticks arrived = passage.fetched + machine_.fetches[fetch].interval;
  Stall stall = Stall::kFetch;

  bool until_complete = false;
  for (const int stage : unit.stages) {
    const Stage& object = machine_.stages[static_cast<size_t>(stage)];
    Ticks* entry = least(stages_[static_cast<size_t>(stage)]);
    if (*entry > arrived) {
      arrived = *entry;
      stall = Stall::kStage;
    }
    *held = arrived;  // it leaves the object before when it enters this one
    held = entry;
    until_complete = object.until_complete;
    arrived += object.latency;
  }

  const auto wait = [&](Ticks until, Stall why) {
    if (until <= arrived) return;
    arrived = until;
    stall = why;
  };
  wait(times[units_ + instruction.unit], Stall::kUnit);
  wait(memory_free(instruction), Stall::kMemory);
  for (const Slot read : instruction.reads) wait(times[written_ + slot(read)], Stall::kData);
  for (const Slot written : instruction.writes)
    wait(std::max(times[written_ + slot(written)], times[read_ + slot(written)]), Stall::kData);
  for (const Slot merged : instruction.merges) wait(times[read_ + slot(merged)], Stall::kData);

  Ticks extra = 0;
  for (const MemoryUse& use : instruction.memories) {
    if (use.address >= 0) extra += lookup(use);
    if (use.waits) times[memories_ + use.memory] = arrived + use.busy;
    activity_.memory_busy[use.memory] += use.busy;
    activity_.memory_bytes[use.memory] += use.bytes;
  }
  passage.entered = arrived;
  passage.completed = arrived + instruction.latency + extra;
  passage.stall = stall;
  *held = until_complete ? passage.completed : arrived;
  times[units_ + instruction.unit] = arrived + instruction.interval + extra;
  for (const Slot read : instruction.reads) {
    Ticks& last = times[read_ + slot(read)];
    last = std::max(last, passage.completed);
  }
  for (const Slot written : instruction.writes) times[written_ + slot(written)] = passage.completed;
  for (const Slot merged : instruction.merges) {
    Ticks& last = times[written_ + slot(merged)];
    last = std::max(last, passage.completed);
  }
  for (const Slot passed : instruction.forwards) times[written_ + slot(passed)] = passage.completed;
  times[end_] = std::max(times[end_], passage.completed);

  activity_.unit_busy[instruction.unit] += instruction.interval + extra;
  activity_.stall[static_cast<size_t>(stall)] += passage.entered - passage.fetched;
  activity_.unit_energy_j[instruction.unit] += instruction.energy_j;
  ++activity_.instructions;
  activity_.macs += instruction.macs;
  return passage;
}

void Simulator::advance(int32_t ring) {
  const auto i = static_cast<size_t>(ring);
  state_.rings[i] = static_cast<uint16_t>((state_.rings[i] + 1) % nest_.ring_sizes[i]);
}

void Simulator::fence() {
  for (size_t i = 0; i < machine_.fetches.size(); ++i)
    state_.times[i] = std::max(state_.times[i], state_.times[fence_]);
  state_.times[fence_] = end();
}

State Simulator::canonical(Ticks* base) const {
  State result = state_;
  const auto fetches = static_cast<int64_t>(machine_.fetches.size());
  *base = *std::min_element(result.times.begin(), result.times.begin() + fetches);
  for (Ticks& time : result.times) time = std::max<Ticks>(0, time - *base);
  // Which entry of a stage an instruction takes does not matter.
  const auto sort = [&](const Pool& pool) {
    const auto first = result.times.begin() + static_cast<int64_t>(pool.first);
    std::sort(first, first + static_cast<int64_t>(pool.size));
  };
  for (const Pool& pool : buffers_) sort(pool);
  for (const Pool& pool : stages_) sort(pool);
  // Nor does which place of a ring is the present one: the others follow in turn.
  for (size_t i = 0; i < result.rings.size(); ++i) {
    for (const size_t slots : {written_, read_}) {
      const auto first = result.times.begin() + static_cast<int64_t>(slots + nest_.ring_bases[i]);
      std::rotate(first, first + result.rings[i], first + nest_.ring_sizes[i]);
    }
    result.rings[i] = 0;
  }
  return result;
}

void Simulator::restore(const State& canonical, Ticks base) {
  state_ = canonical;
  for (Ticks& time : state_.times) time += base;
}

}  // namespace tilecast::accelerator
