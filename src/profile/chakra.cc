// Execution traces of PyTorch (torch.profiler.ExecutionTraceObserver), whose nodes follow
// MLCommons' Chakra: {"schema": "1.1.1-chakra.0.0.4", "nodes": [{"id": 3, "name": "aten::mm",
// "ctrl_deps": 2, "inputs": {"values": [..], "shapes": [[8, 4], [4, 2]], "types":
// ["Tensor(float)", ..], "strides": [..]}, "attrs": [..]}, ..]}. They hold the arguments of all
// operators, but no times. Chakra's linker adds times and kernels ("cat": "kernel", "ts",
// "inclusive_dur"), which are read by its public source and not tried on a real file. The binary
// form of MLCommons (protobuf, .et), which simulators of networks read, is not read here.

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "base/budget.h"
#include "base/json.h"
#include "profile/formats.h"
#include "tilecast/error.h"

namespace tilecast {
namespace {

const Json* member_of(const Json& object, const char* key) {
  if (!object.is_object()) return nullptr;
  const auto found = object.find(key);
  return found == object.end() ? nullptr : &*found;
}

int64_t number_of(const Json& object, const char* key, int64_t fallback) {
  const Json* number = member_of(object, key);
  return number != nullptr && number->is_number_integer() ? number->get<int64_t>() : fallback;
}

std::string text_member(const Json& object, const char* key) {
  const Json* text = member_of(object, key);
  return text != nullptr && text->is_string() ? text->get<std::string>() : "";
}

/// A member as the file has it; "" where there is none.
std::string written(const Json& object, const char* key) {
  const Json* value = member_of(object, key);
  return value == nullptr || value->is_null() ? "" : value->dump();
}

/// "Tensor(c10::BFloat16)" as record_shapes has it.
std::string kineto_type(const std::string& type) {
  constexpr std::string_view kTensor = "Tensor(", kList = "GenericList[";
  if (type.starts_with(kTensor) && type.ends_with(")"))
    return type.substr(kTensor.size(), type.size() - kTensor.size() - 1);
  if (type.starts_with(kList))
    return type.compare(kList.size(), kTensor.size(), kTensor) == 0 ? "TensorList" : "ScalarList";
  return type == "None" ? "" : "Scalar";
}

/// What Kineto writes of an argument that is no tensor: "[2, 2]", "True".
std::string kineto_value(const Json& value) {
  if (value.is_boolean()) return value.get<bool>() ? "True" : "False";
  if (value.is_string())
    return value.get<std::string>() == "<None>" ? "" : value.get<std::string>();
  if (!value.is_array()) return value.dump();
  std::string list = "[";
  for (const Json& one : value) list += (list.size() > 1 ? ", " : "") + kineto_value(one);
  return list + "]";
}

struct KinetoArguments {
  std::string dims, types, strides, values;
};

/// Inputs as record_shapes has them. Lists of numbers have an entry for each in `shapes`, where
/// record_shapes has an empty one.
KinetoArguments kineto_arguments(const Json& inputs) {
  const Json *shapes = member_of(inputs, "shapes"), *types = member_of(inputs, "types");
  const Json *strides = member_of(inputs, "strides"), *values = member_of(inputs, "values");
  if (shapes == nullptr || !shapes->is_array() || types == nullptr || !types->is_array()) return {};
  const auto entry = [](const Json* list, size_t i) {
    return list != nullptr && list->is_array() && i < list->size() ? (*list)[i] : Json::array();
  };
  Json dims = Json::array(), names = Json::array(), steps = Json::array(), others = Json::array();
  for (size_t i = 0; i < types->size(); ++i) {
    const Json& word = (*types)[i];
    const std::string type = kineto_type(word.is_string() ? word.get<std::string>() : "");
    const bool tensor = !type.empty() && type != "Scalar" && type != "ScalarList";
    dims.push_back(tensor ? entry(shapes, i) : Json::array());
    steps.push_back(tensor ? entry(strides, i) : Json::array());
    names.push_back(type);
    others.push_back(tensor ? "" : kineto_value(entry(values, i)));
  }
  return {dims.dump(), names.dump(), steps.dump(), others.dump()};
}

/// The value of an attribute.
int64_t attribute(const Json& node, std::string_view name) {
  const Json* all = member_of(node, "attrs");
  if (all == nullptr || !all->is_array()) return 0;
  for (const Json& one : *all)
    if (text_member(one, "name") == name) return number_of(one, "value", 0);
  return 0;
}

/// A node; null where the text is none.
Json node_of(std::string_view json, const std::string& where) {
  try {
    return parse_json(json, where);
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::kInput) throw;
    return {};
  }
}

}  // namespace

