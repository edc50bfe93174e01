#include "importers/huggingface/layers.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "tilecast/error.h"

namespace tilecast {
namespace {

/// The Hugging Face name of an activation and its operator.
struct Activation {
  std::string_view name, op;
};
// relu6 has the same kernel as relu but for its constant.
constexpr Activation kActivations[] = {{"relu", "relu"},
                                       {"relu6", "relu"},
                                       {"gelu", "gelu"},
                                       {"gelu_python", "gelu"},
                                       {"gelu_new", "gelu_new"},
                                       {"gelu_pytorch_tanh", "gelu"},
                                       {"gelu_fast", "gelu_new"},
                                       {"quick_gelu", "quick_gelu"},
                                       {"silu", "silu"},
                                       {"swish", "silu"},
                                       {"tanh", "tanh"},
                                       {"relu2", "relu2"},
                                       {"relu_squared", "relu2"},
                                       // Variants with bounds and factors, in the same kernel.
                                       {"swigluoai", "silu"},
                                       {"situ", "silu"}};

}  // namespace

TensorId Layers::ids(const std::string& name, Shape shape) {
  return builder_.input(name, std::move(shape), DType::kInt64);
}

TensorId Layers::weight(const std::string& name, Shape shape) {
  return builder_.weight(name, std::move(shape), request_.dtype);
}

TensorId Layers::weight(const std::string& name, Shape shape, size_t dim, const Split& split) {
  const TensorId id = weight(name, std::move(shape));
  if (split.parts[0] > 0)
    builder_.graph().splits.push_back({id, dim, split.unit, split.parts, split.kind});
  return id;
}

TensorId Layers::op(std::string_view op, std::vector<TensorId> inputs, const std::string& name,
                    std::vector<Attribute> attributes) {
  return builder_.op(op, std::move(inputs), name, std::move(attributes));
}

TensorId Layers::residual(std::vector<TensorId> inputs, const std::string& name) {
  const RoleScope role(builder_, Role::kResidual);
  return op("add", std::move(inputs), name);
}

TensorId Layers::tied_output(TensorId x, TensorId table) {
  const RoleScope role(builder_, Role::kOutput);
  return op("linear", {x, table}, "lm_head");
}

TensorId Layers::with_role(TensorId weight, Role role) {
  builder_.graph().tensor(weight).role = role;
  return weight;
}

TensorId Layers::view(TensorId x, Shape shape) {
  return op("view", {x}, "view", {{"shape", std::move(shape)}});
}

TensorId Layers::transpose(TensorId x, std::vector<int64_t> order) {
  return op("transpose", {x}, "transpose", {{"order", std::move(order)}});
}

TensorId Layers::slice(TensorId x, int64_t columns, const std::string& name) {
  return op("slice_columns", {x}, name, {{"columns", columns}});
}

TensorId Layers::linear(TensorId x, const std::string& name, const Linear& o) {
  const int64_t k = builder_.graph().tensor(x).shape.back();
  const Shape shape = o.weight_is_k_by_n ? Shape{k, o.out} : Shape{o.out, k};
  const size_t dim = o.split.inputs() != o.weight_is_k_by_n ? 1 : 0;
  std::vector<TensorId> operands = {
      x, with_role(weight(name + ".weight", shape, dim, o.split), o.weight_role)};
  if (o.bias)
    operands.push_back(weight(name + ".bias", {o.out}, 0, o.split.inputs() ? Split{} : o.split));
  std::vector<Attribute> attributes;
  if (o.weight_is_k_by_n) attributes.push_back({"weight_layout", 1});
  return op("linear", std::move(operands), name, std::move(attributes));
}

TensorId Layers::layer_norm(TensorId x, const std::string& name, const NormWeights& weights) {
  const int64_t hidden_dim = builder_.graph().tensor(x).shape.back();
  std::vector<TensorId> inputs = {x};
  if (weights.weight) inputs.push_back(weight(name + ".weight", {hidden_dim}));
  if (weights.weight && weights.bias) inputs.push_back(weight(name + ".bias", {hidden_dim}));
  return op("layer_norm", std::move(inputs), name);
}

TensorId Layers::rms_norm(TensorId x, const std::string& name, bool weighted, bool wide_weight) {
  if (!weighted) return op("rms_norm", {x}, name);
  std::vector<Attribute> attributes;
  if (wide_weight) attributes.push_back({"wide_weight", 1});
  return op("rms_norm", {x, weight(name + ".weight", {builder_.graph().tensor(x).shape.back()})},
            name, std::move(attributes));
}

TensorId Layers::dropout(TensorId x, const std::string& name, bool active) {
  if (!active) return x;
  return builder_.add("dropout", {x}, name).front();
}

TensorId Layers::mean_of_rows(TensorId x, const std::string& name) {
  const Shape s = builder_.graph().tensor(x).shape;
  return view(op("reduce_mean", {x}, name, {{"shape", Shape{s[0], 1, s[2]}}}), {s[0], s[2]});
}

TensorId Layers::embedding(TensorId table, TensorId ids, const std::string& name) {
  return op("embedding", {table, ids}, name);
}

TensorId Layers::vocabulary_table(const std::string& name, int64_t rows, int64_t hidden_dim) {
  return weight(name, {rows, hidden_dim}, 0, vocabulary(rows));
}

TensorId Layers::split_heads(TensorId x, int64_t heads) {
  return op("split_heads", {x}, "split_heads", {{"heads", heads}});
}

TensorId Layers::attention(TensorId q, TensorId k, TensorId v, const std::string& name,
                           std::vector<Attribute> attributes,
                           std::vector<TensorId> mask_and_sinks) {
  mask_and_sinks.insert(mask_and_sinks.begin(), {q, k, v});
  return op("sdpa", std::move(mask_and_sinks), name, std::move(attributes));
}

TensorId Layers::group_norm(TensorId x, int64_t groups, const std::string& name) {
  const Shape channels = {builder_.graph().tensor(x).shape[1]};
  return op("group_norm", {x, weight(name + ".weight", channels), weight(name + ".bias", channels)},
            name, {{"groups", groups}});
}

TensorId Layers::activation(TensorId x, const std::string& function, const std::string& name) {
  const auto* known = std::find_if(std::begin(kActivations), std::end(kActivations),
                                   [&](const Activation& a) { return a.name == function; });
  std::vector<Attribute> attributes;
  if (function == "relu6") attributes.push_back({"bounded", 1});
  return op(known == std::end(kActivations) ? function : known->op, {x}, name,
            std::move(attributes));
}

TensorId Layers::feed_forward(TensorId x, const FeedForward& o) {
  const int64_t hidden_dim = builder_.graph().tensor(x).shape.back();
  const TensorId wide =
      linear(x, o.up, {o.ffn_dim, o.bias, outputs(1, {o.ffn_dim}), o.weight_is_k_by_n});
  return linear(activation(wide, o.activation, o.act), o.down,
                {hidden_dim, o.bias, inputs(1, o.ffn_dim), o.weight_is_k_by_n});
}

TensorId Layers::causal_mask(TensorId x, const std::string& name) {
  return op("causal_mask", {x}, name);
}

void check_activation(const JsonObject& config, const std::string& key,
                      const std::string& function) {
  std::vector<std::string> known;
  for (const Activation& a : kActivations) {
    if (a.name == function) return;
    known.emplace_back(a.name);
  }
  throw Error(ErrorKind::kUnsupported,
              fmt::format("{}: '{}': unknown activation '{}'{}; known: {}", config.where(), key,
                          shown_name(function), did_you_mean(function, known), join(known, ", ")));
}

}  // namespace tilecast
