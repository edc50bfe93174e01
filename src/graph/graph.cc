#include "graph/graph.h"

#include <fmt/format.h>

#include "base/checked.h"
#include "graph/dtype.h"

namespace tilecast {

std::string_view phase_name(Phase phase) {
  switch (phase) {
    case Phase::kForward:
      return "forward";
    case Phase::kBackward:
      return "backward";
    case Phase::kOptimizer:
      return "optimizer";
  }
  return "";
}

std::string format_value(const AttributeValue& value) {
  struct Format {
    std::string operator()(int64_t x) const { return std::to_string(x); }
    std::string operator()(double x) const { return fmt::format("{:#}", x); }
    std::string operator()(const std::string& x) const { return fmt::format("\"{}\"", x); }
    std::string operator()(DType x) const { return std::string(dtype_name(x)); }
    std::string operator()(QuantScheme x) const { return std::string(scheme_info(x).name); }
    std::string operator()(const std::vector<int64_t>& x) const { return format_shape(x); }
  };
  return std::visit(Format{}, value);
}

void Node::set_attribute(std::string_view wanted, AttributeValue value) {
  for (Attribute& entry : attributes) {
    if (entry.name == wanted) {
      entry.value = std::move(value);
      return;
    }
  }
  attributes.push_back({std::string(wanted), std::move(value)});
}

int64_t Graph::parameter_count() const {
  int64_t total = 0;
  for (const Tensor& entry : tensors) {
    if (entry.kind != TensorKind::kWeight) continue;
    total =
        checked_add(total, checked_multiply(element_count(entry.shape), repeat_of(entry.segment)));
  }
  return total;
}

std::vector<bool> made_tensors(const Graph& graph) {
  std::vector<bool> made(graph.tensors.size(), false);
  for (const Node& node : graph.nodes) {
    for (const TensorId id : node.outputs) made[static_cast<size_t>(id)] = true;
  }
  return made;
}

int64_t element_count(const Shape& shape) {
  int64_t count = 1;
  for (int64_t dimension : shape) count = checked_multiply(count, dimension);
  return count;
}

int64_t tensor_bytes(const Tensor& tensor) {
  const int64_t bits = dtype_bits(tensor.dtype);
  const int64_t count = element_count(tensor.shape);
  return bits < kBitsPerByte ? ceil_divide(count, kBitsPerByte / bits)
                             : checked_multiply(count, bits / kBitsPerByte);
}

int64_t memory_bytes(const Tensor& tensor) {
  return tensor.stored_bytes ? *tensor.stored_bytes : tensor_bytes(tensor);
}

std::string format_shape(const Shape& shape) { return fmt::format("[{}]", fmt::join(shape, ", ")); }

}  // namespace tilecast
