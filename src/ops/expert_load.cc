#include "ops/expert_load.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "base/rng.h"
#include "tilecast/error.h"

namespace tilecast {
namespace {

/// Exponents that were measured, in percent (aiconfigurator's tables).
constexpr int64_t kMeasured[] = {101, 120};

/// Demand for each expert, most first, in no unit: quantiles of the power law. A bounded power law
/// becomes even again with a large exponent, since most draws lie at its lower bound. So beyond the
/// largest exponent that was measured, its values are raised to a power.
std::vector<double> popularity(int64_t tokens, size_t experts, bool many, int64_t skew_percent) {
  // Each expert's load is computed. Published models have up to 2,048 of them.
  constexpr size_t kMostSkewedExperts = 1 << 16;
  if (experts > kMostSkewedExperts)
    throw Error(ErrorKind::kUnsupported,
                fmt::format("an uneven load of {} experts; expected at most {}, or the same load "
                            "for all (a skew of 0)",
                            experts, kMostSkewedExperts));
  const double low = many ? 1 : 0.01;
  const double high = std::max(many ? 0.8 * static_cast<double>(tokens) : 2.0, 1.001 * low);
  const double exponent = static_cast<double>(skew_percent) / 100;
  const double drawn = static_cast<double>(std::min(skew_percent, kMeasured[1])) / 100;
  // Inverse of the law's distribution function. The formula does not hold for an exponent of
  // exactly 1; a value close to 1 gives the same result.
  const double inverse = std::max(1e-3, std::abs(1 - drawn)) * (drawn < 1 ? 1 : -1);
  const double from = std::pow(low, inverse), to = std::pow(high, inverse);
  const double power = exponent / drawn / inverse;
  std::vector<double> asked(experts);
  for (size_t i = 0; i < experts; ++i) {
    const double u = (static_cast<double>(experts - i) - 0.5) / static_cast<double>(experts);
    asked[i] = std::pow(from + (to - from) * u, power);
  }
  return asked;
}

/// Divides `pairs` in proportion to `asked` (most first), at most `most` each. The excess goes to
/// the others in proportion, so that nothing is lost.
std::vector<double> divide_pairs(const std::vector<double>& asked, double pairs, double most) {
  std::vector<double> rest(asked.size());  // asked for by the expert and those after it
  std::partial_sum(asked.rbegin(), asked.rend(), rest.rbegin());
  std::vector<double> load(asked.size());
  for (size_t i = 0; i < asked.size(); ++i) {
    load[i] = std::min(most, pairs * asked[i] / rest[i]);
    pairs -= load[i];
  }
  return load;
}

/// The mean of the largest of `count` normal numbers with mean 0 and deviation 1.
double largest_normal(double count) {
  constexpr double kEnd = 6, kStep = 0.25;
  const auto below = [&](double x) { return std::pow(0.5 * std::erfc(-x / std::sqrt(2)), count); };
  double sum = 0;
  for (double x = kStep / 2; x < kEnd; x += kStep) sum += 1 - below(x) - below(-x);
  return sum * kStep;
}

class RankLoads {
 public:
  RankLoads(int64_t tokens, int64_t top_k, int64_t num_experts, int64_t ranks)
      : tokens_(tokens),
        top_k_(top_k),
        experts_(num_experts),
        ranks_(static_cast<double>(ranks)),
        own_(static_cast<size_t>(std::max<int64_t>(1, num_experts / ranks))),
        pairs_(static_cast<double>(tokens) * static_cast<double>(top_k)) {}

  ExpertLoad fullest(int64_t skew_percent) const {
    // Beyond what was measured, experts that get nothing any more still count as active: how times
    // change with them is not known, and more skew must not look faster.
    const int64_t measured = std::min(skew_percent, kMeasured[1]);
    ExpertLoad load = in_fixed_order(expert_pairs(tokens_, top_k_, experts_, measured));
    load.active_experts = std::max(load.active_experts, std::min(1.0, pairs_));
    if (own_ < static_cast<size_t>(experts_))
      load.assignments = growing(skew_percent, load.assignments);
    return load;
  }

