#include "sim/step_replicas.h"

#include <algorithm>
#include <numeric>
#include <set>

namespace tilecast {

SimulatedReplicas simulated_replicas(const TrainingStep& step, Folding folding) {
  SimulatedReplicas replicas;
  std::set<std::vector<double>> known;
  for (int64_t r = 0; r < step.replicas; ++r) {
    std::vector<double> factors;
    for (int64_t s = 0; s < step.pipeline.stages; ++s) {
      double most = step.slow.empty() ? 1 : 0;
      for (int64_t w = 0; w < step.width && !step.slow.empty(); ++w)
        most = std::max(most,
                        step.slow[static_cast<size_t>((s * step.replicas + r) * step.width + w)]);
      factors.push_back(most);
    }
    const bool is_new = known.insert(factors).second;
    if (!is_new && folding == Folding::kSymmetric) continue;
    replicas.factors.push_back(std::move(factors));
    replicas.numbers.push_back(r);
    if (step.slow.empty() && folding == Folding::kSymmetric) break;
  }
  return replicas;
}

size_t slowest_replica(const SimulatedReplicas& replicas) {
  const auto sum = [](const std::vector<double>& factors) {
    return std::accumulate(factors.begin(), factors.end(), 0.0);
  };
  const auto slowest =
      std::max_element(replicas.factors.begin(), replicas.factors.end(),
                       [&](const auto& a, const auto& b) { return sum(a) < sum(b); });
  return static_cast<size_t>(slowest - replicas.factors.begin());
}

}  // namespace tilecast
