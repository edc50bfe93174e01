#include "collectives/collective.h"

#include <fmt/format.h>

#include <algorithm>

#include "collectives/law.h"
#include "collectives/paths.h"
#include "tilecast/error.h"

namespace tilecast {

CollectiveTime collective_time(CollectiveKind kind, int64_t bytes, DType dtype,
                               const CommGroup& group, const Cluster& cluster,
                               const CollectiveOptions& options) {
  check_group(group, cluster);
  if (bytes < 0)
    throw Error(ErrorKind::kInput,
                fmt::format("{}: expected at least 0 bytes, found {}", choice_word(kind), bytes));
  if (group.ranks == 1 || bytes == 0) return {};
  const LawTime law = law_time(kind, bytes, dtype, group, cluster, options);
  CollectiveTime time;
  time.seconds = law.seconds;
  time.algorithm = law.algorithm;
  time.use = law.use;
  time.latency_s = law.latency_s;
  time.transfer_s = law.transfer_s;
  time.extrapolated = nodes_of(group) > 1;
  // Between nodes: half to twice, a guess.
  const double width = time.extrapolated ? 2 : 1.3;
  time.low_s = time.seconds / width;
  time.high_s = time.seconds * width;
  return time;
}

CommGroup packed_group(int64_t ranks, const Cluster& cluster) {
  return {.ranks = ranks, .ranks_per_node = std::min(ranks, cluster.gpus_per_node)};
}

}  // namespace tilecast
