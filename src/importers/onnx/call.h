#pragma once

// One node of an ONNX graph while it is translated: its inputs, attributes and outputs, and the
// steps that several operators share.

#include "importers/onnx/translator.h"

namespace tilecast {

class OnnxCall {
 public:
  OnnxCall(OnnxTranslator& translator, const OnnxNode& node, OnnxScope& scope);

  const OnnxNode& node() const { return node_; }
  GraphBuilder& builder() { return t_.b_; }
  int64_t opset() const { return t_.file_.opset; }
  [[noreturn]] void fail(const std::string& message) const;

  // Inputs.
  bool has(size_t i) const { return i < inputs_.size() && inputs_[i].is_known(); }
  size_t input_count() const { return inputs_.size(); }
  OnnxValue& value(size_t i);
  /// The input as a tensor of the graph; a constant becomes a buffer.
  TensorId tensor(size_t i);
  Shape shape(size_t i) const;
  DType dtype(size_t i) const;
  /// nullptr: the values are not known before the model runs.
  const OnnxConstant* constant(size_t i) const;
  /// The values of an input that its caller knows to be constant if it is there at all.
  const OnnxConstant& known(size_t i) const;
  /// A constant of one element.
  bool is_scalar(size_t i) const;
  /// Values of a constant input. Throws Error{kUnsupported} if they are not known: `what` the
  /// output's shape depends on.
  Shape integers(size_t i, const char* what) const;
  /// The same for a tensor of one element. Throws Error{kInput} for another number of them.
  int64_t one_integer(size_t i, const char* what) const;
  /// The initializer of a float matrix or vector that an input is; nullptr: none.
  const OnnxTensor* weight(size_t i) const;
  /// A weight [k, n] that only products read, stored as [n, k] like that of a linear layer.
  TensorId swapped_weight(size_t i);
  bool only_in_products(size_t i) const;

  // Attributes.
  int64_t integer(std::string_view name, int64_t otherwise) const;
  double number(std::string_view name, double otherwise) const;
  std::string text(std::string_view name, const std::string& otherwise) const;
  Shape list(std::string_view name) const;
  const OnnxAttribute* attribute(std::string_view name) const;
  /// `axes` from an attribute (older operator sets) or from input `i`; nullopt: not given.
  std::optional<Shape> axes(size_t i, size_t rank) const;
  /// An axis from 0 to rank - 1.
  size_t axis(int64_t given, size_t rank) const;
  DType dtype_of(int64_t onnx_type) const;

  // Steps.
  const Tensor& tensor_info(TensorId id) const { return t_.graph_.tensor(id); }
  Shape shape_of(TensorId id) const { return t_.graph_.tensor(id).shape; }
  TensorId op(std::string_view op, std::vector<TensorId> inputs,
              std::vector<Attribute> attributes = {});
  std::vector<TensorId> add(std::string_view op, std::vector<TensorId> inputs,
                            std::vector<Attribute> attributes = {});
  /// As torch.reshape: a view, after a copy where the memory needs one.
  TensorId reshape(TensorId x, Shape shape);
  TensorId transpose(TensorId x, const Shape& order);
  TensorId expand(TensorId x, const Shape& shape);
  TensorId slice(TensorId x, size_t dim, int64_t count);
  /// A reduction with its dimensions kept, then a view without them unless `keep`.
  TensorId reduce(std::string_view op, TensorId x, const Shape& axes, bool keep);
  /// Joins tensors along a dimension; those without elements are left out.
  TensorId cat(std::vector<TensorId> parts, size_t dim);
  /// The tensor of a part of a sequence.
  TensorId tensor_of(OnnxValue& value) { return t_.tensor_of(value); }
  /// Joins tensors along a new first dimension.
  OnnxValue stack(std::vector<OnnxValue>& parts);
  /// The name for a layer: its weight's, or the node's.
  void name_after(size_t weight);
  const std::string& name() const { return name_; }

  // Outputs.
  size_t output_count() const { return node_.outputs.size(); }
  bool wants(size_t i) const { return i < node_.outputs.size() && !node_.outputs[i].empty(); }
  void set(size_t i, TensorId tensor);
  void set(size_t i, OnnxValue value);
  void set(size_t i, OnnxConstant constant);

 private:
  OnnxTranslator& t_;
  const OnnxNode& node_;
  OnnxScope& scope_;
  std::vector<OnnxValue> inputs_;
  std::string name_;
};

/// Translates one operator of ONNX.
struct OnnxOp {
  std::string_view op;
  void (*translate)(OnnxCall&);
};

// The families of operators, one file each.
std::vector<OnnxOp> onnx_pointwise_ops();
std::vector<OnnxOp> onnx_product_ops();
std::vector<OnnxOp> onnx_window_ops();
std::vector<OnnxOp> onnx_norm_ops();
std::vector<OnnxOp> onnx_view_ops();
std::vector<OnnxOp> onnx_movement_ops();
std::vector<OnnxOp> onnx_reduction_ops();
std::vector<OnnxOp> onnx_recurrent_ops();
std::vector<OnnxOp> onnx_quantization_ops();

/// nullptr: unknown. Operators that only compute on their elements follow from the operator table.
const OnnxOp* find_onnx_op(const OnnxNode& node);
/// Names of all operators that are translated, sorted.
std::vector<std::string_view> onnx_op_names();

/// Computes the outputs if all inputs are constants; false: not possible.
bool fold_constants(OnnxCall& call);

}  // namespace tilecast