 private:
  /// Experts on ranks in a fixed random order. Residuals that were learned from measured times
  /// depend on it.
  ExpertLoad in_fixed_order(std::vector<double> load) const {
    std::reverse(load.begin(), load.end());
    Rng(1).shuffle(load);
    ExpertLoad fullest;
    for (size_t start = 0; start < load.size(); start += own_) {
      ExpertLoad rank;
      for (size_t i = start; i < std::min(load.size(), start + own_); ++i) {
        rank.assignments += load[i];
        rank.active_experts += load[i] >= 0.5 ? 1 : 0;
      }
      if (rank.assignments > fullest.assignments) fullest = rank;
    }
    return fullest;
  }
  double fixed(int64_t skew_percent) const {
    return in_fixed_order(expert_pairs(tokens_, top_k_, experts_, skew_percent)).assignments;
  }

  /// The fullest rank in a mean order: that of the busiest expert and the mean of the others, or
  /// the largest of as many sums of random experts. Both grow with every shift from an expert to a
  /// busier one, and so with the exponent.
  double mean(int64_t skew_percent) const {
    const std::vector<double> load = expert_pairs(tokens_, top_k_, experts_, skew_percent);
    const auto experts = static_cast<double>(experts_), own = static_cast<double>(own_);
    double squares = 0;
    for (const double pairs : load) squares += std::pow(pairs - pairs_ / experts, 2);
    const double variance = squares / experts * own * (experts - own) / (experts - 1);
    const double of_busiest = load[0] + (own - 1) / (experts - 1) * (pairs_ - load[0]);
    const double of_random = pairs_ / ranks_ + largest_normal(ranks_) * std::sqrt(variance);
    const double most =
        std::accumulate(load.begin(), load.begin() + static_cast<int64_t>(own_), 0.0);
    return std::min(most, std::max(of_busiest, of_random));
  }

  /// In one order, a larger exponent may shift tokens away from the fullest rank. So the fixed
  /// order counts at the exponents that were measured; between and beyond them the load follows the
  /// mean order's. `here`: of the fixed order.
  double growing(int64_t skew_percent, double here) const {
    if (skew_percent == kMeasured[0]) return here;
    const double first = fixed(kMeasured[0]);
    const double second = std::max(first, fixed(kMeasured[1]));
    if (skew_percent == kMeasured[1]) return second;
    const double even = pairs_ / ranks_, now = mean(skew_percent), low = mean(kMeasured[0]);
    const auto between = [&](double x, double x0, double x1, double y0, double y1) {
      return x1 > x0 ? y0 + (y1 - y0) * std::clamp((x - x0) / (x1 - x0), 0.0, 1.0) : y1;
    };
    if (skew_percent < kMeasured[0]) return between(now, even, low, even, first);
    const double high = mean(kMeasured[1]);
    if (skew_percent < kMeasured[1]) return between(now, low, high, first, second);
    const double most = std::min(pairs_, static_cast<double>(own_) * static_cast<double>(tokens_));
    return std::min(most, second * std::max(1.0, now / high));
  }

  int64_t tokens_, top_k_, experts_;
  double ranks_;
  size_t own_;  ///< experts of a rank
  double pairs_;
};

}  // namespace

std::vector<double> expert_pairs(int64_t tokens, int64_t top_k, int64_t num_experts,
                                 int64_t skew_percent) {
  const double pairs = static_cast<double>(tokens) * static_cast<double>(top_k);
  const auto experts = static_cast<size_t>(num_experts);
  if (skew_percent == 0)
    return std::vector<double>(experts, pairs / static_cast<double>(num_experts));
  const bool many = pairs > static_cast<double>(num_experts);
  return divide_pairs(popularity(tokens, experts, many, skew_percent), pairs,
                      static_cast<double>(tokens));
}

ExpertLoad expert_load(int64_t tokens, int64_t top_k, int64_t num_experts, int64_t ranks,
                       int64_t skew_percent) {
  if (skew_percent > 0) return RankLoads(tokens, top_k, num_experts, ranks).fullest(skew_percent);
  const double pairs = static_cast<double>(tokens) * static_cast<double>(top_k);
  const double own = static_cast<double>(num_experts) / static_cast<double>(ranks);
  const double share = pairs / static_cast<double>(ranks);
  return {std::min(own, std::max(share, std::min(1.0, pairs))), share};
}

}  // namespace tilecast
