#pragma once

// Builds one step of serving software from a graph of modules. The interface is `fuse` (serving.h).

#include <string>
#include <string_view>
#include <vector>

#include "ops/builder.h"
#include "passes/serving.h"
#include "passes/serving_fusions.h"

namespace tilecast {

class ServingStep {
 public:
  ServingStep(const Graph& from, const StepRequest& request);
  Graph run();

 private:
  /// The tensor of the step that replaces a tensor of the modules; activations are [tokens,
  /// hidden_dim].
  struct Value {
    TensorId id = -1;
    TensorId added = -1;  ///< the next norm adds this tensor; -1: none
  };
  /// Writes the operators that replace a module.
  using Rule = void (ServingStep::*)(int32_t node);
  static Rule rule_of(OpId op);

  // serving_step.cc
  void begin(const Segment& segment);
  void take(int32_t node);
  void same(int32_t node);     ///< keeps the operator
  void pass_on(int32_t node);  ///< returns the input; launches no kernel
  void leave_out(int32_t) {}
  void split_heads(int32_t node);
  void view_heads(int32_t node);
  void multiply(int32_t node);
  void norm(int32_t node);
  void add(int32_t node);
  void linear(int32_t node);
  void gather(int32_t node);
  void experts(int32_t node);
  // serving_adapters.cc
  std::vector<int32_t> adapted_layers(const std::vector<int32_t>& linears) const;
  TensorId adapt(TensorId y, TensorId x, const std::string& name,
                 const std::vector<int32_t>& layers);
  // serving_scan.cc
  void scan(int32_t node);
  void convolution(int32_t node);
  TensorId states(const std::string& name, Shape shape, DType dtype);
  // serving_sparse.cc
  void indexer(int32_t node);
  void compressed_attention(int32_t node);
  // serving_attention.cc
  void attention(int32_t node);
  void latent_attention(int32_t node);

  const Node& node_at(int32_t index) const { return from_.nodes[static_cast<size_t>(index)]; }
  const Shape& module_shape(TensorId id) const { return from_.tensor(id).shape; }
  Value& value(TensorId id) { return values_[static_cast<size_t>(id)]; }
  void set(TensorId module, TensorId id) { value(module) = {id, -1}; }
  /// The replacement of a tensor: adds a pending sum; creates weights and inputs on first use.
  TensorId get(TensorId module);
  TensorId given(TensorId module);

  TensorId op(std::string_view name, std::vector<TensorId> inputs, const std::string& node,
              std::vector<Attribute> attributes = {}) {
    return b_.op(name, std::move(inputs), node, std::move(attributes));
  }
  TensorId view(TensorId x, Shape shape) {
    return op("view", {x}, "view", {{"shape", std::move(shape)}});
  }
  TensorId slice(TensorId x, int64_t columns, const std::string& name) {
    return op("slice_columns", {x}, name, {{"columns", columns}});
  }
  QuantScheme scheme_of(const std::string& module, Role weight) const {
    return request_.scheme_of ? request_.scheme_of(module, weight) : QuantScheme::kNone;
  }
  /// x · weightᵀ; `inputs` are the inputs of the operator linear, or quantized_linear if there is a
  /// scheme. With `adapted`, other kernels read x too.
  TensorId linear_of(std::vector<TensorId> inputs, QuantScheme scheme, const std::string& name,
                     bool adapted = false);
  bool is_quantized_before(TensorId x, QuantScheme scheme) const;
  std::string_view writer_of(TensorId id) const;
  /// x · weightᵀ for one or several merged linear layers; `weight` is the role of the weight.
  TensorId product(const std::string& name, Role weight, const std::vector<int32_t>& linears);
  TensorId last_tokens(TensorId x);

  struct Latent;  // serving_attention.cc: one latent attention
  std::vector<TensorId> append_cache(const std::string& p, int64_t columns,
                                     std::vector<TensorId> added);
  TensorId rows_of(TensorId x, const StepRequest::Group& group, const std::string& name);
  TensorId buffer_like(TensorId x, int64_t columns, const std::string& name);
  TensorId join(TensorId buffer, std::vector<TensorId> parts, const std::string& name);
  TensorId fresh_latent(const StepRequest::Group& group, const Latent& l);
  TensorId cached_latent(const StepRequest::Group& group, const Latent& l, TensorId cache);
  TensorId weight_part(TensorId whole, Shape shape, const std::string& name);

  const Graph& from_;
  const StepRequest& request_;
  ModuleFusions fusions_;
  Graph to_;
  GraphBuilder b_;
  std::vector<Value> values_;
  std::vector<TensorId> products_;  ///< the product of each merge
  int64_t tokens_ = 0, sequences_ = 0;
};

}  // namespace tilecast
