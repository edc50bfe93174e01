#include "passes/sublayers.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "ops/op_def.h"

namespace tilecast {
namespace {

constexpr std::array<std::string_view, 6> kTokenMixers = {
    "attention", "sdpa", "latent_attention", "linear_scan", "conv1d", "causal_conv"};
constexpr std::array<std::string_view, 3> kLinears = {"linear", "fp8_linear", "fp4_linear"};

template <size_t kCount>
bool is_one_of(const Node& node, const std::array<std::string_view, kCount>& ops) {
  return std::find(ops.begin(), ops.end(), op_def(node.op).name) != ops.end();
}

bool is_residual(const Node& node) { return node.role == Role::kResidual; }

class Sublayers {
 public:
  explicit Sublayers(const std::vector<Node>& body)
      : body_(body), order_(body), kinds_(body.size(), Sublayer::kOther) {}

  std::vector<Sublayer> run() {
    for (const Node& node : body_) {
      if (!is_residual(node)) continue;
      for (const TensorId input : node.inputs) classify(input);
    }
    return std::move(kinds_);
  }

 private:
  template <class Stops>
  std::vector<bool> sources(TensorId id, const Stops& stops) const {
    std::vector<bool> marked(body_.size(), false);
    order_.mark_sources(Node{.inputs = {id}}, marked, stops);
    for (size_t i = 0; i < body_.size(); ++i) marked[i] = marked[i] && !stops(body_[i]);
    return marked;
  }

  template <class Holds>
  bool any(const std::vector<bool>& marked, const Holds& holds) const {
    for (size_t i = 0; i < body_.size(); ++i) {
      if (marked[i] && holds(body_[i])) return true;
    }
    return false;
  }

  /// Whether other nodes read the norm too: after a residual sum it gives the hidden state.
  bool is_shared(size_t norm, const std::vector<bool>& marked) const {
    for (size_t i = 0; i < body_.size(); ++i) {
      if (marked[i]) continue;
      for (const TensorId id : body_[norm].outputs) {
        if (std::find(body_[i].inputs.begin(), body_[i].inputs.end(), id) != body_[i].inputs.end())
          return true;
      }
    }
    return false;
  }

  /// What makes an operand of a residual sum.
  void classify(TensorId operand) {
    std::vector<bool> made = sources(operand, is_residual);
    const bool mixes = any(made, [](const Node& node) {
      return node.attention_core || is_one_of(node, kTokenMixers);
    });
    if (mixes) return;
    const bool experts =
        any(made, [](const Node& node) { return op_def(node.op).name == "experts"; });
    if (!experts && !any(made, [](const Node& node) { return is_one_of(node, kLinears); })) return;
    if (experts)
      made = sources(operand, [](const Node& node) { return is_residual(node) || is_norm(node); });
    for (size_t i = 0; i < body_.size(); ++i) {
      const bool outside = is_norm(body_[i]) && is_shared(i, made);
      if (made[i] && !outside && op_def(body_[i].op).name != "dropout")
        kinds_[i] = experts ? Sublayer::kExperts : Sublayer::kMlp;
    }
  }

  const std::vector<Node>& body_;
  const BodyOrder order_;
  std::vector<Sublayer> kinds_;
};

}  // namespace

bool is_norm(const Node& node) {
  static const OpId layer_norm = require_op("layer_norm"), rms_norm = require_op("rms_norm");
  return node.op == layer_norm || node.op == rms_norm;
}

std::vector<Sublayer> sublayers_of(const std::vector<Node>& body) { return Sublayers(body).run(); }

}  // namespace tilecast
