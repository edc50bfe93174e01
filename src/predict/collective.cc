#include "predict/collective.h"

#include <algorithm>

namespace tilecast {
namespace {

CollectiveTime time_on(const Cluster& node, const Kernel& kernel, const Conditions& conditions) {
  const int64_t ranks = std::get<Collective>(kernel.shape).ranks;
  const auto time = [&](const Cluster& cluster) {
    return collective_time(CollectiveKind::kAllReduce, kernel.read_bytes, kernel.dtype,
                           {.ranks = ranks, .ranks_per_node = ranks}, cluster,
                           {.software = conditions.software});
  };
  if (ranks <= node.gpus_per_node) return time(node);
  // More ranks than a node has: as if its outermost links joined them.
  Cluster wide = node;
  wide.gpus_per_node = wide.levels.back().gpus = ranks;
  return time(wide);
}

}  // namespace

CollectiveTime collective_time_of(const Kernel& kernel, const Device& device,
                                  const Conditions& conditions) {
  return time_on(node_of(device), kernel, conditions);
}

void estimate_collectives(const CostBatch& batch, const Weights&) {
  const Cluster node = node_of(batch.data_sheet);
  for (const size_t i : batch.rows) {
    const CollectiveTime found = time_on(node, batch.kernels[i], batch.conditions);
    KernelTime time;
    time.seconds = found.seconds;
    time.low_s = found.low_s;
    time.high_s = found.high_s;
    time.limit = found.transfer_s > found.latency_s ? Limit::kNetwork : Limit::kLatency;
    time.utilization_ratio = std::min(1.0, found.link_s / found.seconds);
    time.extrapolated = found.extrapolated;
    if (found.extrapolated) time.extrapolated_feature = "links";
    batch.times[i] = time;
  }
}

}  // namespace tilecast
