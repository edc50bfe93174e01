#pragma once

// The typed graph of one rank. Goals: cheap to build and walk (dense ids into vectors), layers that
// repeat are held once. Non-goals: general control flow; a segment's body may only be repeated.
// Ruled out: one node per layer (a forecast of a deep model would cost its depth in time), and
// pointers between nodes (ids survive copies).

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "graph/dtype.h"
#include "graph/scheme.h"

namespace tilecast {

using TensorId = int32_t;
using OpId = int32_t;  ///< index into the operator table (src/ops)
using Shape = std::vector<int64_t>;

enum class TensorKind : uint8_t {
  kInput,       ///< given by the caller of the model
  kWeight,      ///< trained parameter
  kBuffer,      ///< persistent, not trained (masks, scales)
  kCache,       ///< keys and values of earlier tokens
  kActivation,  ///< made by a node
  kGradient,    ///< a parameter's accumulated gradient
  kOptimizer,   ///< optimizer state
  kReference,   ///< another name for memory that is counted elsewhere
};

struct Tensor {
  std::string name;
  Shape shape;
  DType dtype = DType::kFp32;
  TensorKind kind = TensorKind::kActivation;
  bool contiguous = true;
  TensorId storage = -1;  ///< the tensor that owns the memory: itself, or the base of a view
  int32_t segment = -1;   ///< the segment whose body makes it; -1 for inputs, weights, buffers
  bool cached = false;    ///< autocast's copy of a weight: kept to the end of the forward pass

  bool operator==(const Tensor&) const = default;
};

enum class Phase : uint8_t { kForward, kBackward, kOptimizer };
std::string_view phase_name(Phase phase);

/// What an attribute may hold; the operator table says which of it (AttributeDef).
using AttributeValue =
    std::variant<int64_t, double, std::string, DType, QuantScheme, std::vector<int64_t>>;

struct Attribute {
  std::string name;
  AttributeValue value;
  bool operator==(const Attribute&) const = default;
};

/// As the graph notation writes it: 3, 0.5, "text", bf16, fp8_block, [1, 2].
std::string format_value(const AttributeValue& value);

struct Node {
  std::string name;
  OpId op = 0;
  std::vector<TensorId> inputs;
  std::vector<TensorId> outputs;
  std::vector<Attribute> attributes;
  Phase phase = Phase::kForward;

  /// nullptr where the node has no attribute of that name; see `attribute` of ops/op_def.h for
  /// the operator's default.
  const AttributeValue* find_attribute(std::string_view wanted) const {
    for (const Attribute& entry : attributes) {
      if (entry.name == wanted) return &entry.value;
    }
    return nullptr;
  }
  void set_attribute(std::string_view name, AttributeValue value);
  bool operator==(const Node&) const = default;
};

/// From the second repetition on, the body reads `next` of the one before where the first reads
/// `initial`.
struct Carry {
  TensorId initial = -1;
  TensorId next = -1;
  bool operator==(const Carry&) const = default;
};

/// A run of consecutive nodes that executes `repeat` times (a transformer's layers).
struct Segment {
  std::string name;
  int32_t first_node = 0;
  int32_t node_count = 0;
  int64_t repeat = 1;
  std::vector<Carry> carries;
  /// For a backward segment: the forward segment that it walks from the last repetition to the
  /// first.
  std::optional<int32_t> reverses;
  bool operator==(const Segment&) const = default;
};

/// How tensor parallelism divides a weight: `parts` of one dimension, in units that stay together
/// (the rows of a head), are each spread over the ranks. A part with fewer units than ranks is held
/// several times.
struct WeightSplit {
  TensorId weight = -1;
  size_t dim = 0;
  int64_t unit = 1;
  std::array<int64_t, 3> parts{};  ///< units of each; queries, keys and values where they are one
  bool operator==(const WeightSplit&) const = default;
};

struct Graph {
  std::string name;
  std::vector<Tensor> tensors;
  std::vector<Node> nodes;
  std::vector<Segment> segments;  ///< in order of execution, covering all nodes
  std::vector<TensorId> outputs;
  std::vector<WeightSplit> splits;  ///< of a graph of modules; other weights every rank holds

  const Tensor& tensor(TensorId id) const { return tensors[static_cast<size_t>(id)]; }
  Tensor& tensor(TensorId id) { return tensors[static_cast<size_t>(id)]; }

  /// How often weights and other tensors of a segment's body exist: its repeat; 1 outside.
  int64_t repeat_of(int32_t segment) const {
    return segment < 0 ? 1 : segments[static_cast<size_t>(segment)].repeat;
  }
  /// Parameters of the whole model, repetitions included. Throws Error{kInput} on overflow.
  int64_t parameter_count() const;
  bool operator==(const Graph&) const = default;
};

/// By tensor: whether a node makes it; else it is given (inputs, weights, buffers).
std::vector<bool> made_tensors(const Graph& graph);

/// Product of the dimensions, 1 for a scalar. Throws Error{kInput} on overflow.
int64_t element_count(const Shape& shape);

/// Elements times the dtype's size, rounded up to whole bytes. Throws Error{kInput} on overflow.
int64_t tensor_bytes(const Tensor& tensor);

/// "[4, 1024]"
std::string format_shape(const Shape& shape);

}  // namespace tilecast
