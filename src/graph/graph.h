#pragma once

// The typed graph of one rank. Goals: it is cheap to build and to walk (dense ids into vectors),
// and layers that repeat are stored once. Non-goals: general control flow; a segment can only be
// repeated. Alternatives ruled out: a node for every layer, because the time of a forecast would
// grow with the model's depth; pointers between nodes, because ids stay valid when a graph is
// copied.

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "graph/dtype.h"
#include "graph/role.h"
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
  kActivation,  ///< computed by a node
  kGradient,    ///< a parameter's accumulated gradient
  kOptimizer,   ///< optimizer state
  kReference,   ///< refers to memory that is counted elsewhere
  kHost,        ///< in the host's memory
};

/// How long a Python variable keeps a tensor beyond its last reader (find_lifetimes).
enum class Held : uint8_t {
  kNo,
  kSoftmax,    ///< attention's scores: through the softmax
  kLayer,      ///< attention's weights: to the end of the layer; others to the next residual sum
  kNextLayer,  ///< weights that a layer returns: to the end of the next layer
};

struct Tensor {
  std::string name;  ///< a label
  Shape shape;
  DType dtype = DType::kFp32;
  TensorKind kind = TensorKind::kActivation;
  bool contiguous = true;
  TensorId storage = -1;  ///< the tensor that owns the memory: this one, or the base of a view
  int32_t segment = -1;   ///< the segment that it belongs to; -1: outside of all segments
  /// Bytes in memory, where shape and dtype do not give them: weights that a checkpoint stores in
  /// another way, tokens that were sent to the ranks of their experts.
  std::optional<int64_t> stored_bytes = {};
  bool cached = false;  ///< autocast's cached copy of a weight, kept until the forward pass ends
  bool frozen = false;  ///< a weight without gradient and optimizer state
  /// A weight that a layer multiplies with, neither an embedding nor of the output: Muon's.
  bool hidden_matrix = false;
  Held held = Held::kNo;
  Role role = Role::kNone;
  /// For a weight in a part of a model (part_of): its id in the graph of the whole model.
  TensorId origin = -1;

  bool operator==(const Tensor&) const = default;
};

/// Whether a node counts for time, memory or both. Published times were measured with older models,
/// whose nodes today's models no longer have: they take time but no memory. A loss may count for
/// memory alone.
enum class Counts : uint8_t { kAll, kTimeOnly, kMemoryOnly };

enum class Phase : uint8_t { kForward, kBackward, kOptimizer };
std::string_view phase_name(Phase phase);

/// The value of an attribute. The operator table declares the type of each attribute
/// (AttributeDef).
using AttributeValue =
    std::variant<int64_t, double, std::string, DType, QuantScheme, std::vector<int64_t>>;

struct Attribute {
  std::string name;
  AttributeValue value;
  bool operator==(const Attribute&) const = default;
};

/// The value as text in graph notation: 3, 0.5, "text", bf16, fp8_block, [1, 2].
std::string format_value(const AttributeValue& value);

struct Node {
  std::string name;  ///< a label
  OpId op = 0;
  std::vector<TensorId> inputs;
  std::vector<TensorId> outputs;
  std::vector<Attribute> attributes;
  Phase phase = Phase::kForward;
  Counts counts = Counts::kAll;
  bool attention_core = false;  ///< between the projections: selective checkpointing repeats it
  bool recomputed = false;      ///< of the forward pass, run again in the backward pass
  Role role = Role::kNone;

  /// nullptr if the node has no such attribute; `attribute` in ops/op_def.h also looks up the
  /// operator's default.
  const AttributeValue* find_attribute(std::string_view wanted) const {
    for (const Attribute& entry : attributes) {
      if (entry.name == wanted) return &entry.value;
    }
    return nullptr;
  }
  void set_attribute(std::string_view name, AttributeValue value);
  bool operator==(const Node&) const = default;
};

/// A tensor that is carried between repetitions of a segment: the first repetition reads `initial`,
/// each later one reads `next` of the repetition before it.
struct Carry {
  TensorId initial = -1;
  TensorId next = -1;
  bool operator==(const Carry&) const = default;
};

/// Consecutive nodes, the body, that are executed `repeat` times (the layers of a transformer).
struct Segment {
  std::string name;  ///< a label
  int32_t first_node = 0;
  int32_t node_count = 0;
  int64_t repeat = 1;
  std::vector<Carry> carries;
  /// For a segment of the backward pass: the forward segment that it processes in reverse order.
  std::optional<int32_t> reverses;
  Role role = Role::kNone;

  /// Layers: each repetition gives the next one a tensor. One layer alone has that form, too.
  bool is_layers() const { return !carries.empty(); }
  bool operator==(const Segment&) const = default;
};

/// The dimension of a layer that is divided. Ranks compute columns of a layer's outputs, or parts
/// of sums over its inputs, which are then added up. The rows of a vocabulary are outputs that may
/// also stay whole.
enum class SplitKind : uint8_t { kOutputs, kInputs, kVocabulary };

/// How tensor parallelism divides one dimension of a weight. The dimension consists of up to five
/// parts (e.g. queries, keys and values), and each part is divided over the ranks. A unit (e.g. the
/// rows of one head) is never divided; a part with fewer units than ranks is replicated.
struct WeightSplit {
  TensorId weight = -1;
  size_t dim = 0;
  int64_t unit = 1;
  std::array<int64_t, 5> parts{};  ///< number of units in each part
  SplitKind kind = SplitKind::kOutputs;
  bool operator==(const WeightSplit&) const = default;
};

struct Graph {
  std::string name;
  std::vector<Tensor> tensors;
  std::vector<Node> nodes;
  std::vector<Segment> segments;  ///< in order of execution; together they cover all nodes
  std::vector<TensorId> outputs;
  std::vector<TensorId> losses;     ///< where the backward pass starts; empty: at the outputs
  std::vector<WeightSplit> splits;  ///< of a graph of modules; all other weights are replicated

  const Tensor& tensor(TensorId id) const { return tensors[static_cast<size_t>(id)]; }
  Tensor& tensor(TensorId id) { return tensors[static_cast<size_t>(id)]; }

  /// How many instances of a segment's tensors exist: its repeat; 1 outside of segments.
  int64_t repeat_of(int32_t segment) const {
    return segment < 0 ? 1 : segments[static_cast<size_t>(segment)].repeat;
  }
  /// Parameters of the whole model, repetitions included. Throws Error{kInput} on overflow.
  int64_t parameter_count() const;
  bool operator==(const Graph&) const = default;
};

/// For each tensor, whether a node computes it; inputs, weights and buffers are not computed.
std::vector<bool> made_tensors(const Graph& graph);

/// Product of the dimensions, 1 for a scalar. Throws Error{kInput} on overflow.
int64_t element_count(const Shape& shape);

/// Elements times the dtype's size, rounded up to whole bytes. Throws Error{kInput} on overflow.
int64_t tensor_bytes(const Tensor& tensor);

/// Bytes of the tensor in memory: its `stored_bytes`, else `tensor_bytes`.
int64_t memory_bytes(const Tensor& tensor);

/// "[4, 1024]"
std::string format_shape(const Shape& shape);

}  // namespace tilecast
