#pragma once

#include <array>
#include <string>
#include <vector>

#include "importers/model.h"
#include "ops/builder.h"

namespace tilecast {

/// Building blocks shared by the model families. They add modules, which `decompose` and `shard`
/// transform later.
class Layers {
 public:
  Layers(Graph& graph, const GraphRequest& request) : builder_(graph), request_(request) {}

  GraphBuilder& builder() { return builder_; }
  const GraphRequest& request() const { return request_; }

  /// How tensor parallelism divides a linear layer; parts and units as in WeightSplit. No parts:
  /// replicated.
  struct Split {
    SplitKind kind = SplitKind::kOutputs;
    int64_t unit = 1;
    std::array<int64_t, 5> parts{};
    bool inputs() const { return kind == SplitKind::kInputs; }
  };
  static Split outputs(int64_t unit, std::array<int64_t, 5> parts) {
    return {SplitKind::kOutputs, unit, parts};
  }
  static Split inputs(int64_t unit, int64_t count) { return {SplitKind::kInputs, unit, {count}}; }
  static Split vocabulary(int64_t rows) { return {SplitKind::kVocabulary, 1, {rows}}; }

  TensorId ids(const std::string& name, Shape shape);
  TensorId weight(const std::string& name, Shape shape);
  /// A weight that is divided along dimension `dim`.
  TensorId weight(const std::string& name, Shape shape, size_t dim, const Split& split);
  /// Gives a weight a role.
  TensorId with_role(TensorId weight, Role role);
  TensorId op(std::string_view op, std::vector<TensorId> inputs, const std::string& name,
              std::vector<Attribute> attributes = {});
  /// The residual sum at the end of a sublayer.
  TensorId residual(std::vector<TensorId> inputs, const std::string& name);
  /// The output layer of a model whose embedding table computes the logits too.
  TensorId tied_output(TensorId x, TensorId table);
  TensorId view(TensorId x, Shape shape);
  TensorId transpose(TensorId x, std::vector<int64_t> order);
  /// The next `columns` columns of the last dimension, as a view.
  TensorId slice(TensorId x, int64_t columns, const std::string& name);

  struct Linear {
    int64_t out = 0;
    bool bias = true;
    Split split = {};
    bool weight_is_k_by_n = false;  ///< GPT-2's Conv1D
    Role weight_role = Role::kNone;
  };
  TensorId linear(TensorId x, const std::string& name, const Linear& options);
  struct NormWeights {
    bool weight = true, bias = true;
  };
  TensorId layer_norm(TensorId x, const std::string& name, const NormWeights& weights);
  TensorId layer_norm(TensorId x, const std::string& name) { return layer_norm(x, name, {}); }
  TensorId rms_norm(TensorId x, const std::string& name, bool weighted = true,
                    bool wide_weight = false);
  /// Of [b, channels, ...].
  TensorId group_norm(TensorId x, int64_t groups, const std::string& name);
  /// Returns x if `active` is false (probability 0).
  TensorId dropout(TensorId x, const std::string& name, bool active = true);
  /// The mean of the rows of each sequence: [b, n, c] → [b, c].
  TensorId mean_of_rows(TensorId x, const std::string& name);
  TensorId embedding(TensorId table, TensorId ids, const std::string& name);
  /// An embedding table whose rows are divided over the ranks.
  TensorId vocabulary_table(const std::string& name, int64_t rows, int64_t hidden_dim);

  /// [b, s, heads · head_dim] or [b, s, heads, head_dim] → [b, heads, s, head_dim].
  TensorId split_heads(TensorId x, int64_t heads);

  /// Attention of [b, heads, s, head_dim] operands; returns [b, s, heads · head_dim]. `attributes`
  /// are the attributes of the operator sdpa.
  TensorId attention(TensorId q, TensorId k, TensorId v, const std::string& name,
                     std::vector<Attribute> attributes, std::vector<TensorId> mask_and_sinks = {});

  /// An activation by its Hugging Face name. Throws Error{kUnsupported} for an unknown name.
  TensorId activation(TensorId x, const std::string& function, const std::string& name);

  /// A feed-forward layer: linear, activation, linear. The first three fields are the names of the
  /// parts.
  struct FeedForward {
    std::string up, act, down;
    std::string activation;
    int64_t ffn_dim = 0;
    bool bias = true;
    bool weight_is_k_by_n = false;
  };
  TensorId feed_forward(TensorId x, const FeedForward& options);

  /// A causal mask [1, 1, s, s] for activations [b, s, hidden_dim], computed on the device.
  TensorId causal_mask(TensorId x, const std::string& name);

 private:
  GraphBuilder builder_;
  GraphRequest request_;
};

/// Throws Error{kUnsupported} that names the field if Layers::activation does not know `function`.
void check_activation(const JsonObject& config, const std::string& key,
                      const std::string& function);

}  // namespace tilecast
