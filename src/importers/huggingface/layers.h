#pragma once

#include <string>
#include <vector>

#include "importers/model.h"
#include "ops/builder.h"

namespace tilecast {

/// The building blocks that the model families share, each emitting what PyTorch launches for it.
class Layers {
 public:
  Layers(Graph& graph, const GraphRequest& request) : builder_(graph), request_(request) {}

  GraphBuilder& builder() { return builder_; }
  const GraphRequest& request() const { return request_; }

  TensorId ids(const std::string& name, Shape shape);
  TensorId weight(const std::string& name, Shape shape);
  TensorId op(std::string_view op, std::vector<TensorId> inputs, const std::string& name,
              std::vector<Attribute> attributes = {});
  TensorId view(TensorId x, Shape shape);
  TensorId transpose(TensorId x, std::vector<int64_t> order);

  struct Linear {
    int64_t out = 0;
    bool bias = true;
    bool weight_is_k_by_n = false;  ///< GPT-2's Conv1D
  };
  TensorId linear(TensorId x, const std::string& name, Linear options);
  TensorId layer_norm(TensorId x, const std::string& name);
  /// pow, mean, add, rsqrt, mul, mul; casts around it in half precision.
  TensorId rms_norm(TensorId x, const std::string& name, bool weighted = true);
  /// Nothing in inference or with probability 0.
  TensorId dropout(TensorId x, const std::string& name, bool active = true);
  TensorId embedding(TensorId table, TensorId ids, const std::string& name);

  /// [b, s, heads · size] → [b, heads, s, size], a view.
  TensorId split_heads(TensorId x, int64_t heads);
  /// [b, heads, s, size] → [b, s, heads · size]: one copy.
  TensorId merge_heads(TensorId x, const std::string& name);
  /// torch.matmul of four-dimensional operands: those that cannot be flattened to [b · heads, …]
  /// without a copy (batch > 1 and strided) are copied first.
  TensorId matmul(TensorId a, TensorId b, const std::string& name);

  /// Fused attention of [b, heads, s, size] operands: [b, s, heads · size]. Scaling, mask and
  /// dropout are part of the kernel.
  TensorId fused_attention(TensorId q, TensorId k, TensorId v, const std::string& name,
                           std::vector<Attribute> attributes);

  /// One activation by its Hugging Face name; the composed ones ("gelu_new") launch each step.
  /// Throws Error{kUnsupported} for an unknown name.
  TensorId activation(TensorId x, const std::string& function, const std::string& name);

  /// A causal mask [1, 1, s, s] of the activations' dtype, made on the device.
  TensorId causal_mask(const std::string& name);

 private:
  GraphBuilder builder_;
  GraphRequest request_;
};

/// Throws Error{kUnsupported} naming the field where `function` is not known to Layers::activation.
void check_activation(const JsonObject& config, const std::string& key,
                      const std::string& function);

}  // namespace tilecast
