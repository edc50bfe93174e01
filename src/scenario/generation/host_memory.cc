#include "scenario/generation/host_memory.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/checked.h"
#include "passes/stage.h"
#include "scenario/generation/served_cache.h"
#include "tilecast/error.h"

namespace tilecast {

double host_bytes_per_s(const ServedModel& served, const char* option) {
  double link = 0;
  bool coherent = false;
  for (const Link& each : served.device.links) {
    const bool c2c = each.kind == "nvlink-c2c";
    if (!c2c && (coherent || each.kind != "pcie")) continue;
    coherent = c2c;
    link = each.bytes_per_s;
  }
  if (link == 0)
    throw Error(ErrorKind::kUnsupported,
                fmt::format("{}: `{}` needs the rate of its link to the host; its file names no "
                            "link of kind pcie",
                            served.device.id, option));
  return link * software_def(*served.asked.execution.software).prefix_cache.host_link_ratio;
}

void add_host_memory(ServerLimits& limits, const ServedModel& served) {
  int64_t all = 0, most = 0;
  for (size_t stage = 0; stage < served.stages.size(); ++stage) {
    const int64_t rank = stage_cache_bytes(served, 1, limits.block_tokens, stage);
    most = std::max(most, rank);
    all = checked_add(all, checked_product({rank, served.plan.tp, served.stages[stage].count}));
  }
  if (all == 0) return;
  limits.host_blocks = static_cast<int64_t>(served.asked.load.kv_offloading_bytes) /
                       checked_multiply(all, served.plan.dp);
  limits.host_block_s = static_cast<double>(most) / host_bytes_per_s(served);
  limits.layers = std::max<int64_t>(1, layer_count(served.modules));
}

}  // namespace tilecast
