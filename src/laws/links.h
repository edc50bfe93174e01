#pragma once

// Constants of the laws of collectives (src/collectives). What each is and how it was found:
// data/laws.

#include <cstdint>

namespace tilecast {

class ConstantTable;

/// Collectives of NCCL and of serving software.
struct CollectiveConstants {
  double start_s, pipeline_ratio, pair_share, ring_share, send_share, switch_share, switch_start_s;
  int64_t switch_ranks;
  double network_share, tree_share, unmeasured_spread_log;

  void describe(ConstantTable& table);
  bool operator==(const CollectiveConstants&) const = default;
};

/// Dispatch and combine of tokens between experts, by the kernels of DeepEP.
struct ExpertExchangeConstants {
  double dispatch_start_s, combine_start_s, low_latency_dispatch_start_s,
      low_latency_combine_start_s, network_start_s, network_step_s, dispatch_sm_bytes_per_s,
      combine_sm_bytes_per_s, link_share, bend_exponent, low_latency_share, expert_start_s,
      token_step_s, network_share, scale_bytes_per_element;

  void describe(ConstantTable& table);
  bool operator==(const ExpertExchangeConstants&) const = default;
};

}  // namespace tilecast
