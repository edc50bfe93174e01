#pragma once

#include "collectives/collective.h"

namespace tilecast {

/// What the law says of one algorithm.
struct LawTime {
  double seconds = 0;
  CollectiveAlgorithm algorithm = CollectiveAlgorithm::kNone;
  LinkUse use;
  double latency_s = 0;   ///< start-up and steps
  double transfer_s = 0;  ///< bytes over the rate of the slowest link
};

/// Time by the law alone: start-up, steps and bytes over the links of the topology, for the fastest
/// algorithm of those that the library chooses from.
///
///   time = latency + transfer + 0.9 sqrt(latency x transfer)
///
/// The last term is the pipeline's: a message in c pieces takes (latency + transfer) and c - 1
/// pieces more, c is chosen best at sqrt(transfer / latency), and NCCL comes within 0.9 of that
/// (all_gather on 8 H100, 1 to 512 MB: 0.8 to 0.95; aiconfigurator's nccl table).
/// The group must fit the cluster, see check_group.
LawTime law_time(CollectiveKind kind, int64_t bytes, DType dtype, const CommGroup& group,
                 const Cluster& cluster, const CollectiveOptions& options);

}  // namespace tilecast
