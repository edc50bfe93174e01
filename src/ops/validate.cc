#include "ops/validate.h"

#include <fmt/format.h>

#include <vector>

#include "base/text.h"
#include "ops/op_def.h"
#include "tilecast/error.h"

namespace tilecast {

#if !defined(NDEBUG) || defined(TILECAST_VALIDATE)
const bool kValidatesGraphs = true;
#else
const bool kValidatesGraphs = false;
#endif

namespace {

class Validator {
 public:
  explicit Validator(const Graph& graph) : graph_(graph), made_(graph.tensors.size(), false) {}

  void run() {
    mark_given();
    for (size_t i = 0; i < graph_.tensors.size(); ++i) check_tensor(static_cast<TensorId>(i));
    check_segments();
    for (size_t s = 0; s < graph_.segments.size(); ++s) check_body(static_cast<int32_t>(s));
    for (const TensorId id : graph_.outputs)
      require(exists(id) && made_[static_cast<size_t>(id)], "output",
              "is not computed by any node");
  }

 private:
  [[noreturn]] void fail(const std::string& what, const std::string& message) const {
    throw Error(ErrorKind::kInternal, fmt::format("graph '{}': {}: {}", shown_name(graph_.name),
                                                  shown_name(what), message));
  }
  void require(bool holds, const std::string& what, const std::string& message) const {
    if (!holds) fail(what, message);
  }

  bool exists(TensorId id) const {
    return id >= 0 && static_cast<size_t>(id) < graph_.tensors.size();
  }

  /// Tensors that exist before the first node.
  void mark_given() {
    for (size_t i = 0; i < made_.size(); ++i)
      made_[i] = graph_.tensors[i].kind != TensorKind::kActivation;
  }

  void check_tensor(TensorId id) const {
    const Tensor& tensor = graph_.tensor(id);
    const std::string what = fmt::format("tensor {} '{}'", id, tensor.name);
    const auto segments = static_cast<int32_t>(graph_.segments.size());
    require(tensor.segment >= -1 && tensor.segment < segments, what,
            fmt::format("segment {} of {}", tensor.segment, segments));
    require(exists(tensor.storage), what,
            fmt::format("storage {} is not a tensor", tensor.storage));
    require(graph_.tensor(tensor.storage).storage == tensor.storage, what,
            fmt::format("its storage, tensor {}, does not own its memory", tensor.storage));
    for (const int64_t dimension : tensor.shape)
      require(dimension >= 0, what, "a dimension is below 0: " + format_shape(tensor.shape));
    const bool input = tensor.kind == TensorKind::kInput,
               weight = tensor.kind == TensorKind::kWeight;
    require(tensor.role == Role::kNone || (input && role_fits(tensor.role, Bearer::kInput)) ||
                (weight && role_fits(tensor.role, Bearer::kWeight)),
            what, fmt::format("cannot have the role '{}'", role_word(tensor.role)));
    tensor_bytes(tensor);  // throws on overflow
  }

  void check_segments() const {
    int32_t next = 0;
    for (size_t i = 0; i < graph_.segments.size(); ++i) {
      const Segment& segment = graph_.segments[i];
      const std::string what = fmt::format("segment {} '{}'", i, segment.name);
      require(segment.first_node == next && segment.node_count >= 0, what,
              fmt::format("starts at node {}, but the previous one ends at {}", segment.first_node,
                          next));
      require(role_fits(segment.role, Bearer::kSegment), what,
              fmt::format("cannot have the role '{}'", role_word(segment.role)));
      require(segment.repeat >= 1, what, fmt::format("repeats {} times", segment.repeat));
      require(!segment.reverses ||
                  (*segment.reverses >= 0 && *segment.reverses < static_cast<int32_t>(i)),
              what, "does not reverse an earlier segment");
      next += segment.node_count;
    }
    require(static_cast<size_t>(next) == graph_.nodes.size(), "segments",
            fmt::format("cover {} of {} nodes", next, graph_.nodes.size()));
  }

