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
  /// As the free `attribute` below.
  template <typename T>
  const T& attribute(std::string_view name) const;
  int64_t integer(std::string_view name) const;
  /// Throws Error{kInput} that names the node and its operator.
  [[noreturn]] void fail(const std::string& message) const;
};

/// What torch.autocast does with an operator's inputs (aten/src/ATen/autocast_mode.h,
/// PyTorch 2.13).
enum class AutocastClass : uint8_t {
  kPromote,       ///< leaves them; the shape rule takes the widest type
  kLowPrecision,  ///< casts them to bf16 or fp16 (AT_FORALL_LOWER_PRECISION_FP)
  kFp32,          ///< casts them to fp32 (AT_FORALL_FP32, AT_FORALL_FP32_SET_OPT_DTYPE)
};

/// How an operator over rows ends a pointwise chain: each element is read when its row is, so what
/// the chain made is never written.
struct RowFusion {
  std::string_view fused;         ///< the operator that stands for chain and rows
  int64_t flops_per_element = 0;  ///< of the rows alone
};

/// How the weights of an operator are stored in few bits.
struct WeightQuantization {
  std::vector<size_t> weights;  ///< which inputs a scheme stores
  /// Adds the node that reads them so, for inputs as they are now; gives its outputs.
  std::vector<TensorId> (*rewrite)(GraphBuilder&, const Node&, std::vector<TensorId> inputs,
                                   QuantScheme) = nullptr;
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
  /// Made by the fusion pass only: its outputs are those of the chain, not what `infer` says.
  bool is_fused = false;
  AutocastClass autocast = AutocastClass::kPromote;
  std::optional<RowFusion> row_fusion;
  std::optional<WeightQuantization> quantization;
  /// The sizes by which a kernel is asked for without a graph, and the operands that they describe.
  /// Where an operator that launches something names none: rows and columns.
  std::vector<SizeDef> sizes;
  Operands (*operands)(GraphBuilder&, const GivenSizes&) = nullptr;
  std::optional<RandomSizes> random_sizes;  ///< nullopt: kernels of it are not drawn at random
  /// Writes what eager PyTorch launches for a module; null for what it launches itself.
  Decompose decompose = nullptr;
  /// What tensor-parallel ranks compute. Null: element by element for pointwise operators, all of
  /// it for others.
  Shard shard = nullptr;
  std::string_view example;  ///< inputs in graph notation, for the docs and the sweep tests
};

/// All operators, in the order of the documentation.
const std::vector<OpDef>& op_table();

const OpDef& op_def(OpId op);

/// Shape rule: one output of the first input's shape and dtype.
std::vector<TensorSpec> infer_same(const OpContext& context);

/// Every input is read once, every output written once.
void add_traffic(Kernel& kernel, const OpContext& context);

/// nullptr where the operator has no attribute of that name.
const AttributeDef* find_attribute_def(const OpDef& op, std::string_view name);

/// Their names, joined; "none" where there is none.
std::string attribute_names(const OpDef& op);

/// Checks that a node has as many inputs as its operator takes, that its attributes are known, of
/// the declared type and range and given once, and that none is missing. Throws Error{kInput} that
/// names the node and the attribute.
void check_operands(const OpContext& context);

/// The default of an operator's attribute.
const AttributeValue& attribute_default(OpId op, std::string_view name);

/// A node's attribute, or its default in the table. For attributes that the operator declares, with
/// a default or as required.
template <typename T>
const T& attribute(const Node& node, std::string_view name) {
  const AttributeValue* given = node.find_attribute(name);
  return std::get<T>(given != nullptr ? *given : attribute_default(node.op, name));
}

/// As `attribute`, for one whose default follows from the inputs' shapes.
inline int64_t integer_or(const Node& node, std::string_view name, int64_t fallback) {
  const AttributeValue* given = node.find_attribute(name);
  return given != nullptr ? std::get<int64_t>(*given) : fallback;
}

template <typename T>
const T& OpContext::attribute(std::string_view name) const {
  return tilecast::attribute<T>(node, name);
}
inline int64_t OpContext::integer(std::string_view name) const { return attribute<int64_t>(name); }

/// nullopt where there is no such operator.
std::optional<OpId> find_op(std::string_view name);

/// Throws Error{kNotFound} with the nearest names.
OpId require_op(std::string_view name);

}  // namespace tilecast