void ChakraNodes::add(std::string_view json, TraceBuilder& builder) {
  const std::string where = fmt::format("{}: node {}", name_, ++count_);
  const Json node = node_of(json, where);
  const int64_t id = number_of(node, "id", -1);
  if (id < 0) {
    ++builder.trace().odd_events;
    return;
  }
  const int64_t parent = number_of(node, "ctrl_deps", -1);
  const std::string name = text_member(node, "name"), category = text_member(node, "cat");
  const std::string start = written(node, "ts"), duration = written(node, "inclusive_dur");
  if (category == "kernel" || category == "gpu_memcpy" || category == "gpu_memset") {
    const std::string of = std::to_string(parent);
    const std::string stream = std::to_string(number_of(node, "stream", 0));
    RawEvent event;
    event.phase = "X";
    event.category = category;
    event.name = name;
    event.time = start;
    event.duration = duration;
    event.external_id = of;
    event.stream = stream;
    event.device = "0";
    builder.add(event);
    return;
  }
  KinetoArguments arguments;
  if (const Json* inputs = member_of(node, "inputs")) arguments = kineto_arguments(*inputs);
  constexpr int64_t kNodeBytes = 512;
  bytes_ += kNodeBytes + static_cast<int64_t>(json.size());
  Budget::here().allow(kTraceNames, bytes_, where);
  nodes_.insert_or_assign(
      id, Node{parent, attribute(node, "tid"), name, arguments.dims, arguments.types,
               arguments.strides, arguments.values, start, duration});
}

/// An operator and all that it called, depth first: a place before and one after what is within.
void ChakraNodes::visit(int64_t root, TraceBuilder& builder) {
  struct Open {
    int64_t id = 0, begin = 0;
    size_t next = 0;
  };
  std::vector<Open> open = {{root, place_++, 0}};
  while (!open.empty()) {
    Open& top = open.back();
    const auto children = children_.find(top.id);
    if (children != children_.end() && top.next < children->second.size()) {
      open.push_back({children->second[top.next++], place_++, 0});
      continue;
    }
    const Node& node = nodes_.at(top.id);
    const std::string begin = node.start.empty() ? std::to_string(top.begin) : node.start;
    const std::string length =
        node.start.empty() ? std::to_string(place_++ - top.begin) : node.duration;
    const std::string number = std::to_string(top.id), thread = std::to_string(node.thread);
    open.pop_back();
    if (node.name.starts_with("[")) continue;  // the process and its threads
    RawEvent event;
    event.phase = "X";
    event.category = "cpu_op";
    event.name = node.name;
    event.time = begin;
    event.duration = length;
    event.external_id = number;
    event.thread = thread;
    event.dims = node.dims;
    event.types = node.types;
    event.strides = node.strides;
    event.values = node.values;
    builder.add(event);
  }
}

void ChakraNodes::finish(TraceBuilder& builder) {
  std::vector<int64_t> roots;
  for (const auto& [id, node] : nodes_) {
    // An operator begins after the one that calls it, so that a larger id is no parent.
    if (node.parent < id && nodes_.contains(node.parent))
      children_[node.parent].push_back(id);
    else
      roots.push_back(id);
  }
  for (const int64_t root : roots) visit(root, builder);
  builder.trace().format = TraceFormat::kChakra;
}

}  // namespace tilecast
