#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "graph/graph.h"
#include "ops/kernel.h"

namespace tilecast {

/// Builds a Graph operator by operator; checks arity, attributes and shapes as it goes.
class GraphBuilder {
 public:
  explicit GraphBuilder(Graph& graph) : graph_(graph) {}

  Graph& graph() { return graph_; }

  /// Nodes added from here on belong to a segment that repeats. Ends the segment before it.
  void begin_segment(std::string name, int64_t repeat);
  /// The body reads `next` of the repetition before in place of `initial`.
  void carry(TensorId initial, TensorId next);
  /// Marks the current segment as the backward of another.
  void reverses(int32_t segment);
  void set_phase(Phase phase) { phase_ = phase; }
  int32_t current_segment() const { return static_cast<int32_t>(graph_.segments.size()) - 1; }

  TensorId input(std::string name, Shape shape, DType dtype);
  /// A weight of the current segment's body: exists once per repetition.
  TensorId weight(std::string name, Shape shape, DType dtype);
  TensorId tensor(Tensor tensor);
  /// The scales of so many weights that a scheme stores, a buffer of a segment.
  TensorId scales(const std::string& name, QuantScheme scheme, int64_t count, int32_t segment);

  /// Adds a node; returns its outputs. Throws Error where arity, attributes or shapes do not fit.
  std::vector<TensorId> add(std::string_view op, std::vector<TensorId> inputs, std::string name,
                            std::vector<Attribute> attributes = {});
  /// As `add`, for operators with one output.
  TensorId op(std::string_view op, std::vector<TensorId> inputs, std::string name,
              std::vector<Attribute> attributes = {});

 private:
  Graph& graph_;
  Phase phase_ = Phase::kForward;
};

/// Kernels of one node: work, no time.
void lower_node(const Graph& graph, const Node& node, std::vector<Kernel>& kernels);

}  // namespace tilecast
