#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "graph/graph.h"
#include "ops/kernel.h"

namespace tilecast {

class GradientBuilder;

/// What a node's output is to be.
struct TensorSpec {
  Shape shape;
  DType dtype = DType::kFp32;
  bool contiguous = true;
  bool view = false;  ///< shares the memory of the first input
};

/// A node under construction: what shape rules and work functions see.
struct OpContext {
  const Graph& graph;
  const Node& node;

  const Tensor& input(size_t i) const { return graph.tensor(node.inputs[i]); }
  const Tensor& output(size_t i) const { return graph.tensor(node.outputs[i]); }
  size_t input_count() const { return node.inputs.size(); }
  /// Throws Error{kInput} that names the node and its operator.
  [[noreturn]] void fail(const std::string& message) const;
};

struct AttributeDef {
  std::string_view name;
  std::string_view doc;
  bool required = false;
};

/// One operator: the only place that knows it.
struct OpDef {
  std::string_view name;
  std::string_view doc;
  std::string_view aten;  ///< the PyTorch operator it stands for
  std::string_view onnx;  ///< the ONNX operator; "" where there is none
  int min_inputs = 1;
  int max_inputs = 1;
  std::vector<AttributeDef> attributes;
  /// Shapes and dtypes of the outputs; throws Error{kInput} where the inputs do not fit.
  std::vector<TensorSpec> (*infer)(const OpContext&) = nullptr;
  /// Appends the kernels that PyTorch launches; none for views. May be null (nothing launched).
  void (*work)(const OpContext&, std::vector<Kernel>&) = nullptr;
  /// Appends the nodes that autograd runs; null where no gradient flows.
  void (*backward)(GradientBuilder&, const Node&) = nullptr;
  /// FLOPs per output element of a pointwise operator; nullopt for others. Pointwise operators can
  /// be fused.
  std::optional<int64_t> pointwise_flops;
  std::string_view example;  ///< inputs in graph notation, for the docs and the sweep tests
};

/// All operators, in the order of the documentation.
const std::vector<OpDef>& op_table();

const OpDef& op_def(OpId op);

/// nullopt where there is no such operator.
std::optional<OpId> find_op(std::string_view name);

/// Throws Error{kNotFound} with the nearest names.
OpId require_op(std::string_view name);

// The families that make up the table, one file each.
std::vector<OpDef> matmul_ops();
std::vector<OpDef> transformer_ops();
std::vector<OpDef> expert_ops();
std::vector<OpDef> collective_ops();
std::vector<OpDef> convolution_ops();
std::vector<OpDef> pointwise_ops();
std::vector<OpDef> row_ops();
std::vector<OpDef> movement_ops();

}  // namespace tilecast
