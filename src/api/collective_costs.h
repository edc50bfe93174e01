#pragma once

// The time of the collectives of a training step or a server: which ranks take part, and over which
// links.

#include <vector>

#include "api/parallel_plan.h"
#include "lower/program.h"
#include "predict/predictor.h"

namespace tilecast {

/// Makes it the time of a collective.
void set_time(KernelTime& kernel, const CollectiveTime& time);

class CollectiveCosts {
 public:
  /// `software`: whose all-reduces run.
  explicit CollectiveCosts(const ParallelPlan& plan, Software software = Software::kPyTorch)
      : plan_(plan), software_(software) {}

  /// Replaces the times of collectives inside of layers.
  void price(const Program& program, std::vector<KernelTime>& times) const;

  double all_reduce_s(int64_t bytes, DType dtype, const CommGroup& group) const {
    return seconds(CollectiveKind::kAllReduce, bytes, dtype, group);
  }
  double reduce_scatter_s(int64_t bytes, DType dtype, const CommGroup& group) const {
    return seconds(CollectiveKind::kReduceScatter, bytes, dtype, group);
  }
  double all_gather_s(int64_t bytes, DType dtype, const CommGroup& group) const {
    return seconds(CollectiveKind::kAllGather, bytes, dtype, group);
  }
  /// A tensor that every rank of a stage has, to the next stage. Between nodes, each
  /// tensor-parallel rank sends a part, and the receivers gather it (Narayanan et al. 2021,
  /// section 4.1); `divided`: each has a part only.
  double send_s(int64_t bytes, DType dtype, bool divided) const;

  /// Whether a collective ran over links on which none was measured.
  bool extrapolated() const { return extrapolated_; }

 private:
  double seconds(CollectiveKind kind, int64_t bytes, DType dtype, const CommGroup& group) const;
  CollectiveTime time(CollectiveKind kind, int64_t bytes, DType dtype,
                      const CommGroup& group) const;

  const ParallelPlan& plan_;
  Software software_;
  mutable bool extrapolated_ = false;
};

}  // namespace tilecast
