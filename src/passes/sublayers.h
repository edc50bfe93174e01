#pragma once

// Sublayers of a layer's body: what is computed between two residual sums.

#include <map>
#include <vector>

#include "graph/graph.h"

namespace tilecast {

/// Nodes of a body in its order, and which of them lead to which.
class BodyOrder {
 public:
  explicit BodyOrder(const std::vector<Node>& body) : body_(body) {
    for (size_t i = 0; i < body.size(); ++i) {
      for (const TensorId id : body[i].outputs) makers_[id] = i;
    }
  }

  /// Marks what makes the inputs of the node, and so on up to nodes where `stops` holds, which are
  /// marked too.
  template <class Stops>
  void mark_sources(const Node& node, std::vector<bool>& marked, const Stops& stops) const {
    std::vector<const Node*> open = {&node};
    while (!open.empty()) {
      const Node& reader = *open.back();
      open.pop_back();
      for (const TensorId id : reader.inputs) {
        const auto maker = makers_.find(id);
        if (maker == makers_.end() || marked[maker->second]) continue;
        marked[maker->second] = true;
        if (!stops(body_[maker->second])) open.push_back(&body_[maker->second]);
      }
    }
  }

 private:
  const std::vector<Node>& body_;
  std::map<TensorId, size_t> makers_;
};

bool is_norm(const Node& node);

enum class Sublayer : uint8_t { kOther, kMlp, kExperts };

/// Of each node: a dense MLP with its norm; a layer of experts with router, exchanges and shared
/// experts, but without its norm (Megatron-LM's MLP has the norm in its first layer, its MoELayer
/// reads what a norm gives). Attention and other mixers of tokens are kOther, also where they share
/// a sublayer with an MLP.
std::vector<Sublayer> sublayers_of(const std::vector<Node>& body);

}  // namespace tilecast
