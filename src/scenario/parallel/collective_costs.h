#pragma once

// The time of the collectives of a training step or a server: which ranks take part, and over which
// links.

#include <vector>

#include "lower/program.h"
#include "predict/predictor.h"
#include "scenario/parallel/rank_layout.h"
#include "sim/transfer.h"

namespace tilecast {

/// Makes it the time of a collective.
void set_time(KernelTime& kernel, const CollectiveTime& time);

/// A collective, or several one after the other.
struct Exchange {
  double seconds = 0;
  Transfer transfer;
  Exchange& operator+=(const Exchange& other) {
    seconds += other.seconds;
    transfer += other.transfer;
    return *this;
  }
};

/// A collective's kernel occupies one multiprocessor for each of its channels while other kernels
/// run. 24 channels, two for each NVLink of an A100, are a guess for all links; `NCCL_DEBUG=INFO`
/// on such a machine would settle it.
double occupied_share(const Device& device);

class CollectiveCosts {
 public:
  /// `software`: whose all-reduces run.
  explicit CollectiveCosts(const RankLayout& layout, Software software = {})
      : layout_(layout), software_(software) {}

  /// Replaces the times of collectives inside of layers; of those that run beside products, by what
  /// stays visible.
  void price(const Program& program, std::vector<KernelTime>& times) const;

  Exchange all_reduce(int64_t bytes, DType dtype, const CommGroup& group) const {
    return exchange(CollectiveKind::kAllReduce, bytes, dtype, group);
  }
  Exchange reduce_scatter(int64_t bytes, DType dtype, const CommGroup& group) const {
    return exchange(CollectiveKind::kReduceScatter, bytes, dtype, group);
  }
  Exchange all_gather(int64_t bytes, DType dtype, const CommGroup& group) const {
    return exchange(CollectiveKind::kAllGather, bytes, dtype, group);
  }
  /// A tensor that every rank of a stage has, to the next stage. Over the network, each
  /// tensor-parallel rank sends a part, and the receivers gather it (Narayanan et al. 2021,
  /// section 4.1); `divided`: each has a part only.
  Exchange send(int64_t bytes, DType dtype, bool divided, StageLinks links) const;

  /// A collective inside of layers.
  Exchange inside(const Program& program, const Launch& launch) const;

  /// Whether a collective ran over links on which none was measured.
  bool extrapolated() const { return extrapolated_; }
  /// Whether a collective ran over PCIe, see `uses_pcie`.
  bool over_pcie() const { return over_pcie_; }

 private:
  /// Hides exchanges behind what is computed, `computed_s` of it. Returns how much that takes.
  double hide(const Program& program, std::vector<KernelTime>& times, bool experts,
              double computed_s) const;
  /// Hides exchanges around a ring behind the attention to the blocks before.
  void hide_ring(const Program& program, std::vector<KernelTime>& times) const;
  Exchange exchange(CollectiveKind kind, int64_t bytes, DType dtype, const CommGroup& group) const;
  CollectiveTime time(CollectiveKind kind, int64_t bytes, DType dtype,
                      const CommGroup& group) const;
  CollectiveTime time_inside(const Kernel& kernel, const Node& node) const;
  /// All steps of an exchange around a ring, one after the other.
  CollectiveTime around_ring(const Kernel& kernel, int64_t ranks) const;
  /// Tokens that are sent to a rank once, of `num_experts` on all ranks.
  CollectiveTime sent_once(const Kernel& kernel, const Node& node, int64_t num_experts) const;
  CollectiveTime noted(const CollectiveTime& time, const CommGroup& group) const;

  const RankLayout& layout_;
  Software software_;
  mutable bool extrapolated_ = false, over_pcie_ = false;
};

}  // namespace tilecast
