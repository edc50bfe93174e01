// Sources: vLLM 0.19.0, v1/worker/gpu_model_runner.py (profile_run, _dummy_sampler_run),
// v1/sample/sampler.py, v1/sample/ops/topk_topp_sampler.py and topk_topp_triton.py,
// v1/worker/workspace.py, model_executor/layers/fused_moe (workspace_shapes of the backends),
// model_executor/layers/rotary_embedding/base.py. Checked with eleven caches of H100
// (tests/check_cache_pools.py). Not modelled: backends of experts that keep their workspace
// elsewhere (FlashInfer), buffers of the encoder of images, and keys and values of 65,536 earlier
// tokens that latent attention makes room for in the step.

#include "scenario/generation/profile_run.h"

#include <algorithm>
#include <cstdint>
#include <set>

#include "base/checked.h"
#include "ops/kernel.h"
#include "ops/op_def.h"

namespace tilecast {
namespace {

/// Bytes of activations, of logits before the sampler, and of tables.
constexpr int64_t kHalf = 2;

int64_t vocabulary(const Graph& modules) {
  return modules.tensor(modules.outputs.front()).shape.back();
}

/// One table of cosines and sines for each width.
int64_t rotary_tables_bytes(const ServedModel& served) {
  std::set<int64_t> widths;
  for (const Node& node : served.modules.nodes) {
    if (op_def(node.op).name == "rotary_table") widths.insert(attribute<int64_t>(node, "rope_dim"));
  }
  const int64_t positions = served.model.max_positions.value_or(0);
  int64_t total = 0;
  for (const int64_t width : widths)
    total = checked_add(total, checked_product({positions, width, kHalf}));
  return total;
}

/// Two buffers that all layers share, with a row for each token and expert it goes to: one as wide
/// as the activation's output or the hidden state, one as wide as its two inputs or the hidden
/// state.
int64_t workspace_of(const Experts& experts, int64_t tokens) {
  const int64_t widths = std::max(experts.ffn_dim, experts.hidden_dim) +
                         std::max(2 * experts.ffn_dim, experts.hidden_dim);
  return checked_product({tokens, experts.top_k, widths, kHalf});
}

int64_t expert_workspaces_bytes(const ServedModel& served, const PoolLimits& limits,
                                const Program& step) {
  if (served.decoder().expert_ffn_dim == 0) return 0;
  // Without DeepEP, every rank gathers the tokens of all data-parallel ranks.
  const bool gathers = served.asked.deployment.all2all != All2All::kDeepEp;
  const int64_t tokens =
      checked_multiply(limits.max_num_batched_tokens, gathers ? served.plan.dp : 1);
  int64_t most = 0;
  for (const Kernel& kernel : step.kernels) {
    if (const auto* const experts = kernel.as<Experts>())
      most = std::max(most, workspace_of(*experts, tokens));
  }
  return most;
}

}  // namespace

int64_t sampler_bytes(const ServedModel& served, const PoolLimits& limits) {
  const int64_t sequences = std::min(limits.max_num_seqs, limits.max_num_batched_tokens);
  // 16-bit logits, their fp32 copy, which top-k and top-p change in place, probabilities and the
  // exponential noise that divides them. Logits are gathered on all ranks.
  constexpr int64_t kBytesPerLogit = kHalf + 4 + 4 + 4;
  // The kernel of top-k and top-p has a row of fp32 for each of its blocks, one for each SM.
  constexpr int64_t kRow = 4;
  const Gpu* const gpu = served.device.as_gpu();
  const int64_t rows = gpu != nullptr ? std::min(sequences, gpu->sm_count) : sequences;
  const int64_t logits = checked_multiply(
      vocabulary(served.modules),
      checked_add(checked_multiply(sequences, kBytesPerLogit), checked_multiply(rows, kRow)));
  // Hidden states of the step, those that logits are made of, and their random replacement.
  const int64_t states = checked_product({checked_add(limits.max_num_batched_tokens, 2 * sequences),
                                          served.decoder().hidden_dim, kHalf});
  return checked_add(logits, states);
}

int64_t held_bytes(const ServedModel& served, const PoolLimits& limits, const Program& step) {
  return checked_add(rotary_tables_bytes(served), expert_workspaces_bytes(served, limits, step));
}

}  // namespace tilecast
