#pragma once

// From an operator of PyTorch, as a trace states it, to Tilecast's kernels: the same knowledge as
// python/tilecast/torch/operators.py, which has the operators of exported modules.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "graph/graph.h"
#include "ops/kernel.h"
#include "profile/trace.h"

namespace tilecast {

/// No tensor of a trace has more elements: its bytes and strides fit into 64 bits.
constexpr int64_t kMostTracedElements = int64_t{1} << 56;

/// Whether a tensor of a trace may have these sizes, which are not negative.
bool is_possible(const Shape& shape);

/// A tensor as record_shapes states it.
struct TracedTensor {
  Shape shape;
  Shape strides;               ///< as long as `shape`; row-major where the trace has none
  std::optional<DType> dtype;  ///< nullopt: one that Tilecast does not know

  bool is_scalar() const { return shape.empty(); }
  /// Bytes in memory: dimensions of stride 0 repeat the same elements.
  int64_t stored_bytes() const;
  int64_t elements() const { return element_count(shape); }
  /// Whether its elements lie without gaps, in any order.
  bool is_dense() const;
  bool is_row_major() const;
  /// Whether it is a view of a matrix, or of several, whose columns lie one after the other.
  bool is_transposed() const;
};

struct TracedArgument {
  std::vector<TracedTensor> tensors;  ///< one; several of a list; none: another value
  bool is_list = false;
  std::string value;  ///< of what is no tensor: "[2, 2]", "True"
};

/// The arguments of a call, in order; empty where the trace has no shapes.
std::vector<TracedArgument> arguments_of(const OperatorCall& call);

/// The work of one call of an operator.
struct CallWork {
  std::vector<Kernel> kernels;
  /// Forecast from traffic alone, as no kernel of the kind was measured.
  bool by_traffic = false;
  /// A tensor has gaps, or two are stored in different orders.
  bool is_strided = false;
};

/// What the kernels' names say that arguments do not.
struct CallHints {
  bool tf32 = false;           ///< products of fp32 on matrix units
  std::optional<DType> dtype;  ///< of lists of tensors, whose types a trace leaves out
};

/// The kernels that a call launches. nullopt: the operator is not known, or its sizes, or numbers
/// that its work depends on, are not in the trace.
std::optional<CallWork> work_of(const OperatorCall& call, const CallHints& hints = {});
/// The same of arguments as `arguments_of` gives them, or as they are changed.
std::optional<CallWork> work_of(std::string_view name, const std::vector<TracedArgument>& arguments,
                                const CallHints& hints);
/// "mm" of "aten::mm"; other operators keep their namespace.
std::string_view without_aten(std::string_view name);
/// Hints from the name of a kernel: elements of two bytes are taken for bf16.
CallHints hints_of(std::string_view kernel);

// Parts of `work_of`, a family each. nullopt: not of the family, or arguments that do not fit.

using Arguments = std::vector<TracedArgument>;

std::optional<CallWork> product_work(std::string_view name, const Arguments& arguments,
                                     const CallHints& hints);
std::optional<CallWork> convolution_work(std::string_view name, const Arguments& arguments,
                                         const CallHints& hints);
std::optional<CallWork> attention_work(std::string_view name, const Arguments& arguments);
std::optional<CallWork> rows_work(std::string_view name, const Arguments& arguments);
std::optional<CallWork> movement_work(std::string_view name, const Arguments& arguments,
                                      const CallHints& hints);
std::optional<CallWork> pointwise_work(std::string_view name, const Arguments& arguments);

/// Where an operator has a weight or a table, which have no batch; -1: nowhere.
int weight_place(std::string_view name);
/// Whether an operator is a convolution or fused attention, whose first dimension is the batch.
bool is_convolution(std::string_view name);
bool is_attention(std::string_view name);
/// Where the left operand of a product of matrices is; its right one follows. -1: no product.
int product_place(std::string_view name);

// Pieces of these.

/// The tensor of an argument; nullptr if it is none of a known dtype and at least one dimension.
const TracedTensor* tensor_at(const Arguments& arguments, size_t place);
/// "[2, 2]" as numbers; empty if it is no list of whole numbers.
std::vector<int64_t> numbers_at(const Arguments& arguments, size_t place);
int64_t number_at(const Arguments& arguments, size_t place, int64_t fallback);
bool flag_at(const Arguments& arguments, size_t place);

/// One kernel that streams through memory.
CallWork stream_work(DType dtype, int64_t elements, int64_t flops, int64_t read_bytes,
                     int64_t write_bytes, int64_t rows = 1);

/// A graph of the call's nodes, whose kernels are its work.
class CallGraph {
 public:
  CallGraph();
  TensorId input(const TracedTensor& tensor);
  TensorId input(Shape shape, DType dtype);
  /// Adds a node; returns its outputs.
  std::vector<TensorId> add(std::string_view op, std::vector<TensorId> inputs,
                            std::vector<Attribute> attributes = {});
  CallWork work() const;

 private:
  Graph graph_;
};

}  // namespace tilecast
