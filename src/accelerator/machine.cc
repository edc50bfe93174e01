#include "accelerator/machine.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "accelerator/fields.h"
#include "accelerator/machine_checks.h"
#include "base/text.h"
#include "tilecast/error.h"

namespace tilecast::accelerator {
namespace {

constexpr double kMostCount = 1e6;
constexpr double kMostBytes = 1e15;
/// Objects after repetition: a 64 × 64 array and its memories.
constexpr size_t kMostObjects = 20000;

/// An object of the description, one for each repetition.
struct Draft {
  JsonObject json;
  std::string base, name, kind;
  ParameterValues index;
};

/// The field's lists of names, with the indices of repetition in brackets: "row[i-1]".
class Edges {
 public:
  Edges(const std::vector<Draft>& drafts, const FieldReader& reader)
      : drafts_(drafts), reader_(reader) {}

  /// Indices of the objects that `key` of the object names. Beyond the ends of a repetition there
  /// is no object, and no edge.
  std::vector<int> of(const Draft& draft, const std::string& key) const {
    std::vector<int> found;
    if (!draft.json.has(key)) return found;
    for (const std::string& text : draft.json.strings(key)) {
      if (text.ends_with("[*]") && add_all(text.substr(0, text.size() - 3), found)) continue;
      const int target = find(resolve(draft, text));
      if (target >= 0) found.push_back(target);
      if (target < 0 && !is_base(text.substr(0, text.find('['))))
        draft.json.fail(key, fmt::format("no object is named '{}'{}", shown_name(text),
                                         did_you_mean(text, bases())));
    }
    return found;
  }

 private:
  /// All repetitions of an object: "lane[*]". False if there is none.
  bool add_all(const std::string& base, std::vector<int>& found) const {
    const size_t before = found.size();
    for (size_t i = 0; i < drafts_.size(); ++i)
      if (drafts_[i].base == base) found.push_back(static_cast<int>(i));
    return found.size() > before;
  }
  std::string resolve(const Draft& draft, const std::string& text) const {
    const size_t open = text.find('[');
    if (open == std::string::npos) return text;
    std::string name = text.substr(0, open);
    for (const std::string& part : split(text.substr(open + 1), '[')) {
      const std::string inside = part.substr(0, part.find(']'));
      name += fmt::format(
          "[{}]", std::llround(reader_.number(Json(inside), draft.json.where(), draft.index)));
    }
    return name;
  }
  int find(const std::string& name) const {
    for (size_t i = 0; i < drafts_.size(); ++i)
      if (drafts_[i].name == name) return static_cast<int>(i);
    return -1;
  }
  bool is_base(const std::string& name) const {
    return std::any_of(drafts_.begin(), drafts_.end(), [&](const Draft& draft) {
      return draft.base == name && draft.base != draft.name;
    });
  }
  std::vector<std::string> bases() const {
    std::vector<std::string> names;
    for (const Draft& draft : drafts_) names.push_back(draft.base);
    return names;
  }

