#pragma once

// Candidates of a training step: their memory and bounds, and simulations of those that are asked
// for, on all cores. Results do not depend on the number of threads.

#include <list>
#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "plan/group_cache.h"
#include "plan/training_space.h"

namespace tilecast {

class TrainingSearch {
 public:
  /// All must outlive this object.
  TrainingSearch(const TrainingFacts& facts, const TrainingQuery& query, TrainingPlan& plan)
      : facts_(facts), query_(query), plan_(plan) {}

  /// Fills in the plan's candidates with their memory and bounds: those that fit first, by rising
  /// bounds. Where none fits, larger micro-batches are only counted, unless they were asked
  /// for. Throws Error{kInput} if there is no candidate.
  void judge(const std::vector<CandidateGroup>& groups);

  /// Whether any candidate of the groups fits; the first one ends the search.
  bool any_fits(const std::vector<CandidateGroup>& groups) const;

  /// Simulates the candidates with these indices. One that fails stays without a time.
  void simulate(const std::vector<size_t>& indices);

  /// Throws an Error with what is in the way, where there is no candidate, or none that can be
  /// simulated.
  [[noreturn]] void refuse_empty() const;

 private:
  struct Judged {
    std::vector<TrainingCandidate> candidates;
    std::map<std::string, int64_t> impossible, failures;
    int64_t skipped = 0;
  };
  /// All that candidates of one GroupCache share.
  using Key = std::tuple<int64_t, int64_t, int64_t, int64_t, bool, Checkpointing, std::string>;
  using Caches = std::list<std::pair<Key, std::unique_ptr<GroupCache>>>;

  Judged judge_family(const std::vector<CandidateGroup>& groups, size_t first, size_t end) const;
  void judge_group(const CandidateGroup& group, Judged& out) const;
  GroupCache& cache_of(const TrainingCandidate& candidate);

  const TrainingFacts& facts_;
  const TrainingQuery& query_;
  TrainingPlan& plan_;
  Caches caches_;
};

}  // namespace tilecast