  void check_body(int32_t index) {
    const Segment& segment = graph_.segments[static_cast<size_t>(index)];
    const std::string what = fmt::format("segment {} '{}'", index, segment.name);
    for (const Carry& carry : segment.carries)
      require(exists(carry.initial) && made_[static_cast<size_t>(carry.initial)], what,
              "carries from a tensor that is not computed before it");
    for (int32_t i = 0; i < segment.node_count; ++i)
      check_node(graph_.nodes[static_cast<size_t>(segment.first_node + i)], index);
    for (const Carry& carry : segment.carries) {
      require(exists(carry.next) && made_[static_cast<size_t>(carry.next)], what,
              "carries to a tensor that is not computed");
      const Tensor& from = graph_.tensor(carry.initial);
      const Tensor& to = graph_.tensor(carry.next);
      require(from.shape == to.shape && from.dtype == to.dtype, what,
              fmt::format("carries '{}' {}{} to '{}' {}{}", from.name, dtype_name(from.dtype),
                          format_shape(from.shape), to.name, dtype_name(to.dtype),
                          format_shape(to.shape)));
    }
  }

  void check_node(const Node& node, int32_t segment) {
    const std::string what = fmt::format("node '{}'", node.name);
    require(node.op >= 0 && static_cast<size_t>(node.op) < op_table().size(), what,
            fmt::format("operator {} is not in the table", node.op));
    require(
        role_fits_op(node.role, op_def(node.op).name), what,
        fmt::format("{} cannot have the role '{}'", op_def(node.op).name, role_word(node.role)));
    for (const TensorId id : node.inputs) {
      require(exists(id), what, fmt::format("input {} is not a tensor", id));
      require(
          made_[static_cast<size_t>(id)], what,
          fmt::format("reads tensor {} '{}' before it is computed", id, graph_.tensor(id).name));
    }
    for (const TensorId id : node.outputs) {
      require(exists(id), what, fmt::format("output {} is not a tensor", id));
      const Tensor& output = graph_.tensor(id);
      require(output.kind == TensorKind::kReference || !made_[static_cast<size_t>(id)], what,
              fmt::format("tensor {} '{}' is computed twice, or is an input", id, output.name));
      require(output.segment == segment, what,
              fmt::format("its output is in segment {}, but the node is in {}", output.segment,
                          segment));
      made_[static_cast<size_t>(id)] = true;
    }
    check_outputs(node, what);
  }

  void check_outputs(const Node& node, const std::string& what) const {
    const OpDef& definition = op_def(node.op);
    try {
      check_operands({graph_, node});
      if (definition.is_fused) return require(!node.outputs.empty(), what, "makes nothing");
      const std::vector<TensorSpec> specs = definition.infer({graph_, node});
      require(specs.size() == node.outputs.size(), what,
              fmt::format("has {} outputs, but {} has {}", node.outputs.size(), definition.name,
                          specs.size()));
      for (size_t i = 0; i < specs.size(); ++i)
        check_spec(specs[i], graph_.tensor(node.outputs[i]), node, what);
    } catch (const Error& error) {
      if (error.kind() == ErrorKind::kInternal) throw;
      fail("operands", error.what());  // names the node
    }
  }

  void check_spec(const TensorSpec& spec, const Tensor& found, const Node& node,
                  const std::string& what) const {
    require(spec.shape == found.shape && spec.dtype == found.dtype, what,
            fmt::format("{} computes {}{}, but the graph has {}{}", op_def(node.op).name,
                        dtype_name(spec.dtype), format_shape(spec.shape), dtype_name(found.dtype),
                        format_shape(found.shape)));
    require(spec.contiguous == found.contiguous, what, "its output is marked as dense but is not");
    if (spec.view)
      require(found.storage == graph_.tensor(node.inputs[0]).storage, what,
              "its output is a view but does not share the memory of its input");
  }

  const Graph& graph_;
  std::vector<bool> made_;  ///< by tensor: given, or made by a node so far
};

}  // namespace

void validate(const Graph& graph) { Validator(graph).run(); }

}  // namespace tilecast
