#include "accelerator/dataflow.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "accelerator/fields.h"
#include "base/text.h"
#include "tilecast/error.h"

namespace tilecast::accelerator {
namespace {

constexpr double kMostBlock = 1e9;

/// The position of the field's word in `words`.
size_t word(const JsonObject& json, const std::string& key, const std::vector<std::string>& words) {
  const std::string found = json.string(key);
  const auto it = std::find(words.begin(), words.end(), found);
  if (it == words.end())
    json.fail(key, fmt::format("expected {}; found \"{}\"", join(words, ", "), shown_name(found)));
  return static_cast<size_t>(it - words.begin());
}

template <typename T>
std::vector<std::string> names_of(const std::vector<T>& list) {
  std::vector<std::string> names;
  for (const T& one : list) names.push_back(one.name);
  return names;
}

class DataflowReader {
 public:
  DataflowReader(const Machine& machine) : machine_(machine), reader_(machine.parameters) {}

  Dataflow read(const JsonObject& json, const std::string& name) const {
    json.reject_unknown({"order", "stationary", "flatten", "fences", "buffers", "load_input",
                         "load_weight", "load_partial", "preload", "compute", "finish", "store",
                         "stored_element", "store_applies", "source"});
    if (json.string("source").empty()) json.fail("source", "is empty");
    Dataflow flow{.name = printable(name)};
    flow.order = json.string("order");
    for (const char dim : flow.order) {
      const bool known = kDimNames.find(dim) != std::string_view::npos;
      if (known && std::count(flow.order.begin(), flow.order.end(), dim) == 1) continue;
      json.fail("order", fmt::format("expected each of n, k, c, p, q, r, s at most once; found "
                                     "\"{}\", which {} '{}'",
                                     shown_name(flow.order), known ? "repeats" : "has",
                                     shown_name(std::string_view(&dim, 1))));
    }
    flow.stationary = static_cast<Operand>(word(json, "stationary", {"input", "weight", "output"}));
    flow.flattens = json.boolean("flatten", false);
    flow.fences = json.boolean("fences", false);
    read_buffers(json.object("buffers"), flow);
    flow.stored_bytes = reader_.quantity(json, "stored_element", "B", 0.125, 64);
    flow.loads[0] = step_of(json, "load_input");
    flow.loads[1] = step_of(json, "load_weight");
    flow.loads[2] = step_of(json, "load_partial");
    flow.preload = step_of(json, "preload");
    flow.finish = step_of(json, "finish");
    flow.store = step_of(json, "store");
    if (json.has("store_applies")) flow.store_applies = json.strings("store_applies");
    if (!flow.store_applies.empty() && !flow.store)
      json.fail("store_applies", "the dataflow has no 'store' that would apply them");
    const JsonObject compute = json.object("compute");
    for (const auto& item : compute.json().items()) {
      const size_t kind = kind_of(compute, item.key());
      flow.compute[kind] = step_of(compute, item.key());
      check_order(json, flow, *flow.compute[kind]);
    }
    if (compute.json().empty()) json.fail("compute", "expected at least one kind of layer");
    return flow;
  }

 private:
  void read_buffers(const JsonObject& json, Dataflow& flow) const {
    json.reject_unknown({"input", "weight", "output"});
    const std::array<const char*, kOperandCount> names = {"input", "weight", "output"};
    for (size_t i = 0; i < kOperandCount; ++i) {
      const JsonObject entry = json.object(names[i]);
      entry.reject_unknown({"memory", "share", "copies", "element"});
      Buffer& buffer = flow.buffers[i];
      buffer.memory = machine_.find_memory(entry.string("memory"));
      if (buffer.memory < 0)
        entry.fail("memory",
                   fmt::format("no memory is named '{}'{}", shown_name(entry.string("memory")),
                               did_you_mean(entry.string("memory"), names_of(machine_.memories))));
      buffer.share = reader_.quantity_or(entry, "share", "1", 1, 1e-6, 1);
      buffer.copies = static_cast<int64_t>(reader_.quantity_or(entry, "copies", "1", 1, 1, 16));
      buffer.element_bytes = reader_.quantity(entry, "element", "B", 0.125, 64);
    }
  }
  std::optional<DataflowInstruction> step_of(const JsonObject& json, const std::string& key) const {
    if (!json.has(key)) return std::nullopt;
    const JsonObject entry = json.object(key);
    entry.reject_unknown({"operation", "at", "block", "units"});
    DataflowInstruction step;
    step.operation = machine_.find_operation(entry.string("operation"));
    if (step.operation < 0)
      entry.fail(
          "operation",
          fmt::format("no unit has the operation '{}'{}", shown_name(entry.string("operation")),
                      did_you_mean(entry.string("operation"), names_of(machine_.operations))));
    if (entry.has("at"))
      step.point = static_cast<IssuePoint>(word(entry, "at", {"tile", "block", "compute", "done"}));
    if (entry.has("units")) {
      const size_t units = word(entry, "units", {"one", "each", "chain"});
      step.each_unit = units > 0;
      step.chained = units == 2;
    }
    if (entry.has("block")) read_block(entry.object("block"), step);
    return step;
  }
  void read_block(const JsonObject& json, DataflowInstruction& step) const {
    for (const auto& item : json.json().items()) {
      const size_t dim =
          item.key().size() == 1 ? kDimNames.find(item.key()) : std::string_view::npos;
      if (dim == std::string_view::npos)
        json.fail(item.key(), "expected one of n, k, c, p, q, r, s");
      const double size = reader_.number(item.value(), json.where() + ": " + item.key());
      if (size < 0 || size > kMostBlock || size != std::floor(size))
        json.fail(item.key(),
                  fmt::format("expected a whole number (0: the whole tile), found {}", size));
      step.block[dim] = static_cast<int64_t>(size);
    }
  }
  static size_t kind_of(const JsonObject& json, const std::string& name) {
    for (size_t kind = 0; kind < kLayerKindCount; ++kind)
      if (layer_kind_name(static_cast<LayerKind>(kind)) == name) return kind;
    json.fail(name, "expected product, depthwise, pooling or elementwise");
  }
  /// A dimension that a computation covers in part needs a loop.
  static void check_order(const JsonObject& json, const Dataflow& flow,
                          const DataflowInstruction& compute) {
    for (size_t i = 0; i < kDimCount; ++i)
      if (compute.block[i] != 0 && flow.order.find(kDimNames[i]) == std::string::npos)
        json.fail("order", fmt::format("'{}' is missing: one computation covers {} of it",
                                       kDimNames[i], compute.block[i]));
  }

  const Machine& machine_;
  FieldReader reader_;
};

}  // namespace

Dataflow read_dataflow(const JsonObject& file, const Machine& machine, const std::string& name) {
  const JsonObject flows = file.object("dataflows");
  std::vector<std::string> names;
  for (const auto& item : flows.json().items()) names.push_back(item.key());
  if (names.empty()) file.fail("dataflows", "expected at least one dataflow");
  std::string wanted = name;
  if (wanted.empty())
    wanted = file.has("default_dataflow") ? file.string("default_dataflow") : names.front();
  if (std::find(names.begin(), names.end(), wanted) == names.end())
    throw Error(ErrorKind::kInput,
                fmt::format("{}: unknown dataflow '{}'; it has: {}", file.where(),
                            shown_name(wanted), join(names, ", ")));
  return DataflowReader(machine).read(flows.object(wanted), wanted);
}

}  // namespace tilecast::accelerator
