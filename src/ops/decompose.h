#pragma once

// Modules are operators that stand for several kernels: a norm, attention with its mask, a rotary
// embedding. Importers describe a model as a graph of modules. The pass `decompose` (src/passes)
// replaces each module by the operators that eager PyTorch launches; the operator table names these
// rules.

#include <string>
#include <vector>

#include "ops/builder.h"

namespace tilecast {

/// How PyTorch, with or without fused modules, runs the model.
struct EagerForm {
  bool fused_attention = false;  ///< attention is one fused kernel (FlashAttention)
  bool training = false;         ///< dropout is active
  bool autocast = false;         ///< products run in half precision
  /// Norms, rotary embeddings and activations are one kernel each (Transformer Engine).
  bool fused_modules = false;
  bool recomputes_expert_activations = false;  ///< in the backward pass
};

/// A decomposition rule. The inputs of `node` are tensors of the new graph. Returns the tensors
/// that replace its outputs; -1 for an output that is not needed.
using Decompose = std::vector<TensorId> (*)(GraphBuilder&, const Node& node, const EagerForm&);

std::vector<TensorId> decompose_rms_norm(GraphBuilder& b, const Node& node, const EagerForm& form);
std::vector<TensorId> decompose_batch_norm(GraphBuilder& b, const Node& node,
                                           const EagerForm& form);
std::vector<TensorId> decompose_dropout(GraphBuilder& b, const Node& node, const EagerForm& form);
/// 0.5 x (1 + tanh(sqrt(2/pi) (x + 0.044715 x³))), step by step as transformers computes it.
std::vector<TensorId> decompose_gelu_new(GraphBuilder& b, const Node& node, const EagerForm& form);
/// x sigmoid(1.702 x)
std::vector<TensorId> decompose_quick_gelu(GraphBuilder& b, const Node& node,
                                           const EagerForm& form);
/// max(x, 0)²
std::vector<TensorId> decompose_relu2(GraphBuilder& b, const Node& node, const EagerForm& form);
std::vector<TensorId> decompose_split_heads(GraphBuilder& b, const Node& node,
                                            const EagerForm& form);
std::vector<TensorId> decompose_causal_mask(GraphBuilder& b, const Node& node,
                                            const EagerForm& form);
std::vector<TensorId> decompose_rotary_table(GraphBuilder& b, const Node& node,
                                             const EagerForm& form);
std::vector<TensorId> decompose_apply_rotary(GraphBuilder& b, const Node& node,
                                             const EagerForm& form);
std::vector<TensorId> decompose_sdpa(GraphBuilder& b, const Node& node, const EagerForm& form);
std::vector<TensorId> decompose_latent_attention(GraphBuilder& b, const Node& node,
                                                 const EagerForm& form);

std::vector<TensorId> decompose_indexer(GraphBuilder& b, const Node& node, const EagerForm& form);
std::vector<TensorId> decompose_compressed_attention(GraphBuilder& b, const Node& node,
                                                     const EagerForm& form);
std::vector<TensorId> decompose_update_streams(GraphBuilder& b, const Node& node,
                                               const EagerForm& form);

/// The name up to its last dot: "layers.0.attn.attention" → "layers.0.attn."
std::string name_prefix(const std::string& name);

}  // namespace tilecast
