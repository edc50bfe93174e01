#pragma once

// An accelerator as the simulator sees it: the objects of a description with all parameters
// replaced by numbers. Objects are dense indices. See docs/reference/accelerator_files.md for the
// format.

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "accelerator/program.h"
#include "base/expression.h"
#include "base/json.h"

namespace tilecast::accelerator {

/// A parameter of a template, with the range in which the description holds.
struct Parameter {
  std::string name;
  double value = 0;
  double min = 0;
  double max = 0;
  std::vector<double> fit;  ///< values to choose from where measurements are at hand
};

/// InstructionFetchStage: brings `port_width` instructions every `latency` cycles into a buffer.
struct FetchStage {
  std::string name;
  Ticks interval = 0;  ///< between two instructions
  int64_t issue_buffer = 1;
};

/// PipelineStage or ExecuteStage: holds up to `capacity` instructions.
struct Stage {
  std::string name;
  Ticks latency = 0;
  int64_t capacity = 1;
  bool until_complete = false;  ///< an entry is free when the instruction has completed
};

struct Memory {
  std::string name;
  std::string type;  ///< "sram", "dram" or "cache"
  double bytes = 0;
  double width_bytes = 1;  ///< that a port moves in a cycle
  double ports = 1;
  double concurrent_requests = 1;
  double request_bytes = 1;  ///< most bytes of one request
  double read_latency = 0;   ///< cycles
  double write_latency = 0;
  int64_t ways = 0;                 ///< of a cache
  bool random_replacement = false;  ///< of a cache; otherwise the least recently used line leaves
  int backing = -1;                 ///< of a cache: index of the memory that serves its misses
  std::optional<double> energy_per_byte_j;
};

/// Behaviour of a unit for one operation.
struct UnitOperation {
  std::string name;
  Expression latency;
  Expression interval;
  std::optional<double> energy_j;
};

/// FunctionalUnit or MemoryAccessUnit.
struct Unit {
  std::string name;
  std::string base;  ///< name of the object before repetition: "row" of "row[3]"
  bool accesses_memory = false;
  int fetch = 0;            ///< index of the fetch stage that instructions come from
  std::vector<int> stages;  ///< on the way from the fetch stage
  std::vector<UnitOperation> operations;
  std::vector<int> reads, writes;    ///< memories
  double concurrent_requests = 1e6;  ///< of a memory access unit
  double pe_count = 0;               ///< multiply-accumulate units
};

/// An operation and the units that run it.
struct Operation {
  std::string name;
  std::vector<int> units;
};

/// The machine of one description and one set of parameters.
struct Machine {
  std::string where;  ///< for messages
  std::vector<Parameter> parameters;
  std::vector<FetchStage> fetches;
  std::vector<Stage> stages;
  std::vector<Unit> units;
  std::vector<Memory> memories;
  std::vector<std::string> registers;
  std::vector<Operation> operations;
  double clock_hz = 1e9;

  std::optional<double> parameter(std::string_view name) const;
  /// Index, or -1.
  int find_memory(std::string_view name) const;
  int find_operation(std::string_view name) const;
  int64_t pe_count() const;
  /// Whether any object states an energy.
  bool states_energy() const;
};

/// Values of parameters by name, in place of the file's.
using ParameterValues = std::map<std::string, double>;

/// The parameters that a description declares.
std::vector<Parameter> read_parameters(const JsonObject& file, const ParameterValues& values);

/// Builds the machine of a description. Throws Error{kInput} that names object and field: an
/// unknown field, a wrong unit, a missing source, an edge to an object that does not exist, an
/// object that no instruction reaches, a memory or register that is written and never read, a cycle
/// of forward edges, a latency that is negative, not finite or above 1e9 cycles.
Machine build_machine(const JsonObject& file, const ParameterValues& values);

/// The largest latency that is accepted, in cycles: a second at 1 GHz.
inline constexpr double kMostCycles = 1e9;

/// Cycles as ticks; throws Error{kInput} for what is no time (see kMostCycles).
Ticks ticks_of(double cycles, const std::string& where);

}  // namespace tilecast::accelerator
