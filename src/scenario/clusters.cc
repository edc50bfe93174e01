#include <fmt/format.h>

#include <algorithm>

#include "base/file.h"
#include "base/text.h"
#include "collectives/collective.h"
#include "collectives/paths.h"
#include "scenario/warnings.h"
#include "software/software.h"
#include "tilecast/error.h"
#include "tilecast/forecast.h"
#include "tilecast/result.h"

namespace tilecast {
namespace {

CollectiveKind kind_of(const std::string& name) {
  const auto words = choice_words(CollectiveKind{});
  const auto it = std::find(words.begin(), words.end(), name);
  if (it != words.end()) return static_cast<CollectiveKind>(it - words.begin());
  throw Error(ErrorKind::kNotFound, fmt::format("unknown collective '{}'; known: {}",
                                                shown_name(name), join(collective_kinds(), ", ")));
}

/// Traffic of each link over the bytes of the buffer, by kind of collective: 2 (n - 1) / n for
/// all-reduce and so on (nccl-tests, PERFORMANCE.md).
double bus_factor(CollectiveKind kind, double ranks) {
  switch (kind) {
    case CollectiveKind::kAllReduce:
      return 2 * (ranks - 1) / ranks;
    case CollectiveKind::kBroadcast:
    case CollectiveKind::kSendRecv:
      return 1;
    default:
      return (ranks - 1) / ranks;
  }
}

ClusterEntry entry_of(const Cluster& cluster) {
  ClusterEntry entry = {.id = cluster.id,
                        .name = cluster.name,
                        .aliases = cluster.aliases,
                        .gpu = cluster.device.id,
                        .gpus_per_node = cluster.gpus_per_node,
                        .nodes = cluster.nodes};
  for (const LinkLevel& level : cluster.levels)
    entry.links.push_back({.kind = level.kind,
                           .fabric = std::string(choice_word(level.fabric)),
                           .gpus = level.gpus,
                           .bytes_per_s = level.bytes_per_s,
                           .shared_bytes_per_s = level.shared_bytes_per_s,
                           .latency_s = level.latency_s,
                           .reduces = level.reduces});
  if (const auto& network = cluster.network)
    entry.network = {.kind = network->kind,
                     .nics_per_node = network->nics_per_node,
                     .bytes_per_s = network->bytes_per_s,
                     .latency_s = network->latency_s,
                     .oversubscription = network->oversubscription};
  return entry;
}

}  // namespace

std::vector<ClusterEntry> cluster_catalog() {
  std::vector<ClusterEntry> entries;
  for (const Cluster& cluster : bundled_clusters()) entries.push_back(entry_of(cluster));
  return entries;
}

std::vector<std::string> collective_kinds() {
  const auto words = choice_words(CollectiveKind{});
  return {words.begin(), words.end()};
}

CollectiveForecast forecast_collective(const CollectiveQuery& query) {
  const CollectiveKind kind = kind_of(query.kind);
  const std::optional<DType> dtype = find_dtype(query.dtype);
  if (!dtype)
    throw Error(ErrorKind::kNotFound,
                fmt::format("unknown dtype '{}'; known: {}", shown_name(query.dtype),
                            join(dtype_names(), ", ")));
  const Cluster found = find_cluster(query.cluster);
  CommGroup group = packed_group(query.ranks, found);
  if (query.ranks_per_node > 0) group.ranks_per_node = query.ranks_per_node;
  group.concurrent = query.concurrent;
  const int64_t taken = (group.ranks + group.ranks_per_node - 1) / group.ranks_per_node;
  const Cluster cluster =
      with_nodes(found, query.nodes > 0 ? query.nodes : std::max(found.nodes, taken));
  const CollectiveTime time =
      collective_time(kind, query.bytes, *dtype, group, cluster,
                      {.software = parse_software(query.software, "software")});
  CollectiveForecast forecast = {.kind = query.kind,
                                 .cluster = cluster.id,
                                 .cluster_name = cluster.name,
                                 .dtype = query.dtype,
                                 .ranks = group.ranks,
                                 .ranks_per_node = group.ranks_per_node,
                                 .nodes = taken,
                                 .bytes = query.bytes,
                                 .latency_s = {time.seconds, time.low_s, time.high_s},
                                 .algorithm = choice_word(time.algorithm),
                                 .start_s = std::min(time.latency_s, time.seconds),
                                 .transfer_s = std::max(0.0, time.seconds - time.latency_s),
                                 .link_bytes = time.use.link_bytes,
                                 .network_bytes = time.use.network_bytes,
                                 .extrapolated = time.extrapolated};
  if (time.seconds > 0)
    forecast.bus_bytes_per_s = bus_factor(kind, static_cast<double>(group.ranks)) *
                               static_cast<double>(query.bytes) / time.seconds;
  // A cluster file has the rates of its owner's server.
  const bool one_server = group.ranks > 1 && uses_pcie(group, cluster) && !is_path(query.cluster);
  forecast.warnings = link_warnings(cluster, group.ranks, {.one_server = one_server}, 1);
  return forecast;
}

}  // namespace tilecast
