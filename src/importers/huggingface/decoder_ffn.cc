// MLPs and layers of experts of decoders.

#include <fmt/format.h>

#include "importers/huggingface/decoder_graph.h"

namespace tilecast {

TensorId DecoderGraph::gated(TensorId x, const std::string& p, int64_t ffn_dim) {
  if (!c_.gated_mlp)
    return f_.feed_forward(x, {.up = p + "up_proj",
                               .act = p + "act_fn",
                               .down = p + "down_proj",
                               .activation = c_.activation,
                               .ffn_dim = ffn_dim,
                               .bias = c_.mlp_bias});
  const Layers::Split columns = f_.outputs(1, {ffn_dim});
  TensorId gate, up;
  if (c_.fused_gate) {
    const TensorId both = f_.linear(x, p + "gate_up_proj",
                                    {.out = 2 * ffn_dim,
                                     .bias = c_.mlp_bias,
                                     .split = f_.outputs(1, {ffn_dim, ffn_dim}),
                                     .weight_role = Role::kGateUp});
    gate = f_.activation(f_.slice(both, ffn_dim, p + "split_gate"), c_.activation, p + "act_fn");
    up = f_.slice(both, ffn_dim, p + "split_up");
  } else {
    gate = f_.activation(f_.linear(x, p + "gate_proj", {ffn_dim, c_.mlp_bias, columns}),
                         c_.activation, p + "act_fn");
    up = f_.linear(x, p + "up_proj", {ffn_dim, c_.mlp_bias, columns});
  }
  const TensorId product = f_.op("mul", {gate, up}, p + "mul");
  return f_.linear(product, p + "down_proj", {c_.hidden_dim, c_.mlp_bias, f_.inputs(1, ffn_dim)});
}

/// The experts without the shared ones. `routed` is what the router reads.
TensorId DecoderGraph::experts(TensorId x, TensorId routed, const std::string& p) {
  const DecoderConfig::Experts& e = c_.experts;
  const std::string gate = p + (e.beside_mlp ? "router.proj" : "gate");
  const TensorId logits =
      f_.linear(routed, gate, {.out = e.num_experts, .bias = e.bias, .weight_role = Role::kRouter});
  const TensorId weights = f_.op("softmax", {logits}, gate + ".softmax");
  const int64_t parts = c_.gated_mlp ? 2 : 1;
  const Layers::Split by_gate =
      c_.gated_mlp ? f_.outputs(1, {e.ffn_dim, e.ffn_dim}) : f_.outputs(1, {e.ffn_dim});
  const int64_t width = e.latent_dim > 0 ? e.latent_dim : c_.hidden_dim;
  const auto own = [this](TensorId id) { return f_.with_role(id, Role::kExperts); };
  // Counted as weights only; their memory traffic is negligible.
  if (e.score_correction_bias) f_.weight(gate + ".e_score_correction_bias", {e.num_experts});
  if (e.bias) {
    own(f_.weight(p + "experts.gate_up_bias", {e.num_experts, parts * e.ffn_dim}, 1, by_gate));
    own(f_.weight(p + "experts.down_bias", {e.num_experts, width}));
  }
  TensorId tokens =
      e.latent_dim > 0 ? f_.linear(x, p + "fc1_latent_proj", {width, c_.mlp_bias}) : x;
  if (e.latent_norm) tokens = norm(tokens, p + "latent_norm");
  const TensorId up = own(
      f_.weight(p + "experts.gate_up_proj", {e.num_experts, parts * e.ffn_dim, width}, 1, by_gate));
  const TensorId down = own(f_.weight(p + "experts.down_proj", {e.num_experts, width, e.ffn_dim}, 2,
                                      f_.inputs(1, e.ffn_dim)));
  std::vector<Attribute> attributes = {{"top_k", e.top_k}};
  if (e.bias) attributes.push_back({"biased", 1});
  if (c_.fp32_routing) attributes.push_back({"fp32_sum", 1});
  if (c_.fp32_router) attributes.push_back({"fp32_router", 1});
  if (c_.dense_experts) attributes.push_back({"all_tokens", 1});
  if (e.clamped) attributes.push_back({"clamped", 1});
  const TensorId y =
      f_.op("experts", {tokens, up, down, weights}, p + "experts", std::move(attributes));
  return e.latent_dim > 0 ? f_.linear(y, p + "fc2_latent_proj", {c_.hidden_dim, c_.mlp_bias}) : y;
}

TensorId DecoderGraph::shared_experts(TensorId x, const std::string& p) {
  const DecoderConfig::Experts& e = c_.experts;
  const RoleScope role(f_.builder(), Role::kSharedExpert);
  const TensorId shared = gated(x, p + "shared_experts.", e.shared_ffn_dim);
  if (!e.shared_gate) return shared;
  const std::string name = p + "shared_expert_gate";
  const TensorId logit = f_.linear(x, name, {.out = 1, .bias = false, .weight_role = Role::kGate});
  const TensorId weight = f_.op("sigmoid", {logit}, name);
  return f_.op("mul", {weight, shared}, p + "shared_mul");
}

/// Gemma 4: the MLP and the experts run side by side, with norms of their own; the router reads the
/// residual. Router and experts are modules of the layer, not of its MLP: checkpoints quantize the
/// one without the other.
TensorId DecoderGraph::experts_beside_mlp(TensorId x, TensorId residual, size_t index) {
  const std::string p = fmt::format("layers.{}.", index);
  const TensorId mlp = gated(x, p + std::string(c_.ffn_part) + ".", c_.ffn_dim_of(layer_at(index)));
  const TensorId dense = f_.rms_norm(mlp, p + "post_norm_1", true, c_.wide_norm_weight);
  const TensorId scale = f_.weight(p + "router.scale", {c_.hidden_dim});
  const TensorId routed =
      f_.op("mul", {f_.rms_norm(residual, p + "router.norm", false), scale}, p + "router.scale");
  f_.weight(p + "router.per_expert_scale", {c_.experts.num_experts});
  const TensorId sparse = f_.rms_norm(
      experts(f_.rms_norm(residual, p + "pre_norm_2", true, c_.wide_norm_weight), routed, p),
      p + "post_norm_2", true, c_.wide_norm_weight);
  return f_.op("add", {dense, sparse}, p + "experts_add");
}

TensorId DecoderGraph::ffn(TensorId x, TensorId residual, size_t index) {
  const std::string p = fmt::format("layers.{}.{}.", index, c_.ffn_part);
  const Layer& layer = layer_at(index);
  if (!layer.is_moe) return gated(x, p, c_.ffn_dim_of(layer));
  if (c_.experts.beside_mlp) return experts_beside_mlp(x, residual, index);
  const TensorId y = experts(x, x, p);
  if (c_.experts.shared_ffn_dim == 0) return y;
  return f_.op("add", {y, shared_experts(x, p)}, p + "shared_add");
}

}  // namespace tilecast
