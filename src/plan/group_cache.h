#pragma once

// The candidates of a group: their memory, bounds and times, from parts that they share.

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "plan/part_cache.h"
#include "scenario/precision.h"
#include "tilecast/search.h"

namespace tilecast {

/// Sets the options that a candidate states.
void set_candidate(Request& request, const TrainingCandidate& candidate);

/// Facts that are the same for all candidates.
struct TrainingFacts {
  const Model& model;
  const Device& device;
  const Predictor& predictor;
  Request shared;
  Cluster cluster;
  std::map<std::string, Precision> precisions;  ///< by dtype as asked
  int64_t layers = 0;
};

class GroupCache {
 public:
  /// `any`: a candidate of the group.
  GroupCache(const TrainingFacts& facts, const TrainingCandidate& any);
  GroupCache(const GroupCache&) = delete;
  GroupCache& operator=(const GroupCache&) = delete;

  /// Fills in memory and bound. Throws Error if the model does not allow the degrees.
  void judge(TrainingCandidate& candidate);
  /// Fills in the times.
  void simulate(TrainingCandidate& candidate);

 private:
  struct Step {
    Request request;
    RankLayout layout;
    std::vector<const ModelPart*> parts;
    TrainingStep step;
  };
  Step step_of(const TrainingCandidate& candidate);
  void add_memory(TrainingCandidate& candidate, const Step& step) const;

  const TrainingFacts& facts_;
  Request request_;
  const Precision& precision_;
  std::unique_ptr<PartCache> parts_of_group_;
};

}  // namespace tilecast