  const std::vector<Draft>& drafts_;
  const FieldReader& reader_;
};

void repeat(const JsonObject& json, const FieldReader& reader, std::vector<Draft>& drafts) {
  std::vector<Draft> made = {
      {json, json.string("name"), json.string("name"), json.string("kind"), {}}};
  if (json.has("repeat")) {
    const JsonObject repetition = json.object("repeat");
    for (const auto& item : repetition.json().items()) {
      const double count = reader.number(item.value(), json.where() + ": repeat");
      if (count < 1 || count != std::floor(count) ||
          count * static_cast<double>(made.size()) > kMostObjects)
        repetition.fail(item.key(), fmt::format("expected a whole number from 1, with at most {} "
                                                "objects in all, found {}",
                                                kMostObjects, count));
      std::vector<Draft> next;
      for (const Draft& draft : made) {
        for (int64_t i = 0; i < static_cast<int64_t>(count); ++i) {
          Draft copy = draft;
          copy.index[item.key()] = static_cast<double>(i);
          copy.name += fmt::format("[{}]", i);
          next.push_back(std::move(copy));
        }
      }
      made = std::move(next);
    }
  }
  drafts.insert(drafts.end(), made.begin(), made.end());
  if (drafts.size() > kMostObjects)
    json.fail("repeat", fmt::format("more than {} objects", kMostObjects));
}

std::vector<Draft> read_drafts(const JsonObject& file, const FieldReader& reader) {
  if (!file.has("objects") || !file.json()["objects"].is_array())
    file.fail("objects", "expected a list of objects");
  std::vector<Draft> drafts;
  for (const Json& item : file.json()["objects"]) {
    const JsonObject unnamed(item, file.where() + ": objects");
    repeat(JsonObject(item, file.where() + ": object '" + shown_name(unnamed.string("name")) + "'"),
           reader, drafts);
  }
  std::vector<std::string> names;
  for (const Draft& draft : drafts) {
    if (draft.name.empty() || std::find(names.begin(), names.end(), draft.name) != names.end())
      draft.json.fail("name", fmt::format("two objects are named '{}'", shown_name(draft.name)));
    names.push_back(draft.name);
  }
  return drafts;
}

FetchStage read_fetch(const Draft& draft, const FieldReader& reader) {
  draft.json.reject_unknown({"name", "kind", "issue_buffer", "port_width", "latency", "forward"});
  const double width = reader.quantity(draft.json, "port_width", "instruction", 1, kMostCount);
  const double latency = reader.quantity(draft.json, "latency", "cycle", 0, kMostCycles);
  return {.name = draft.name,
          .interval = ticks_of(latency / width, draft.json.where()),
          .issue_buffer = static_cast<int64_t>(
              reader.quantity(draft.json, "issue_buffer", "instruction", 1, 4096))};
}

Stage read_stage(const Draft& draft, const FieldReader& reader) {
  draft.json.reject_unknown(
      {"name", "kind", "latency", "capacity", "release", "forward", "contains", "repeat"});
  Stage stage{.name = draft.name};
  const double latency = reader.quantity_or(draft.json, "latency", "cycle", 0, 0, kMostCycles);
  stage.latency = ticks_of(latency, draft.json.where());
  stage.capacity =
      static_cast<int64_t>(reader.quantity_or(draft.json, "capacity", "instruction", 1, 1, 4096));
  if (draft.json.has("release")) {
    const std::string release = draft.json.string("release");
    if (release != "leave" && release != "complete")
      draft.json.fail("release",
                      "expected \"leave\" or \"complete\", found \"" + shown_name(release) + "\"");
    stage.until_complete = release == "complete";
  }
  return stage;
}

Memory read_memory(const Draft& draft, const FieldReader& reader) {
  draft.json.reject_unknown({"name", "kind", "type", "bytes", "width", "ports",
                             "concurrent_requests", "request_bytes", "read_latency",
                             "write_latency", "ways", "replacement", "backing", "address_range",
                             "energy_per_byte", "repeat"});
  const JsonObject& json = draft.json;
  Memory memory{.name = draft.name, .type = json.string("type")};
  if (memory.type != "sram" && memory.type != "dram" && memory.type != "cache")
    json.fail("type", "expected sram, dram or cache, found \"" + shown_name(memory.type) + "\"");
  memory.bytes = reader.quantity(json, "bytes", "B", 1, kMostBytes);
  memory.width_bytes = reader.quantity(json, "width", "B/cycle", 1e-3, kMostBytes);
  memory.ports = reader.quantity_or(json, "ports", "1", 1, 1, kMostCount);
  memory.concurrent_requests =
      reader.quantity_or(json, "concurrent_requests", "1", kMostCount, 1, kMostCount);
  memory.request_bytes =
      reader.quantity_or(json, "request_bytes", "B", memory.width_bytes, 1e-3, kMostBytes);
  memory.read_latency = reader.quantity(json, "read_latency", "cycle", 0, kMostCycles);
  memory.write_latency = reader.quantity(json, "write_latency", "cycle", 0, kMostCycles);
  if (json.has("energy_per_byte"))
    memory.energy_per_byte_j = reader.quantity(json, "energy_per_byte", "J/B", 0, 1);
  if (memory.type == "cache") {
    memory.ways = static_cast<int64_t>(reader.quantity(json, "ways", "1", 1, 4096));
    const std::string replacement = json.has("replacement") ? json.string("replacement") : "lru";
    if (replacement != "lru" && replacement != "random")
      json.fail("replacement", "expected lru or random, found \"" + shown_name(replacement) + "\"");
    memory.random_replacement = replacement == "random";
    if (!json.has("backing"))
      json.fail("backing", "is missing: the memory that serves the misses of a cache");
    const double lines = memory.bytes / memory.request_bytes;
    if (std::fmod(lines, static_cast<double>(memory.ways)) != 0)
      json.fail("ways", fmt::format("{} ways do not divide its {} lines ({} bytes in requests of "
                                    "{}); expected a whole number of sets",
                                    memory.ways, lines, memory.bytes, memory.request_bytes));
  } else {
    for (const char* field : {"ways", "replacement", "backing"})
      if (json.has(field)) json.fail(field, "is a field of caches; this is of type " + memory.type);
  }
  return memory;
}

Unit read_unit(const Draft& draft, const FieldReader& reader, const Machine& machine) {
  const JsonObject& json = draft.json;
  json.reject_unknown({"name", "kind", "operations", "reads", "writes", "repeat", "pe_count",
                       "concurrent_requests"});
  Unit unit{
      .name = draft.name, .base = draft.base, .accesses_memory = draft.kind == "MemoryAccessUnit"};
  unit.pe_count = reader.quantity_or(json, "pe_count", "1", 0, 0, kMostBytes);
  unit.concurrent_requests =
      reader.quantity_or(json, "concurrent_requests", "1", kMostCount, 1, kMostCount);
  const JsonObject list = json.object("operations");
  if (list.json().empty()) json.fail("operations", "expected at least one operation");
  for (const auto& item : list.json().items()) {
    const JsonObject entry = list.object(item.key());
    entry.reject_unknown({"latency", "interval", "energy"});
    UnitOperation operation{.name = item.key()};
    operation.latency = reader.expression(entry, "latency", "cycle");
    operation.interval =
        entry.has("interval") ? reader.expression(entry, "interval", "cycle") : operation.latency;
    if (entry.has("energy")) operation.energy_j = reader.quantity(entry, "energy", "J", 0, 1);
    check_names(operation.latency, machine.parameters, entry.where() + ": latency");
    check_names(operation.interval, machine.parameters, entry.where() + ": interval");
    unit.operations.push_back(std::move(operation));
  }
  return unit;
}

/// Reads the drafts by kind and remembers which index each got.
class MachineBuilder {
 public:
  MachineBuilder(const JsonObject& file, Machine& machine)
      : file_(file),
        machine_(machine),
        reader_(machine.parameters),
        drafts_(read_drafts(file, reader_)),
        index_(drafts_.size(), -1) {}

