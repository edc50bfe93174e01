// A cluster file of any content either gives a cluster, also of other sizes, or an Error that is
// not a bug.

#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "devices/cluster.h"
#include "tilecast/error.h"

namespace {

void check(const tilecast::Cluster& cluster) {
  if (cluster.nodes < 1 || cluster.gpus_per_node < 1 || cluster.gpus() < 1) std::abort();
  for (const tilecast::LinkLevel& level : cluster.levels) {
    if (!std::isfinite(level.bytes_per_s) || level.bytes_per_s <= 0) std::abort();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  try {
    const tilecast::Cluster cluster =
        tilecast::parse_cluster({reinterpret_cast<const char*>(data), size}, "cluster.json");
    check(cluster);
    check(tilecast::with_gpus_per_node(cluster, 1));
    check(tilecast::with_gpus_per_node(cluster, cluster.gpus_per_node));
    check(tilecast::with_nodes(cluster, 1 << 19));
  } catch (const tilecast::Error& error) {
    if (error.kind() == tilecast::ErrorKind::kInternal) throw;
  }
  return 0;
}
