#pragma once

#include <cstdint>

namespace tilecast {

/// The load of one rank in a layer of experts.
struct ExpertLoad {
  double active_experts = 0;  ///< experts that get at least one token
  double assignments = 0;     ///< (token, expert) pairs
};

/// Load of the busiest of `ranks` ranks that share `num_experts` experts; each token goes to
/// `top_k` of them. With skew_percent 0, tokens are spread uniformly. Otherwise the load of the
/// experts follows a power law with the exponent skew_percent / 100 and the bounds of the
/// aiconfigurator project: 1 and 0.8 times the tokens, or 0.01 and 2 if there are fewer assignments
/// than experts. Quantiles of the law in a fixed order replace random draws.
ExpertLoad expert_load(int64_t tokens, int64_t top_k, int64_t num_experts, int64_t ranks,
                       int64_t skew_percent);

}  // namespace tilecast