  void build() {
    for (size_t i = 0; i < drafts_.size(); ++i) read(i);
    const Edges edges(drafts_, reader_);
    ObjectGraph graph;
    for (const Draft& draft : drafts_) {
      graph.names.push_back(draft.name);
      graph.kinds.push_back(draft.kind);
      graph.forward.push_back(edges.of(draft, "forward"));
      graph.contains.push_back(edges.of(draft, "contains"));
      graph.reads.push_back(edges.of(draft, "reads"));
      graph.writes.push_back(edges.of(draft, "writes"));
      if (draft.json.has("backing")) link_backing(draft, edges);
    }
    check_objects(graph, file_.where());
    for (size_t i = 0; i < drafts_.size(); ++i)
      if (is_unit(drafts_[i].kind)) finish_unit(graph, i);
  }

 private:
  static bool is_unit(const std::string& kind) {
    return kind == "FunctionalUnit" || kind == "MemoryAccessUnit";
  }
  template <typename T>
  static int put(std::vector<T>& list, T value) {
    list.push_back(std::move(value));
    return static_cast<int>(list.size() - 1);
  }

  void read(size_t i) {
    const Draft& draft = drafts_[i];
    if (draft.kind == "InstructionFetchStage") {
      index_[i] = put(machine_.fetches, read_fetch(draft, reader_));
    } else if (draft.kind == "PipelineStage" || draft.kind == "ExecuteStage") {
      index_[i] = put(machine_.stages, read_stage(draft, reader_));
    } else if (draft.kind == "Memory") {
      index_[i] = put(machine_.memories, read_memory(draft, reader_));
    } else if (draft.kind == "RegisterFile") {
      draft.json.reject_unknown({"name", "kind", "width", "repeat"});
      index_[i] = put(machine_.registers, draft.name);
    } else if (is_unit(draft.kind)) {
      index_[i] = put(machine_.units, read_unit(draft, reader_, machine_));
    } else {
      draft.json.fail("kind",
                      "expected InstructionFetchStage, PipelineStage, ExecuteStage, "
                      "FunctionalUnit, MemoryAccessUnit, RegisterFile or Memory, found \"" +
                          shown_name(draft.kind) + "\"");
    }
  }
  void link_backing(const Draft& draft, const Edges&) {
    const std::string name = draft.json.string("backing");
    const int backing = machine_.find_memory(name);
    const int self = machine_.find_memory(draft.name);
    if (backing < 0 || backing == self)
      draft.json.fail("backing", "no other memory is named '" + shown_name(name) + "'");
    machine_.memories[static_cast<size_t>(self)].backing = backing;
  }
  void finish_unit(const ObjectGraph& graph, size_t i) {
    Unit& unit = machine_.units[static_cast<size_t>(index_[i])];
    const std::vector<int> path = path_to_unit(graph, static_cast<int>(i));
    unit.fetch = index_[static_cast<size_t>(path.front())];
    for (size_t step = 1; step < path.size(); ++step)
      unit.stages.push_back(index_[static_cast<size_t>(path[step])]);
    const auto memories = [&](const std::vector<int>& targets) {
      std::vector<int> found;
      for (const int target : targets)
        if (drafts_[static_cast<size_t>(target)].kind == "Memory")
          found.push_back(index_[static_cast<size_t>(target)]);
      return found;
    };
    unit.reads = memories(graph.reads[i]);
    unit.writes = memories(graph.writes[i]);
    for (const UnitOperation& operation : unit.operations) {
      int known = machine_.find_operation(operation.name);
      if (known < 0)
        known = put(machine_.operations, Operation{.name = operation.name, .units = {}});
      machine_.operations[static_cast<size_t>(known)].units.push_back(index_[i]);
    }
  }

