// If, Loop and functions of the file. Conditions and numbers of trips are known when shapes are.

#include <fmt/format.h>

#include "base/text.h"
#include "importers/onnx/call.h"
#include "tilecast/error.h"

namespace tilecast {
namespace {

constexpr int64_t kMostTrips = 10'000;

/// The value of a condition that is known before the model runs.
std::optional<bool> known_condition(const OnnxCall& call, size_t i) {
  const OnnxConstant* c = call.constant(i);
  if (c == nullptr || c->size() != 1 || c->is_float()) return std::nullopt;
  return c->integers[0] != 0;
}

std::optional<bool> known_condition(const OnnxValue& value) {
  if (value.constant == nullptr || value.constant->size() != 1 || value.constant->is_float())
    return std::nullopt;
  return value.constant->integers[0] != 0;
}

}  // namespace

void OnnxTranslator::run_function(const OnnxFunction& function, const OnnxNode& node,
                                  OnnxScope& scope) {
  OnnxScope inner;
  std::vector<OnnxAttribute> attributes;
  OnnxCall call(*this, node, scope);
  for (const OnnxAttribute& attribute : node.attributes) {
    const OnnxAttribute* resolved = call.attribute(attribute.name);
    if (resolved == nullptr) continue;
    attributes.push_back(*resolved);
    attributes.back().name = attribute.name;
  }
  for (const OnnxAttribute& attribute : function.defaults) {
    if (node.find(attribute.name) == nullptr) attributes.push_back(attribute);
  }
  inner.attributes = &attributes;
  for (size_t i = 0; i < function.inputs.size(); ++i) {
    if (call.has(i)) {
      // Initializers become tensors here, so that all calls share them.
      OnnxValue value = call.value(i);
      if (value.constant == nullptr && !value.is_sequence && call.weight(i) == nullptr)
        value.tensor = call.tensor(i);
      inner.values[function.inputs[i]] = std::move(value);
    } else {
      inner.values[function.inputs[i]] = {};
    }
  }
  run_nodes(function.nodes, inner);
  for (size_t i = 0; i < function.outputs.size() && i < node.outputs.size(); ++i) {
    const OnnxValue* found = inner.find(function.outputs[i]);
    if (found == nullptr)
      fail(fmt::format("function '{}' does not compute its output '{}'", shown_name(function.name),
                       shown_name(function.outputs[i])));
    call.set(i, *found);
  }
}

void OnnxTranslator::run_if(const OnnxNode& node, OnnxScope& scope) {
  OnnxCall call(*this, node, scope);
  const std::optional<bool> condition = known_condition(call, 0);
  if (!condition)
    throw Error(
        ErrorKind::kUnsupported,
        fmt::format("{}: node '{}' (If): its condition depends on the data of the model's "
                    "inputs; expected one that follows from shapes: export the model with only the "
                    "branch that is to be forecast",
                    where_, shown_name(node.name)));
  const OnnxAttribute* branch = call.attribute(*condition ? "then_branch" : "else_branch");
  if (branch == nullptr || branch->graph == nullptr) call.fail("a branch is missing");
  OnnxScope inner{.outer = &scope};
  for (const OnnxTensor& tensor : branch->graph->initializers)
    inner.values[tensor.name] = {.constant = tensor.values, .initializer = &tensor};
  run_nodes(branch->graph->nodes, inner);
  for (size_t i = 0; i < branch->graph->outputs.size() && i < node.outputs.size(); ++i) {
    const OnnxValue* found = inner.find(branch->graph->outputs[i].name);
    if (found == nullptr) call.fail("a branch does not compute its outputs");
    call.set(i, *found);
  }
}

/// Every trip is written out: the shapes of carried values may change from trip to trip.
void OnnxTranslator::run_loop(const OnnxNode& node, OnnxScope& scope) {
  OnnxCall call(*this, node, scope);
  const OnnxAttribute* attribute = call.attribute("body");
  if (attribute == nullptr || attribute->graph == nullptr) call.fail("its body is missing");
  const OnnxGraph& body = *attribute->graph;
  std::optional<int64_t> trips;
  if (call.has(0)) trips = call.one_integer(0, "its number of trips");
  std::optional<bool> condition = true;
  if (call.has(1)) condition = known_condition(call, 1);
  const size_t carried = node.inputs.size() < 2 ? 0 : node.inputs.size() - 2;
  if (body.inputs.size() != carried + 2 || body.outputs.size() < carried + 1)
    call.fail("the inputs and outputs of its body do not fit those of the node");
  std::vector<OnnxValue> state;
  for (size_t i = 0; i < carried; ++i)
    state.push_back(call.has(i + 2) ? call.value(i + 2) : OnnxValue{});
  std::vector<std::vector<OnnxValue>> scans(body.outputs.size() - carried - 1);
  for (int64_t trip = 0; !trips || trip < *trips; ++trip) {
    if (!condition)
      throw Error(ErrorKind::kUnsupported,
                  fmt::format("{}: node '{}' (Loop): its number of trips depends on the data of "
                              "the model's inputs",
                              where_, shown_name(node.name)));
    if (!*condition) break;
    if (trip == kMostTrips)
      throw Error(ErrorKind::kUnsupported, fmt::format("{}: node '{}' (Loop): more than {} trips",
                                                       where_, shown_name(node.name), kMostTrips));
    OnnxScope inner{.outer = &scope};
    for (const OnnxTensor& tensor : body.initializers)
      inner.values[tensor.name] = {.constant = tensor.values, .initializer = &tensor};
    const auto scalar = [&](OnnxType type, int64_t value) {
      OnnxValue result;
      result.constant = std::make_shared<const OnnxConstant>(OnnxConstant{type, {}, {value}, {}});
      return result;
    };
    inner.values[body.inputs[0].name] = scalar(OnnxType::kInt64, trip);
    inner.values[body.inputs[1].name] = scalar(OnnxType::kBool, 1);
    for (size_t i = 0; i < carried; ++i) inner.values[body.inputs[i + 2].name] = state[i];
    run_nodes(body.nodes, inner);
    const auto output = [&](size_t i) -> const OnnxValue& {
      const OnnxValue* found = inner.find(body.outputs[i].name);
      if (found == nullptr) call.fail("its body does not compute its outputs");
      return *found;
    };
    condition = known_condition(output(0));
    for (size_t i = 0; i < carried; ++i) state[i] = output(i + 1);
    for (size_t i = 0; i < scans.size(); ++i) scans[i].push_back(output(carried + 1 + i));
  }
  for (size_t i = 0; i < carried; ++i) call.set(i, state[i]);
  for (size_t i = 0; i < scans.size(); ++i) {
    if (call.wants(carried + i)) call.set(carried + i, call.stack(scans[i]));
  }
}

}  // namespace tilecast
