#pragma once

// One step of a decoder as serving software (vLLM, SGLang, TensorRT-LLM) runs it.

#include <string>
#include <vector>

#include "graph/graph.h"
#include "passes/passes.h"

namespace tilecast {

/// What the kernels of serving software do beside their own work.
struct StepFusions {
  /// Norms, gated activations and attention write what the next product multiplies.
  bool norms_quantize = false, gates_quantize = false, attention_quantizes = false;
  bool to_fp4 = false;          ///< also where that is FP4
  bool compiles_gates = false;  ///< gated activations are pointwise kernels of a compiler
};

/// Low-rank adapters of the requests of a step, beside linear layers. `rank` 0: there are none.
struct StepAdapters {
  int64_t rank = 0;                  ///< that the kernels compute
  int64_t kept_rank = 0;             ///< that memory is kept for
  int64_t slots = 1;                 ///< adapters that memory is kept for
  int64_t used = 1;                  ///< different ones in the step
  bool clears_buffer = false;        ///< see LoraRule
  std::vector<std::string> targets;  ///< layers, see is_target
};

/// One step of a served model.
struct StepRequest {
  /// Sequences with the same number of new and cached tokens.
  struct Group {
    int64_t sequences = 1;
    int64_t tokens = 1;  ///< new tokens per sequence
    int64_t past = 0;    ///< cached tokens per sequence
    bool operator==(const Group&) const = default;
  };
  std::vector<Group> groups;
  DType kv_dtype = DType::kBf16;
  /// The quantization scheme of each linear layer and layer of experts; null: not quantized.
  SchemeOf scheme_of;
  int64_t skew_percent = 0;  ///< of the experts' load, see expert_load.h
  /// False for a pipeline stage other than the last one: no logits and no sampling.
  bool has_output_layer = true;
  StepFusions fusions;
  StepAdapters adapters;
};

/// Builds the graph of one step from a decoder's graph of modules, of any batch and length. With
/// tensor parallelism, `modules` is the graph of one rank (see `shard`), with a pipeline that of
/// one stage (see `part_of`). All tokens of the step form one batch. The projections of q, k and v
/// are one product, and so are gate and up. Each norm includes the residual sum before it.
/// Attention reads and writes a KV cache, with separate kernels for each group. Logits are computed
/// for the last token of each sequence. Nodes that process a single group have Role::kGroup, those
/// of the last tokens Role::kOutput; all others process all tokens of the step. Throws
/// Error{kInput} if sizes overflow.
Graph fuse(const Graph& modules, const StepRequest& request);

}  // namespace tilecast
