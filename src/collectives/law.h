#pragma once

#include <optional>
#include <vector>

#include "collectives/collective.h"
#include "collectives/weights.h"

namespace tilecast {

/// The law's answer for one algorithm.
///
///   time = latency + transfer + pipeline_ratio sqrt(latency x transfer)
///
/// The last term is the pipeline's: a message in c pieces takes (latency + transfer) and c - 1
/// pieces more, c is chosen best at sqrt(transfer / latency), and NCCL comes near that.
struct CollectiveLawTime {
  CollectiveAlgorithm algorithm = CollectiveAlgorithm::kNone;
  LinkUse use;
  double latency_s = 0;              ///< start-up and steps
  double transfer_s = 0;             ///< bytes over what the slowest links reach of their rate
  double link_s = 0;                 ///< bytes over the full rate
  double node_s = 0, network_s = 0;  ///< of `transfer_s`: inside the nodes, and between them
  /// Curves learned from other sizes and ranks make it no shorter. Serving software's own
  /// all-reduces have none: the rates of PCIe trees were measured with NCCL.
  double least_s = 0;
  /// The measured curve that applies, with its size in seconds and its width.
  std::optional<Curve> curve;
  double size_s = 0;
  double width = 0;
  const LinkLevel* level = nullptr;
  double pipeline_ratio = 0;  ///< see above

  /// The time of `scale` times the bytes.
  double seconds(double scale = 1) const;
};

/// The constants of the options, or the bundled ones.
const LawConstants& constants_of(const CollectiveOptions& options);

/// The algorithms that the library chooses from. The group must fit the cluster, see check_group.
std::vector<CollectiveLawTime> laws_of(CollectiveKind kind, int64_t bytes, DType dtype,
                                       const CommGroup& group, const Cluster& cluster,
                                       const CollectiveOptions& options);

CollectiveLawTime law_of(CollectiveKind kind, const ExpertExchange& exchange,
                         const CommGroup& group, const Cluster& cluster,
                         const CollectiveOptions& options);

}  // namespace tilecast
