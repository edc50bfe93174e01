#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "graph/graph.h"
#include "ops/kernel.h"

namespace tilecast {

/// Builds a Graph node by node; checks the number of inputs, attributes and shapes of each node.
class GraphBuilder {
 public:
  explicit GraphBuilder(Graph& graph) : graph_(graph) {}

  Graph& graph() { return graph_; }

  /// Ends the current segment. Nodes added from here on belong to a new segment.
  void begin_segment(std::string name, int64_t repeat);
  /// Like a segment of another graph: its name and role.
  void begin_segment(const Segment& like, int64_t repeat);
  /// Carries a tensor from one repetition of the segment to the next, see Carry.
  void carry(TensorId initial, TensorId next);
  /// Marks the current segment as the backward pass of another.
  void reverses(int32_t segment);
  void set_phase(Phase phase) { phase_ = phase; }
  /// For the nodes that are added from now on.
  void set_counts(Counts counts) { counts_ = counts; }
  void set_attention_core(bool core) { attention_core_ = core; }
  void set_recomputed(bool recomputed) { recomputed_ = recomputed; }
  /// For the nodes whose operator it fits.
  void set_role(Role role) { role_ = role; }
  Role role() const { return role_; }
  /// The role of the node that makes a tensor; kNone if none does.
  Role role_of_maker(TensorId id) const;
  int32_t current_segment() const { return static_cast<int32_t>(graph_.segments.size()) - 1; }

  TensorId input(std::string name, Shape shape, DType dtype);
  /// A weight of the current segment; each repetition has its own.
  TensorId weight(std::string name, Shape shape, DType dtype);
  TensorId tensor(Tensor tensor);
  /// A buffer that holds the scales of `count` weights of a quantization scheme.
  TensorId scales(const std::string& name, QuantScheme scheme, int64_t count, int32_t segment);

  /// Adds a node and returns its outputs. Throws Error if the number of inputs, the attributes or
  /// the shapes are wrong.
  std::vector<TensorId> add(std::string_view op, std::vector<TensorId> inputs, std::string name,
                            std::vector<Attribute> attributes = {});
  /// `add` for operators with one output.
  TensorId op(std::string_view op, std::vector<TensorId> inputs, std::string name,
              std::vector<Attribute> attributes = {});

 private:
  Graph& graph_;
  Phase phase_ = Phase::kForward;
  Counts counts_ = Counts::kAll;
  bool attention_core_ = false;
  bool recomputed_ = false;
  Role role_ = Role::kNone;
};

/// Gives the nodes that are added in its lifetime a role.
class RoleScope {
 public:
  RoleScope(GraphBuilder& builder, Role role) : builder_(builder), before_(builder.role()) {
    builder_.set_role(role);
  }
  ~RoleScope() { builder_.set_role(before_); }
  RoleScope(const RoleScope&) = delete;
  RoleScope& operator=(const RoleScope&) = delete;

 private:
  GraphBuilder& builder_;
  Role before_;
};

/// Appends the kernels of one node, with their work but no times.
void lower_node(const Graph& graph, const Node& node, std::vector<Kernel>& kernels);

}  // namespace tilecast
