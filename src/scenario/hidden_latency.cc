#include "scenario/hidden_latency.h"

#include <algorithm>

#include "collectives/paths.h"
#include "ops/op_def.h"
#include "predict/bound.h"

namespace tilecast {
namespace {

/// The largest message that is summed and normalized in one kernel, times the ranks: 1 MiB on 8
/// (vLLM's table of sizes for Hopper; on Blackwell and on 2 ranks it has more). A guess for the
/// others; profiles of decode steps of 64 to 512 sequences would settle it.
constexpr int64_t kFusedBytesOfRanks = 8 << 20;

/// vLLM's VLLM_SHARED_EXPERTS_STREAM_TOKEN_THRESHOLD; SGLang's second stream has 1024.
constexpr int64_t kTokensBeside = 256;

int64_t rows_of(const Kernel& kernel) {
  if (const Rows* rows = kernel.as<Rows>()) return rows->rows;
  if (const Gemm* gemm = kernel.as<Gemm>()) return gemm->m;
  return 0;
}

class Hiding {
 public:
  Hiding(const Program& program, const RankLayout& plan, const Device& device, Software software)
      : program_(program), beside_(program.kernels.size(), true) {
    const SoftwareTraits& traits = traits_of(software);
    // FlashInfer's kernel is for Hopper and later.
    if (traits.fuses_norm_with_all_reduce &&
        (traits.fuses_norm_on_older_gpus || device.matmul_peak(DType::kFp8) > 0))
      find_reduced(plan);
    if (!traits.overlaps_shared_experts) return;
    int64_t tokens = 0;
    for (const Launch& launch : program.launches) {
      const bool shared = launch.node->role == Role::kSharedExpert;
      beside_[launch.kernel] = beside_[launch.kernel] && shared;
      if (shared) tokens = std::max(tokens, rows_of(program.kernels[launch.kernel]));
    }
    few_tokens_ = tokens > 0 && tokens <= kTokensBeside;
  }

  bool hidden(size_t i) const {
    if (few_tokens_ && beside_[i]) return true;
    const Rows* rows = program_.kernels[i].as<Rows>();
    static const OpId norm = require_op("add_rms_norm");
    return rows != nullptr && program_.kernels[i].op == norm &&
           rows->rows * rows->columns == reduced_;
  }

 private:
  /// The elements of the step's all-reduces where norms are part of them.
  void find_reduced(const RankLayout& plan) {
    if (plan.tp == 1 || plan.dp > 1 || plan.pp > 1) return;
    const LinkLevel* link = node_path(plan.tensor_group(), plan.cluster).level;
    if (link == nullptr || link->kind != "nvlink") return;
    static const OpId all_reduce = require_op("all_reduce");
    for (const Launch& launch : program_.launches) {
      const Kernel& kernel = program_.kernels[launch.kernel];
      if (kernel.op != all_reduce || program_.count(launch) == 1) continue;
      if (kernel.write_bytes * plan.tp <= kFusedBytesOfRanks)
        reduced_ = kernel.as<Collective>()->elements;
    }
  }

  const Program& program_;
  std::vector<bool> beside_;  ///< by kernel: only nodes of shared experts launch it
  bool few_tokens_ = false;
  int64_t reduced_ = -1;
};

}  // namespace

std::vector<bool> hidden_kernels(const Program& program, const RankLayout& plan,
                                 const Device& device, Software software) {
  std::vector<bool> hidden(program.kernels.size(), false);
  const Hiding hiding(program, plan, device, software);
  for (size_t i = 0; i < hidden.size(); ++i) hidden[i] = hiding.hidden(i);
  return hidden;
}

void hide_latency(const Kernel& kernel, const Device& device, KernelTime& time) {
  const double least = physical_bound(kernel, device, Caches::kCold).seconds();
  if (least >= time.seconds) return;
  // Upwards to its own time: whether the software hides it, and how much two streams slow each
  // other down, was not measured. Downwards there is nothing left.
  time.high_s = time.seconds;
  time.seconds = time.low_s = least;
  time.common_share = 1;  // the software hides all such kernels or none
  time.utilization_ratio = 1;
}

}  // namespace tilecast
