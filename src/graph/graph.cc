#include "graph/graph.h"

#include <fmt/format.h>

#include "base/checked.h"

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

const std::vector<int64_t>* Node::attribute(std::string_view wanted) const {
  for (const Attribute& entry : attributes) {
    if (entry.name == wanted) return &entry.values;
  }
  return nullptr;
}

int64_t Node::attribute_or(std::string_view wanted, int64_t fallback) const {
  const std::vector<int64_t>* values = attribute(wanted);
  return values == nullptr || values->empty() ? fallback : values->front();
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

int64_t element_count(const Shape& shape) {
  int64_t count = 1;
  for (int64_t dimension : shape) count = checked_multiply(count, dimension);
  return count;
}

int64_t tensor_bytes(const Tensor& tensor) {
  constexpr int64_t kBitsPerByte = 8;
  const int64_t bits = dtype_bits(tensor.dtype);
  const int64_t count = element_count(tensor.shape);
  return bits < kBitsPerByte ? ceil_divide(count, kBitsPerByte / bits)
                             : checked_multiply(count, bits / kBitsPerByte);
}

std::string format_shape(const Shape& shape) { return fmt::format("[{}]", fmt::join(shape, ", ")); }

}  // namespace tilecast
