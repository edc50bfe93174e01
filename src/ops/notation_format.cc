// Writes a graph in text notation; notation.cc reads it.

#include <fmt/format.h>

#include "base/ascii.h"
#include "base/text.h"
#include "ops/notation.h"
#include "ops/op_def.h"

namespace tilecast {
namespace {

std::string tensor_name(TensorId id) { return fmt::format("t{}", id); }

/// The tensor to whose memory a node writes its first output; -1: memory of its own, or a view.
TensorId written_into(const Graph& graph, const Node& node) {
  const TensorId storage = graph.tensor(node.outputs[0]).storage;
  if (storage == node.outputs[0]) return -1;
  return op_def(node.op).infer({graph, node})[0].view ? -1 : storage;
}

const char* declaration_word(TensorKind kind) {
  return kind == TensorKind::kWeight     ? "weight"
         : kind == TensorKind::kBuffer   ? "buffer"
         : kind == TensorKind::kGradient ? "gradient"
                                         : "input";
}

/// " role=vision"; "" for kNone.
std::string role_suffix(Role role) {
  return role == Role::kNone ? "" : fmt::format(" role={}", role_word(role));
}

}  // namespace

std::string format_graph(const Graph& graph) {
  std::string out = fmt::format("graph {}\n", graph.name.empty() ? "model" : graph.name);
  const auto declare = [&](int32_t segment, const char* indent) {
    for (size_t i = 0; i < graph.tensors.size(); ++i) {
      const Tensor& tensor = graph.tensors[i];
      if (tensor.segment != segment || tensor.kind == TensorKind::kActivation) continue;
      const char* kind = declaration_word(tensor.kind);
      const bool takes_role =
          tensor.kind == TensorKind::kInput || tensor.kind == TensorKind::kWeight;
      out +=
          fmt::format("{}{} {}: {}{}{}{}\n", indent, kind, tensor_name(static_cast<TensorId>(i)),
                      dtype_name(tensor.dtype), format_shape(tensor.shape),
                      tensor.frozen ? " frozen" : "", takes_role ? role_suffix(tensor.role) : "");
    }
  };
  declare(-1, "");
  Phase phase = Phase::kForward;
  for (size_t s = 0; s < graph.segments.size(); ++s) {
    const Segment& segment = graph.segments[s];
    std::string name = segment.name;
    for (char& c : name) {
      if (!is_letter_or_digit(c) && c != '.') c = '_';
    }
    out += fmt::format("segment {} x{}{}\n", name, segment.repeat, role_suffix(segment.role));
    declare(static_cast<int32_t>(s), "  ");
    for (int32_t i = 0; i < segment.node_count; ++i) {
      const Node& node = graph.nodes[static_cast<size_t>(segment.first_node + i)];
      if (node.phase != phase) {
        phase = node.phase;
        out += fmt::format("  phase {}\n", phase_name(phase));
      }
      std::vector<std::string> outputs;
      for (TensorId id : node.outputs) outputs.push_back(tensor_name(id));
      std::vector<std::string> inputs;
      for (TensorId id : node.inputs) inputs.push_back(tensor_name(id));
      out += fmt::format("  {} = {}({})", join(outputs, ", "), op_def(node.op).name,
                         join(inputs, ", "));
      std::vector<std::string> attributes;
      for (const Attribute& attribute : node.attributes)
        attributes.push_back(fmt::format("{}={}", attribute.name, format_value(attribute.value)));
      if (node.role != Role::kNone)
        attributes.push_back(fmt::format("role={}", role_word(node.role)));
      if (!attributes.empty()) out += " {" + join(attributes, ", ") + "}";
      if (const TensorId target = written_into(graph, node); target >= 0)
        out += " into " + tensor_name(target);
      out += fmt::format(" \"{}\"\n", node.name);
    }
    for (const Carry& carry : segment.carries)
      out += fmt::format("  carry {} -> {}\n", tensor_name(carry.initial), tensor_name(carry.next));
  }
  for (TensorId id : graph.outputs) out += fmt::format("output {}\n", tensor_name(id));
  return out;
}

}  // namespace tilecast
