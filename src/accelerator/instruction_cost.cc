#include "accelerator/instruction_cost.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/check.h"

namespace tilecast::accelerator {
namespace {

/// Requests of a block to a memory, and how long they take.
struct Service {
  double busy = 0;       ///< cycles in which its ports or its requests in flight are taken
  double latency = 0;    ///< of one request
  double in_flight = 0;  ///< latencies of all requests
};

double requests_of(const Memory& memory, const Block& block) {
  return static_cast<double>(block.rows) *
         std::max(1.0, std::ceil(block.row_bytes / memory.request_bytes));
}

Service off_chip(const Memory& memory, const Memory* backing, const Block& block, bool write) {
  const double requests = requests_of(memory, block);
  const double part = std::min(block.row_bytes, memory.request_bytes);
  // A port wider than a request serves several in a cycle.
  const double beats = memory.width_bytes > memory.request_bytes
                           ? memory.request_bytes / memory.width_bytes
                           : std::ceil(part / memory.width_bytes);
  const double own = write ? memory.write_latency : memory.read_latency;
  Service service;
  service.latency = own;
  double in_flight = requests * own;
  if (backing != nullptr) {
    const double misses = requests * block.miss_ratio;
    in_flight += misses * backing->read_latency;
    service.latency += block.miss_ratio * backing->read_latency;
  }
  service.in_flight = in_flight;
  // A cache writes a line once at a time: stores to the same line wait for each other.
  const bool in_turn = write && backing != nullptr && block.row_stride < memory.request_bytes;
  service.busy = std::max(requests * beats / memory.ports,
                          in_flight / (in_turn ? 1 : memory.concurrent_requests));
  return service;
}

/// Cycles of the ports. A row that is narrower than the memory takes as long as a full one.
double on_chip(const Memory& memory, const OnChipMove& move) {
  const double beats = std::max(1.0, std::ceil(move.row_bytes / memory.width_bytes));
  return move.rows * beats / memory.ports;
}

class CostOf {
 public:
  CostOf(const Machine& machine, const Unit& unit, const Block& block)
      : machine_(machine), unit_(unit), block_(block) {}

  void add_memories(Instruction& instruction) {
    for (const int memory : unit_.reads) add(instruction, memory, false);
    for (const int memory : unit_.writes) add(instruction, memory, true);
  }
  double busy = 0, latency = 0, requests = 0, misses = 0;

 private:
  void add(Instruction& instruction, int index, bool write) {
    const Memory& memory = machine_.memories[static_cast<size_t>(index)];
    const bool outside = memory.type != "sram";
    if (outside && block_.row_bytes == 0) return;
    const Memory* backing =
        memory.backing < 0 ? nullptr : &machine_.memories[static_cast<size_t>(memory.backing)];
    Service service;
    double bytes = 0;
    double rows = 0;  // of on-chip memories
    bool uses = false;
    if (outside) {
      service = off_chip(memory, backing, block_, write);
      bytes = static_cast<double>(block_.rows) * block_.row_bytes;
    } else {
      for (const OnChipMove& move : block_.moves) {
        if (move.memory != index || move.write != write) continue;
        service.busy += on_chip(memory, move);
        bytes += static_cast<double>(move.bytes);
        rows += move.rows;
        service.latency = write ? memory.write_latency : memory.read_latency;
        uses = true;
      }
      if (!uses) return;
    }
    use(instruction, index, service.busy, bytes);
    MemoryUse& added = instruction.memories.back();
    added.waits = added.busy > 0 || rows == 0;
    busy = std::max({busy, service.busy, service.in_flight / unit_.concurrent_requests});
    latency += service.latency;
    if (!outside) return;
    requests = requests_of(memory, block_);
    if (backing == nullptr) return;
    misses = requests * block_.miss_ratio;
    const double moved = misses * memory.request_bytes;
    const double cycles = moved / backing->width_bytes / backing->ports;
    use(instruction, memory.backing, cycles, moved);
    busy = std::max(busy, cycles);
  }
  void use(Instruction& instruction, int memory, double cycles, double bytes) {
    const std::string where =
        machine_.where + ": " + machine_.memories[static_cast<size_t>(memory)].name;
    instruction.memories.push_back({.memory = static_cast<uint16_t>(memory),
                                    .busy = ticks_of(cycles, where),
                                    .bytes = std::llround(bytes)});
  }

  const Machine& machine_;
  const Unit& unit_;
  const Block& block_;
};

}  // namespace

Instruction instruction_on(const Machine& machine, int unit_index, int operation,
                           const Block& block) {
  const Unit& unit = machine.units[static_cast<size_t>(unit_index)];
  const std::string& name = machine.operations[static_cast<size_t>(operation)].name;
  const auto found = std::find_if(unit.operations.begin(), unit.operations.end(),
                                  [&](const UnitOperation& one) { return one.name == name; });
  TILECAST_CHECK(found != unit.operations.end()) << "unit without the operation " << name;
  Instruction instruction{.operation = static_cast<uint16_t>(operation),
                          .unit = static_cast<uint16_t>(unit_index)};
  instruction.macs = block.macs;
  instruction.energy_j = found->energy_j.value_or(0);
  CostOf cost(machine, unit, block);
  cost.add_memories(instruction);
  const auto lookup = [&](std::string_view wanted) -> std::optional<double> {
    if (wanted.size() == 1 && kDimNames.find(wanted[0]) != std::string_view::npos)
      return static_cast<double>(block.sizes[kDimNames.find(wanted[0])]);
    if (wanted == "rows") return static_cast<double>(block.rows);
    if (wanted == "bytes") return static_cast<double>(block.rows) * block.row_bytes;
    if (wanted == "requests") return cost.requests;
    if (wanted == "misses") return cost.misses;
    if (wanted == "fresh") return block.fresh ? 1.0 : 0.0;
    if (wanted == "pool") return static_cast<double>(block.pool);
    return machine.parameter(wanted);
  };
  const std::string where =
      fmt::format("{}: object '{}': operation '{}'", machine.where, unit.name, name);
  const double latency = found->latency.evaluate(lookup, where + ": latency");
  const double interval = found->interval.evaluate(lookup, where + ": interval");
  instruction.latency = ticks_of(latency, where) + ticks_of(cost.busy + cost.latency, where);
  instruction.interval = ticks_of(std::max(interval, cost.busy), where);
  return instruction;
}

}  // namespace tilecast::accelerator
