#include "ops/expert_load.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/rng.h"

namespace tilecast {

ExpertLoad expert_load(int64_t tokens, int64_t top_k, int64_t num_experts, int64_t ranks,
                       int64_t skew_percent) {
  const double assignments = static_cast<double>(tokens) * static_cast<double>(top_k);
  const double own = static_cast<double>(num_experts) / static_cast<double>(ranks);
  if (skew_percent == 0) {
    const double share = assignments / static_cast<double>(ranks);
    return {std::min(own, std::max(share, std::min(1.0, assignments))), share};
  }
  const auto count = static_cast<size_t>(num_experts);
  const bool many = assignments > static_cast<double>(num_experts);
  const double low = many ? 1 : 0.01;
  const double high = std::max(many ? 0.8 * static_cast<double>(tokens) : 2.0, 1.001 * low);
  // Inverse of the power law's distribution function. The formula does not hold for an exponent of
  // exactly 1; a value close to 1 gives the same result.
  const double exponent = std::max(1e-3, std::abs(1 - static_cast<double>(skew_percent) / 100)) *
                          (skew_percent < 100 ? 1 : -1);
  const double from = std::pow(low, exponent), to = std::pow(high, exponent);
  std::vector<double> load(count);
  double sum = 0;
  for (size_t i = 0; i < count; ++i) {
    const double u = (static_cast<double>(i) + 0.5) / static_cast<double>(count);
    load[i] = std::pow(from + (to - from) * u, 1 / exponent);
    sum += load[i];
  }
  Rng(1).shuffle(load);
  const auto per_rank = std::max<size_t>(1, count / static_cast<size_t>(ranks));
  ExpertLoad fullest;
  for (size_t start = 0; start < count; start += per_rank) {
    ExpertLoad rank;
    for (size_t i = start; i < std::min(count, start + per_rank); ++i) {
      const double own_tokens = std::min(load[i] / sum * assignments, static_cast<double>(tokens));
      rank.assignments += own_tokens;
      rank.active_experts += own_tokens >= 0.5 ? 1 : 0;
    }
    if (rank.assignments > fullest.assignments) fullest = rank;
  }
  fullest.active_experts = std::max(fullest.active_experts, std::min(1.0, assignments));
  return fullest;
}

}  // namespace tilecast
