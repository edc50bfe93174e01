#include "accelerator/nest_times.h"

#include <algorithm>
#include <set>
#include <type_traits>
#include <utility>

#include "accelerator/tiling.h"

namespace tilecast::accelerator {
namespace {

/// The bytes of values, one after the other; texts and lists with their lengths.
class Key {
 public:
  template <typename T>
    requires std::is_arithmetic_v<T> || std::is_enum_v<T>
  void add(T value) {
    text_.append(reinterpret_cast<const char*>(&value), sizeof(value));
  }
  void add(const std::string& text) {
    add(text.size());
    text_ += text;
  }
  template <typename T>
  void add(const std::vector<T>& list) {
    add(list.size());
    for (const T& one : list) add(one);
  }
  template <typename T>
  void add(const std::optional<T>& value) {
    add(value.has_value());
    if (value) add(*value);
  }
  void add(const Sizes& sizes) {
    for (const int64_t size : sizes) add(size);
  }
  void add(const FetchStage& fetch) {
    add(fetch.interval);
    add(fetch.issue_buffer);
  }
  void add(const Stage& stage) {
    add(stage.latency);
    add(stage.capacity);
    add(stage.until_complete);
  }
  void add(const Memory& memory) {
    add(memory.type);
    // Only a cache's size decides on times: on the chip, tiles fit, and outside all does.
    add(memory.type == "cache" ? memory.bytes : 0);
    for (const double number : {memory.width_bytes, memory.ports, memory.concurrent_requests,
                                memory.request_bytes, memory.read_latency, memory.write_latency})
      add(number);
    add(memory.ways);
    add(memory.random_replacement);
    add(memory.backing);
  }
  void add(const UnitOperation& operation) {
    add(operation.name);
    add(operation.latency.text());
    add(operation.interval.text());
    add(operation.energy_j);
  }
  void add(const Unit& unit) {
    add(unit.fetch);
    add(unit.stages);
    add(unit.operations);
    add(unit.reads);
    add(unit.writes);
    add(unit.concurrent_requests);
  }
  void add(const Operation& operation) {
    add(operation.name);
    add(operation.units);
  }
  void add(const DataflowInstruction& step) {
    add(step.operation);
    add(step.point);
    add(step.block);
    add(step.each_unit);
    add(step.chained);
  }
  void add(const Dataflow& flow) {
    add(flow.order);
    add(flow.stationary);
    add(flow.fences);
    add(flow.flattens);
    for (const Buffer& buffer : flow.buffers) {
      add(buffer.memory);
      add(buffer.copies);
      add(buffer.element_bytes);
    }
    add(flow.stored_bytes);
    for (const auto* steps : {&flow.preload, &flow.finish, &flow.store}) add(*steps);
    for (const std::optional<DataflowInstruction>& step : flow.loads) add(step);
    for (const std::optional<DataflowInstruction>& step : flow.compute) add(step);
  }
  std::string take() { return std::move(text_); }

 private:
  std::string text_;
};

/// The names in expressions that are evaluated for each instruction.
std::set<std::string> names_in_times(const Machine& machine) {
  std::set<std::string> names;
  for (const Unit& unit : machine.units)
    for (const UnitOperation& operation : unit.operations)
      for (const Expression* expression : {&operation.latency, &operation.interval})
        for (std::string& name : expression->names()) names.insert(std::move(name));
  return names;
}

}  // namespace

std::string timing_key(const Design& design) {
  const Machine& machine = design.machine;
  Key key;
  key.add(machine.where);  // of messages, so that an error names its own file
  key.add(machine.fetches);
  key.add(machine.stages);
  key.add(machine.memories);
  key.add(machine.units);
  key.add(machine.operations);
  const std::set<std::string> names = names_in_times(machine);
  for (const Parameter& parameter : machine.parameters)
    if (names.count(parameter.name) > 0) {
      key.add(parameter.name);
      key.add(parameter.value);
    }
  key.add(design.flow);
  return key.take();
}

NestTime NestTimes::time_of(const Design& design, const Layer& layer, const Mapping& mapping,
                            const EvaluationLimits& limits) {
  Key built;
  built.add(layer.kind);
  built.add(layer.sizes);
  for (const int64_t number : {layer.stride, layer.inputs, layer.pool_elements, layer.pool_stride})
    built.add(number);
  built.add(mapping.order);
  built.add(mapping.tile);
  built.add(limits.exact);
  built.add(limits.most_iterations);
  built.add(limits.most_evaluated);
  built.add(limits.most_rerun);
  const std::string key = built.take();
  {
    const std::lock_guard lock(mutex_);
    if (const auto it = times_.find(key); it != times_.end()) return it->second;
  }
  const LoopNest nest = tile_layer(design.machine, design.flow, layer, mapping);
  NestTime time = evaluate_nest(design.machine, nest, limits);
  const std::lock_guard lock(mutex_);
  if (times_.size() >= kMostTimes) times_.clear();
  times_.emplace(key, time);
  return time;
}

std::shared_ptr<NestTimes> NestTimesByDesign::of(const Design& design) {
  std::string key = timing_key(design);
  const std::lock_guard lock(mutex_);
  const auto [it, fresh] = used_.try_emplace(std::move(key));
  if (fresh) it->second.times = std::make_shared<NestTimes>();
  it->second.last = ++now_;
  const std::shared_ptr<NestTimes> times = it->second.times;
  if (used_.size() > kMostKeys)
    used_.erase(std::min_element(used_.begin(), used_.end(), [](const auto& a, const auto& b) {
      return a.second.last < b.second.last;
    }));
  return times;
}

}  // namespace tilecast::accelerator
