#pragma once

// How training is divided over the ranks of a cluster.

#include <optional>
#include <vector>

#include "collectives/collective.h"
#include "devices/cluster.h"
#include "importers/model.h"
#include "passes/stage.h"
#include "sim/pipeline_schedule.h"
#include "tilecast/request.h"

namespace tilecast {

/// What joins the ranks of two stages that follow each other.
enum class StageLinks : uint8_t { kInNode, kNetwork };

/// Ranks are numbered as in Megatron-LM: tensor-parallel ranks are neighbours, then context-,
/// then data-parallel ones; the pipeline's stages are furthest from each other. Expert-parallel
/// ranks are numbered apart: those that divide an expert are neighbours, then those with other
/// experts, then those with the same ones.
struct RankLayout {
  Cluster cluster;
  int64_t dp = 1, tp = 1, pp = 1, cp = 1, ep = 1;
  /// Ranks that divide each expert where these are not the tensor-parallel ones; they have tokens
  /// of their own.
  std::optional<int64_t> expert_tp;
  bool tp_overlap = false, expert_overlap = false;  ///< of exchanges inside a pass
  bool sends_once = false;  ///< a token to a rank, and to a node, whatever its experts there
  int64_t micro_batch = 1;  ///< sequences
  PipelineShape pipeline;
  std::vector<LayerRange> parts;  ///< of the model, in order (see part_number)
  std::vector<double> slow;       ///< see TrainingStep::slow; empty: all ranks are alike

  int64_t ranks() const { return dp * tp * pp * cp; }
  /// Ranks that work on one stage of one replica.
  int64_t width() const { return tp * cp; }
  /// Ranks that hold the same weights, and reduce their gradients.
  int64_t data_ranks() const { return dp * cp; }
  CommGroup tensor_group() const { return group(tp, 1); }
  CommGroup context_group() const { return group(cp, tp); }
  int64_t expert_width() const { return expert_tp.value_or(tp); }
  CommGroup expert_group() const { return group(ep, expert_width()); }
  CommGroup expert_tensor_group() const { return group(expert_width(), 1); }
  /// A context-parallel rank and the next one, while all send.
  CommGroup context_ring() const;
  /// How many times fewer ranks hold an expert than other weights.
  double expert_share() const {
    return static_cast<double>(ep * expert_width()) / static_cast<double>(tp);
  }
  CommGroup data_group() const { return group(data_ranks(), tp); }
  /// Gradients of experts.
  CommGroup expert_data_group() const {
    return group(dp * width() / (ep * expert_width()), ep * expert_width());
  }
  /// What joins a stage and the next one, or the last and the first. Where a stage fills a part of
  /// a node, some neighbours share a node and others do not.
  StageLinks links_after(int64_t stage) const;
  /// What joins the stages of a part of the model and of the part before; nullopt: it is the first
  /// part, or both are on one stage.
  std::optional<StageLinks> links_before(int64_t part) const;
  /// A rank of a stage and its neighbour of the next one.
  CommGroup stage_pair(StageLinks links) const;
  CommGroup first_and_last() const { return stage_pair(links_after(pp - 1)); }

 private:
  CommGroup group(int64_t size, int64_t stride) const;
};

/// Whether the request is for several ranks or several micro-batches.
bool is_parallel(const Request& request);

/// The work of a rank at once: its share of the batch and of the sequence.
struct RankShare {
  int64_t sequences = 1, tokens = 1;
};
/// Throws Error{kInput} if the degrees do not divide batch or sequence, Error{kUnsupported} if the
/// model cannot be divided so. The request must have its `seq`.
RankShare rank_share(const Model& model, const Request& request);

/// The cluster of the request's ranks. Throws Error{kInput} if its nodes do not have the same
/// number of them.
Cluster cluster_of(const Device& device, const Request& request);
/// `layers`: `layer_count` of the model. Throws as both above, and Error{kInput} if the degrees do
/// not fit the model's layers.
RankLayout lay_out_ranks(const Model& model, const Cluster& cluster, int64_t layers,
                         const Request& request);

}  // namespace tilecast
