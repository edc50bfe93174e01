#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "graph/graph.h"
#include "ops/attributes.h"
#include "ops/decompose.h"
#include "ops/kernel.h"
#include "ops/sharding.h"
#include "ops/sizes.h"

namespace tilecast {

class GradientBuilder;

/// Shape and dtype of a node's output.
struct TensorSpec {
  Shape shape;
  DType dtype = DType::kFp32;
  bool contiguous = true;
  bool view = false;                         ///< shares the memory of the first input
  std::optional<int64_t> stored_bytes = {};  ///< Tensor::stored_bytes
};

/// The node that a shape rule or a work function is called for.
struct OpContext {
  const Graph& graph;
  const Node& node;

  const Tensor& input(size_t i) const { return graph.tensor(node.inputs[i]); }
  const Tensor& output(size_t i) const { return graph.tensor(node.outputs[i]); }
  size_t input_count() const { return node.inputs.size(); }
  /// Same as the function `attribute` below.
  template <typename T>
  const T& attribute(std::string_view name) const;
  int64_t integer(std::string_view name) const;
  /// Throws Error{kInput} that names the node and its operator.
  [[noreturn]] void fail(const std::string& message) const;
};

/// How torch.autocast treats an operator's inputs (aten/src/ATen/autocast_mode.h, PyTorch 2.13).
enum class AutocastClass : uint8_t {
  kPromote,       ///< leaves them unchanged; the output has the widest dtype
  kLowPrecision,  ///< casts them to bf16 or fp16 (AT_FORALL_LOWER_PRECISION_FP)
  kFp32,          ///< casts them to fp32 (AT_FORALL_FP32, AT_FORALL_FP32_SET_OPT_DTYPE)
};

/// Fusion of a pointwise chain into the operator over rows that follows it: the chain's result
/// stays on chip and is never written to memory.
struct RowFusion {
  std::string_view fused;         ///< the operator that replaces chain and rows
  int64_t flops_per_element = 0;  ///< of the operator over rows alone
};

/// How the weights of an operator are quantized.
struct WeightQuantization {
  std::vector<size_t> weights;  ///< indices of the inputs that are quantized
  /// Adds the node with quantized weights, given its inputs in the new graph; returns its outputs.
  std::vector<TensorId> (*rewrite)(GraphBuilder&, const Node&, std::vector<TensorId> inputs,
                                   QuantScheme) = nullptr;
};

/// One operator. All that Tilecast knows about an operator is in its entry.
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
  /// Appends the kernels that PyTorch launches; none for views. May be null: no kernel.
  void (*work)(const OpContext&, std::vector<Kernel>&) = nullptr;
  /// Appends the nodes that autograd runs; null: no gradient.
  void (*backward)(GradientBuilder&, const Node&) = nullptr;
  /// The backward rule updates frozen weights itself (embedding tables with a sparse optimizer), so
  /// the outputs require a gradient in any case.
  bool updates_in_backward = false;
  /// Backward computes the outputs again instead of keeping them.
  bool recomputed_in_backward = false;
  /// FLOPs per output element of a pointwise operator; nullopt for others. Pointwise operators can
  /// be fused.
  std::optional<int64_t> pointwise_flops;
  /// Created by the fusion pass only. Its outputs are the chain's; `infer` does not apply.
  bool is_fused = false;
  AutocastClass autocast = AutocastClass::kPromote;
  std::optional<RowFusion> row_fusion;
  std::optional<WeightQuantization> quantization;
  /// The sizes that describe a single kernel without a graph, and the operands that they stand for.
  /// Default for operators that launch a kernel: rows and columns.
  std::vector<SizeDef> sizes;
  Operands (*operands)(GraphBuilder&, const GivenSizes&) = nullptr;
  std::optional<RandomSizes> random_sizes;  ///< nullopt: no random kernels
  /// Replaces a module by the operators that eager PyTorch launches; null: not a module.
  Decompose decompose = nullptr;
  /// The tensor-parallel rule. Null: shard_pointwise for pointwise operators, shard_replicated for
  /// others.
  Shard shard = nullptr;
  std::string_view example;  ///< inputs in graph notation, for the tests that visit all operators
  /// No measurement that the weights were made from holds such kernels: they are forecast from
  /// their traffic alone. An operator with an attribute `training`: only where that is 1.
  bool unmeasured = false;
};

/// The operator, marked as one that was not measured.
inline OpDef unmeasured(OpDef op) {
  op.unmeasured = true;
  return op;
}

/// All operators, in the order of the documentation.
const std::vector<OpDef>& op_table();

const OpDef& op_def(OpId op);

/// Shape rule: one output of the first input's shape and dtype.
std::vector<TensorSpec> infer_same(const OpContext& context);

/// Every input is read once, every output written once.
void add_traffic(Kernel& kernel, const OpContext& context);

/// nullptr if the operator has no attribute of that name.
const AttributeDef* find_attribute_def(const OpDef& op, std::string_view name);

/// The names of all attributes, joined; "none" if there are none.
std::string attribute_names(const OpDef& op);

/// Checks the number of a node's inputs, and that its attributes are known, have the declared type
/// and range, are not repeated, and that no required one is missing. Throws Error{kInput} that
/// names the node and the attribute.
void check_operands(const OpContext& context);

/// The default of an operator's attribute.
const AttributeValue& attribute_default(OpId op, std::string_view name);

/// A node's attribute, or the default from the operator table. The attribute must have a default or
/// be required.
template <typename T>
const T& attribute(const Node& node, std::string_view name) {
  const AttributeValue* given = node.find_attribute(name);
  return std::get<T>(given != nullptr ? *given : attribute_default(node.op, name));
}

/// A node's attribute, or `fallback`; for attributes whose default follows from the shapes of the
/// inputs.
inline int64_t integer_or(const Node& node, std::string_view name, int64_t fallback) {
  const AttributeValue* given = node.find_attribute(name);
  return given != nullptr ? std::get<int64_t>(*given) : fallback;
}

template <typename T>
const T& OpContext::attribute(std::string_view name) const {
  return tilecast::attribute<T>(node, name);
}
inline int64_t OpContext::integer(std::string_view name) const { return attribute<int64_t>(name); }

/// nullopt if there is no such operator.
std::optional<OpId> find_op(std::string_view name);

/// Throws Error{kNotFound} with the nearest names.
OpId require_op(std::string_view name);

}  // namespace tilecast
