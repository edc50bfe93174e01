#pragma once

#include <cstdint>

namespace tilecast {

/// What one rank of an expert layer has to do.
struct ExpertLoad {
  double active_experts = 0;  ///< experts that get at least one token
  double assignments = 0;     ///< tokens times experts
};

/// Load of the fullest of `ranks` ranks that share `num_experts` experts, each token going to
/// `top_k`. skew_percent 0: tokens are spread evenly. Above: the experts' popularity follows a
/// power law of exponent skew_percent / 100, bounded as the aiconfigurator project bounds it
/// (between 1 and 0.8 times the tokens, or 0.01 and 2 where there are fewer assignments than
/// experts); its quantiles stand for random draws, in an order that is fixed.
ExpertLoad expert_load(int64_t tokens, int64_t top_k, int64_t num_experts, int64_t ranks,
                       int64_t skew_percent);

}  // namespace tilecast
