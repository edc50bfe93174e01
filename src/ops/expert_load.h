#pragma once

#include <cstdint>
#include <vector>

namespace tilecast {

/// The load of one rank in a layer of experts.
struct ExpertLoad {
  double active_experts = 0;  ///< experts that get at least one token
  double assignments = 0;     ///< (token, expert) pairs
};

/// (token, expert) pairs of each of `num_experts` experts, most first; each token goes to `top_k`
/// of them, so they sum up to tokens x top_k, and none has more than `tokens`. With skew_percent 0,
/// tokens are spread uniformly. Otherwise the load follows a power law with the exponent
/// skew_percent / 100 and the bounds of the aiconfigurator project: 1 and 0.8 times the tokens, or
/// 0.01 and 2 if there are fewer pairs than experts. Quantiles of the law replace random draws.
std::vector<double> expert_pairs(int64_t tokens, int64_t top_k, int64_t num_experts,
                                 int64_t skew_percent);

/// Load of the busiest of `ranks` ranks that share the experts, which lie on them in a random
/// order. A larger skew is never less.
ExpertLoad expert_load(int64_t tokens, int64_t top_k, int64_t num_experts, int64_t ranks,
                       int64_t skew_percent);

}  // namespace tilecast
