#include "predict/collective.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "base/check.h"
#include "ops/op_def.h"

namespace tilecast {
namespace {

constexpr std::pair<std::string_view, CollectiveKind> kKinds[] = {
    {"all_reduce", CollectiveKind::kAllReduce},
    {"all_gather", CollectiveKind::kAllGather},
    {"context_all_gather", CollectiveKind::kAllGather},
    {"data_all_gather", CollectiveKind::kAllGather},
    {"data_reduce_scatter", CollectiveKind::kReduceScatter},
    {"reduce_scatter", CollectiveKind::kReduceScatter},
    {"context_reduce_scatter", CollectiveKind::kReduceScatter},
    {"sequence_all_to_all", CollectiveKind::kAllToAll},
    {"ring_exchange", CollectiveKind::kSendRecv},
    {"expert_all_gather", CollectiveKind::kAllGather},
    {"expert_reduce_scatter", CollectiveKind::kReduceScatter},
    {"context_ring", CollectiveKind::kSendRecv},
    {"context_ring_backward", CollectiveKind::kSendRecv},
    {"expert_dispatch", CollectiveKind::kExpertDispatch},
    {"expert_combine", CollectiveKind::kExpertCombine}};

CollectiveTime time_on(const Cluster& node, const Kernel& kernel, const Conditions& conditions,
                       const LawConstants& laws) {
  const int64_t ranks = std::get<Collective>(kernel.shape).ranks;
  const auto time = [&](const Cluster& cluster) {
    return collective_time(collective_kind(kernel), collective_bytes(kernel), kernel.dtype,
                           {.ranks = ranks, .ranks_per_node = ranks}, cluster,
                           {.software = conditions.software, .laws = &laws});
  };
  if (ranks <= node.gpus_per_node) return time(node);
  // More ranks than a node has: as if its outermost links joined them.
  Cluster wide = node;
  wide.gpus_per_node = wide.levels.back().gpus = ranks;
  return time(wide);
}

}  // namespace

CollectiveKind collective_kind(const Kernel& kernel) {
  const std::string_view name = op_def(kernel.op).name;
  const auto* found = std::find_if(std::begin(kKinds), std::end(kKinds),
                                   [&](const auto& kind) { return kind.first == name; });
  TILECAST_CHECK(found != std::end(kKinds)) << name;
  return found->second;
}

int64_t collective_bytes(const Kernel& kernel) {
  return std::max(kernel.read_bytes, kernel.write_bytes);
}

CollectiveTime collective_time_of(const Kernel& kernel, const Device& device,
                                  const Conditions& conditions) {
  return time_on(node_of(device), kernel, conditions, bundled_laws());
}

void estimate_collectives(const CostBatch& batch, const Weights& weights) {
  const Cluster node = node_of(batch.data_sheet);
  for (const size_t i : batch.rows) {
    const CollectiveTime found = time_on(node, batch.kernels[i], batch.conditions, weights.laws);
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
