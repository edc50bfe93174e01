#pragma once

// All configurations of a training step that a search looks at.

#include <vector>

#include "devices/cluster.h"
#include "importers/model.h"
#include "tilecast/search.h"

namespace tilecast {

/// Candidates that share the work of a layer: what differs is where the layers are and who has the
/// same ones.
struct CandidateGroup {
  int64_t tp = 1, cp = 1, ep = 1, micro_batch_size = 1;
  bool sequence_parallel = false;
  Checkpointing checkpointing = Checkpointing::kNone;
  std::string dtype;
  std::vector<TrainingCandidate> candidates;
};

/// Facts that the space follows from.
struct SpaceFacts {
  const Cluster& cluster;  ///< with its nodes
  int64_t layers = 0;
  int64_t experts = 0;  ///< of each layer that has some; 0: none
  bool flash = true;    ///< fused attention
  bool scores = false;  ///< attention keeps scores, which selective checkpointing leaves out
  /// Tensor parallelism divides weights of the model. Frameworks train others, as convolutional
  /// networks, with data parallelism alone.
  bool divides_layers = true;
};

/// The simplest candidates come first, so that of equally fast ones the simplest wins. Degrees of
/// the space that do not divide the GPUs, the batch or the layers give no candidates; `impossible`
/// gets such that were asked for, by reason.
std::vector<CandidateGroup> candidate_groups(const TrainingQuery& query, const SpaceFacts& facts,
                                             const std::vector<std::string>& dtypes,
                                             std::map<std::string, int64_t>& impossible);

}  // namespace tilecast
