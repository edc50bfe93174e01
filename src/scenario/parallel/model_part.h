#pragma once

// One rank's share of a part of the model: its graph, its times, and when its gradients are there.

#include <map>
#include <vector>

#include "scenario/parallel/collective_costs.h"
#include "scenario/parallel/rank_layout.h"
#include "scenario/pass/pass.h"
#include "scenario/timed_pass.h"
#include "sim/stream.h"
#include "sim/training_step.h"

namespace tilecast {

/// Memory of a part. All micro-batches share the first four.
struct PartMemory {
  int64_t weights_bytes = 0, gradients_bytes = 0, optimizer_bytes = 0, inputs_bytes = 0;
  int64_t expert_weights_bytes = 0, expert_gradients_bytes = 0;  ///< of these, of experts
  /// Bytes of each micro-batch in flight, between its forward and its backward pass.
  int64_t saved_bytes = 0;
  /// Between its backward pass and the gradients of weights, if these are a pass of their own.
  int64_t kept_bytes = 0;
  int64_t working_bytes = 0;                ///< of the one that is computed, at most, beyond that
  int64_t host_bytes = 0;                   ///< of the optimizer, in the host's memory
  int64_t optimizer_temporaries_bytes = 0;  ///< of the optimizer step, at most
  /// FSDP holds the parameters of two units beside its share: the one that is computed, and the
  /// next.
  int64_t gathered_bytes = 0;
};
PartMemory part_memory(const PassWork& work, const LifetimeOptions& options);

/// A tensor that another part sends.
struct ReceivedTensor {
  int64_t bytes = 0;
  DType dtype = DType::kFp32;
};

struct ModelPart {
  TimedPass pass;
  PartMemory memory;
  std::vector<ReceivedTensor> received;
  /// Receiving them from the part before: by what joins the two stages.
  std::map<StageLinks, Exchange> receives;
  PartLoad load;                      ///< without messages between stages, whose links differ
  double weight_gradients_share = 0;  ///< of the backward pass, see backward_split.h
  double optimizer_s = 0;
  /// Bytes of the weights that the optimizer changes, and of the experts among them.
  int64_t trained_bytes = 0, trained_expert_bytes = 0;
  /// Bytes of gradients, as they are reduced.
  int64_t gradient_bytes = 0;
  Exchange reduce;  ///< all gradients in one piece, after the backward pass
  /// Time that reductions beside the backward pass add to computing: copies of gradients into
  /// buckets and back, the kernels' part of these copies, and slower kernels beside collectives.
  double copies_s = 0, copy_kernels_s = 0, slowed_s = 0;
  /// The launches of the optimizer step, which the host issues after the copies.
  HostFedStream::Sequence optimizer;
};

/// The launches of the blocks of a program that are in a phase.
HostFedStream::Sequence launches_of(const Program& program, Phase phase,
                                    const std::vector<KernelTime>& times, double host_launch_s);

/// The modules of all layers as a rank computes them, before ranks divide any. The model is built
/// once: all parts are cut from this. Throws Error.
ModelModules rank_modules(const PassSetup& setup, const RankShare& share);

/// A model that ranks share.
struct SharedModel {
  const PassSetup& setup;
  const RankLayout& layout;
  const Graph& modules;  ///< see rank_modules
};

/// The graph of one rank: forward and backward pass of one micro-batch, and the optimizer step.
Graph part_graph(const SharedModel& shared, const LayerRange& layers);

ModelPart make_part(const SharedModel& shared, const LayerRange& layers, const TimingSetup& timing,
                    const CollectiveCosts& costs);

/// The part of a timed pass, without what it exchanges with other ranks' parts.
ModelPart describe_part(TimedPass pass, const LifetimeOptions& options,
                        const CollectiveCosts& costs);
/// Adds to such a part what its gradients of weights take, if the schedule runs them alone.
void add_backward_split(ModelPart& part, const Request& request);
/// Adds to such a part what it sends and how its gradients are reduced.
void add_exchanges(ModelPart& part, const PassSetup& setup, const RankLayout& layout,
                   const TimingSetup& timing, const CollectiveCosts& costs);

}  // namespace tilecast
