#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "graph/graph.h"
#include "ops/builder.h"

namespace tilecast {

/// The interface for backward rules. A rule reads the gradient of a node's output and adds
/// gradients to the node's inputs. Several gradients of one tensor are summed, as in autograd.
class GradientBuilder {
 public:
  explicit GradientBuilder(Graph& graph);

  const Graph& graph() const { return graph_; }
  const Tensor& tensor(TensorId id) const { return graph_.tensor(id); }
  /// Whether the tensor requires a gradient: it is a weight or computed from one.
  bool requires_grad(TensorId id) const;
  /// Determines which tensors require a gradient: weights, `others`, and tensors computed from
  /// them.
  void mark_requires_grad(const std::vector<TensorId>& others = {});

  /// Gradient of an output of the current node; -1 if there is none.
  TensorId gradient(TensorId id) const;
  /// Adds to the gradient of a tensor.
  void add_gradient(TensorId id, TensorId gradient);
  /// From now on `copy` stands for `original`, whose gradients it shares: it was computed again.
  void stand_in(TensorId copy, TensorId original);
  /// Replaces the gradient of a tensor (entering a repeated segment).
  void set_gradient(TensorId id, TensorId gradient);

  /// Adds a node of the backward phase.
  TensorId op(std::string_view op, std::vector<TensorId> inputs,
              std::vector<Attribute> attributes = {});
  std::vector<TensorId> add(std::string_view op, std::vector<TensorId> inputs,
                            std::vector<Attribute> attributes = {});
  /// Adds the gradient of a weight to the stored gradient, with a kernel of its own.
  void accumulate(TensorId weight, TensorId gradient);
  /// Sums a gradient over broadcast dimensions, to the shape of `like`.
  TensorId reduce_to(TensorId gradient, TensorId like);
  /// An operand of the forward pass: the tensor itself, or its value computed again if autograd
  /// does not keep it.
  TensorId kept(TensorId id);
  /// Copies the gradient if its memory layout is not dense, as reshape does.
  TensorId dense(TensorId gradient);

  void set_name(std::string name) { name_ = std::move(name); }
  GraphBuilder& builder() { return builder_; }

 private:
  Graph& graph_;
  GraphBuilder builder_;
  std::vector<TensorId> gradients_;  // by tensor id; -1: none
  /// The tensor whose gradients a copy shares; most tensors are their own.
  TensorId original(TensorId id) const;

  /// The last node that makes the tensor; nullptr: none. While gradients are built, nodes are only
  /// added, so each is looked at once.
  const Node* maker(TensorId id);

  std::vector<int32_t> makers_;  // by tensor id, of the first `indexed_` nodes; -1: none
  size_t indexed_ = 0;
  std::vector<bool> requires_grad_;
  std::vector<TensorId> originals_;  // by tensor id, of copies; -1: none
  std::vector<TensorId> totals_;     // by weight: its stored gradient; -1: none yet
  std::string name_;
};

/// The gradient of operators that only serve inference: throws Error{kInput} that says so.
void refuse_gradient(GradientBuilder& g, const Node& node);

}  // namespace tilecast
