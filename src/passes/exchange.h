#pragma once

// Context and expert parallelism: exchanges between ranks inside a layer.

#include "graph/graph.h"
#include "tilecast/choices.h"

namespace tilecast {

/// Context parallelism of a graph of modules that was built for one rank's part of each sequence.
/// Ranks hold an early and a late part of the sequence, so that each sees half of the pairs of
/// causal attention. Attention gathers the keys and values of all ranks (Llama 3), gets them block
/// by block around a ring (Transformer Engine's AttnFuncWithCPAndKVP2P), or the ranks exchange
/// tokens for heads (DeepSpeed-Ulysses). Throws Error{kUnsupported} for layers that read whole
/// sequences in another way, Error{kInput} if the ranks do not divide the heads.
struct ContextForm {
  int64_t ranks = 1;
  CpCommType type = CpCommType::kAllGather;
  int64_t tensor_ranks = 1;  ///< which divide the heads too, later
};
Graph divide_context(const Graph& modules, const ContextForm& form);

/// Expert parallelism: each rank has a part of the experts, and gets the tokens for them from all
/// ranks. `skew_percent` as in expert_load.h. Throws Error{kUnsupported} if the graph has no
/// experts that the ranks divide.
struct ExpertForm {
  int64_t ranks = 1;
  int64_t skew_percent = 0;
  /// Ranks that divide each expert, of which each has tokens of its own; 0: the tensor-parallel
  /// ones, which `shard` divides.
  int64_t tensor_ranks = 0;
  bool sends_once = false;     ///< a token goes to a rank once, whatever the number of its experts
  bool counts_awaited = true;  ///< by the host; not where another micro-batch keeps the GPU busy
};
Graph divide_experts(const Graph& modules, const ExpertForm& form);

/// The experts of a server, whose tp · dp ranks share them: `ep` groups of ranks have different
/// experts, the ranks of a group a part of each. The tp ranks of a data-parallel rank have the same
/// tokens, so they add up their results as in tensor parallelism; tokens of other data-parallel
/// ranks are gathered, or sent to the ranks with their experts (`dispatch`; tp is 1 then). Without
/// `ep` and `dp`, `shard` divides the experts. Throws Error{kUnsupported} if the graph has no
/// experts, Error{kInput} if the ranks do not divide them.
struct ServedExperts {
  int64_t tp = 1, dp = 1, ep = 1;
  bool dispatch = false;
};
Graph divide_served_experts(const Graph& modules, const ServedExperts& form);

}  // namespace tilecast
