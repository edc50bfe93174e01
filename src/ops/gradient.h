#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "graph/graph.h"
#include "ops/builder.h"

namespace tilecast {

/// What an operator's backward rule writes with: it reads the gradient of the node's output and
/// gives gradients to the node's inputs. Several gradients of one tensor are added, as autograd
/// does.
class GradientBuilder {
 public:
  explicit GradientBuilder(Graph& graph);

  const Graph& graph() const { return graph_; }
  const Tensor& tensor(TensorId id) const { return graph_.tensor(id); }
  /// Whether a gradient flows to this tensor (a weight lies upstream).
  bool requires_grad(TensorId id) const;
  /// Marks which tensors want a gradient: weights, and what is computed from them.
  void mark_requires_grad();

  /// Gradient of an output of the node at hand; -1 where none arrived.
  TensorId gradient(TensorId id) const;
  /// Hands a gradient to a tensor: adds it where there is one already.
  void add_gradient(TensorId id, TensorId gradient);
  /// Replaces the gradient of a tensor (entering a repeated segment).
  void set_gradient(TensorId id, TensorId gradient);

  /// Adds a node of the backward phase.
  TensorId op(std::string_view op, std::vector<TensorId> inputs,
              std::vector<Attribute> attributes = {});
  std::vector<TensorId> add(std::string_view op, std::vector<TensorId> inputs,
                            std::vector<Attribute> attributes = {});
  /// Gives the gradient of a weight: one more kernel adds it to what earlier steps left.
  void accumulate(TensorId weight, TensorId gradient);
  /// The gradient in the shape of `like`: summed over broadcast dimensions.
  TensorId reduce_to(TensorId gradient, TensorId like);
  /// Copies where the memory layout is not dense, as reshape does.
  TensorId dense(TensorId gradient);

  void set_name(std::string name) { name_ = std::move(name); }
  GraphBuilder& builder() { return builder_; }

 private:
  Graph& graph_;
  GraphBuilder builder_;
  std::vector<TensorId> gradients_;  // by tensor; -1 for none
  std::vector<bool> requires_grad_;
  std::string name_;
};

}  // namespace tilecast
