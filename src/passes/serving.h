#pragma once

// What serving software (vLLM, SGLang, TensorRT-LLM) launches for one step of a decoder.

#include <string_view>
#include <vector>

#include "graph/graph.h"
#include "passes/passes.h"

namespace tilecast {

/// One step of a served model.
struct StepRequest {
  /// Sequences that do the same in this step.
  struct Group {
    int64_t sequences = 1;
    int64_t tokens = 1;  ///< new ones, of each
    int64_t past = 0;    ///< tokens of each in the cache
  };
  std::vector<Group> groups;
  DType kv_dtype = DType::kBf16;
  /// How a linear layer or the experts, named as in the graph, are stored; none: as in the graph.
  SchemeOf scheme_of;
  int64_t skew_percent = 0;  ///< of the experts' popularity
};

/// One step, from a decoder's graph of modules (of any batch and length; where ranks share the
/// model, one rank's, as `shard` gives it): all tokens of the step in one batch, projections of q,
/// k and v in one product, gate and up in one, norms with the sum before them, a cache of keys and
/// values, attention for each group, logits of each sequence's last token. Throws Error{kInput}
/// where sizes overflow.
Graph fuse(const Graph& modules, const StepRequest& request);

/// Whether a node of a step works on one group's sequences (attention and what prepares it for one
/// group).
bool is_group_work(std::string_view node_name);

/// Whether a node of a step works on the last token of each sequence (the output layer); all others
/// that are no group's work on all tokens of the step.
bool is_output_work(std::string_view node_name);

}  // namespace tilecast
