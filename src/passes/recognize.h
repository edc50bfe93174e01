#pragma once

// Patterns of operators that stand for a module. Exporters spell modules out in their own ways; a
// rule looks at one node of a pattern and says what replaces it.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "graph/graph.h"
#include "ops/builder.h"

namespace tilecast {

/// A graph with the makers and the readers of its tensors.
class Pattern {
 public:
  explicit Pattern(const Graph& graph);

  const Graph& graph() const { return graph_; }
  const Tensor& tensor(TensorId id) const { return graph_.tensor(id); }
  /// The node that computes a tensor, if it is of this operator ("": of any); nullptr: none.
  const Node* made(TensorId id, std::string_view op = "") const;
  /// The only node that reads a tensor, if it is of this operator; nullptr: none.
  const Node* only_reader(TensorId id, std::string_view op = "") const;
  /// Whether the graph says which nodes are calls of fused attention (Node::attention_core).
  bool marks_attention() const { return marks_attention_; }
  size_t reader_count(TensorId id) const { return readers_[static_cast<size_t>(id)].size(); }
  /// The other input of a node with two inputs; -1: none.
  static TensorId other(const Node& node, TensorId input);
  bool is(const Node& node, std::string_view op) const;
  /// A stored vector of this length: a weight or a bias.
  bool is_vector(TensorId id, int64_t length) const;
  /// The tensor that a chain of copies and casts starts from.
  TensorId before_copies(TensorId id) const;
  TensorId before_casts(TensorId id) const;

 private:
  const Graph& graph_;
  bool marks_attention_ = false;
  std::vector<int32_t> makers_;                ///< by tensor; -1: none
  std::vector<std::vector<int32_t>> readers_;  ///< by tensor
};

/// The replacement of the node `last`, and with it of the nodes that only it needs.
struct Replacement {
  const Node* last = nullptr;
  std::string op;
  std::vector<TensorId> inputs;  ///< tensors of the old graph
  std::vector<Attribute> attributes;
  std::string name;
  /// Steps that are more than one node; null: the node `op`. The inputs are in the new graph.
  std::vector<TensorId> (*build)(GraphBuilder&, const Replacement&,
                                 std::vector<TensorId> inputs) = nullptr;
};

/// A rule, called for each node in order.
using RecognizeRule = std::optional<Replacement> (*)(const Pattern&, const Node&);

std::optional<Replacement> recognize_layer_norm(const Pattern& p, const Node& node);
std::optional<Replacement> recognize_group_norm(const Pattern& p, const Node& node);
std::optional<Replacement> recognize_rms_norm(const Pattern& p, const Node& node);
std::optional<Replacement> recognize_softmax(const Pattern& p, const Node& node);
std::optional<Replacement> recognize_gelu(const Pattern& p, const Node& node);
std::optional<Replacement> recognize_gelu_by_tanh(const Pattern& p, const Node& node);
std::optional<Replacement> recognize_gated_function(const Pattern& p, const Node& node);
std::optional<Replacement> recognize_bias(const Pattern& p, const Node& node);
std::optional<Replacement> recognize_quantized_linear(const Pattern& p, const Node& node);
std::optional<Replacement> recognize_quantized_convolution(const Pattern& p, const Node& node);
std::optional<Replacement> recognize_attention(const Pattern& p, const Node& node);

}  // namespace tilecast
