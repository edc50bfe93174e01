#include "laws/links.h"

#include "laws/constant_table.h"

namespace tilecast {

void CollectiveConstants::describe(ConstantTable& table) {
  table.add("start_s", start_s);
  table.add("pipeline_ratio", pipeline_ratio);
  table.add("pair_share", pair_share);
  table.add("ring_share", ring_share);
  table.add("send_share", send_share);
  table.add("switch_share", switch_share);
  table.add("switch_start_s", switch_start_s);
  table.add("switch_ranks", switch_ranks);
  table.add("network_share", network_share);
  table.add("tree_share", tree_share);
  table.add("unmeasured_spread_log", unmeasured_spread_log);
}

void ExpertExchangeConstants::describe(ConstantTable& table) {
  table.add("dispatch_start_s", dispatch_start_s);
  table.add("combine_start_s", combine_start_s);
  table.add("low_latency_dispatch_start_s", low_latency_dispatch_start_s);
  table.add("low_latency_combine_start_s", low_latency_combine_start_s);
  table.add("network_start_s", network_start_s);
  table.add("network_step_s", network_step_s);
  table.add("dispatch_sm_bytes_per_s", dispatch_sm_bytes_per_s);
  table.add("combine_sm_bytes_per_s", combine_sm_bytes_per_s);
  table.add("link_share", link_share);
  table.add("bend_exponent", bend_exponent);
  table.add("low_latency_share", low_latency_share);
  table.add("expert_start_s", expert_start_s);
  table.add("token_step_s", token_step_s);
  table.add("network_share", network_share);
  table.add("scale_bytes_per_element", scale_bytes_per_element);
}

}  // namespace tilecast