  const JsonObject& file_;
  Machine& machine_;
  FieldReader reader_;
  std::vector<Draft> drafts_;
  std::vector<int> index_;
};

}  // namespace

std::optional<double> Machine::parameter(std::string_view name) const {
  for (const Parameter& parameter : parameters)
    if (parameter.name == name) return parameter.value;
  return std::nullopt;
}

int Machine::find_memory(std::string_view name) const {
  for (size_t i = 0; i < memories.size(); ++i)
    if (memories[i].name == name) return static_cast<int>(i);
  return -1;
}

int Machine::find_operation(std::string_view name) const {
  for (size_t i = 0; i < operations.size(); ++i)
    if (operations[i].name == name) return static_cast<int>(i);
  return -1;
}

int64_t Machine::pe_count() const {
  double sum = 0;
  for (const Unit& unit : units) sum += unit.pe_count;
  return static_cast<int64_t>(sum);
}

bool Machine::states_energy() const {
  const bool of_memories = std::any_of(memories.begin(), memories.end(), [](const Memory& memory) {
    return memory.energy_per_byte_j.has_value();
  });
  return of_memories || std::any_of(units.begin(), units.end(), [](const Unit& unit) {
           return std::any_of(unit.operations.begin(), unit.operations.end(),
                              [](const UnitOperation& one) { return one.energy_j.has_value(); });
         });
}

Machine build_machine(const JsonObject& file, const ParameterValues& values) {
  Machine machine{.where = file.where(), .parameters = read_parameters(file, values)};
  const FieldReader reader(machine.parameters);
  machine.clock_hz = reader.quantity(file, "clock", "Hz", 1e3, 1e12);
  MachineBuilder(file, machine).build();
  return machine;
}

}  // namespace tilecast::accelerator
