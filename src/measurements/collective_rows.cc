#include "measurements/collective_rows.h"

#include "devices/registry.h"
#include "tilecast/error.h"

namespace tilecast {

const Cluster* MeasuredClusters::find(const CollectiveMeasurement& row) {
  const int64_t nodes = (row.group.ranks + row.group.ranks_per_node - 1) / row.group.ranks_per_node;
  const std::string& name = row.cluster.empty() ? row.gpu : row.cluster;
  const auto [it, fresh] = found_.try_emplace({name, nodes});
  if (fresh) {
    try {
      Cluster cluster =
          row.cluster.empty() ? node_of(find_device(row.gpu)) : find_cluster(row.cluster);
      it->second = with_nodes(cluster, nodes);
    } catch (const Error&) {
      it->second.reset();  // the caller lists the row
    }
  }
  return it->second ? &*it->second : nullptr;
}

std::string label_of(const CollectiveMeasurement& row) {
  std::string label(choice_word(row.kind));
  if (!traits_of(row.software).all_reduce_curve.empty()) label += " (serving)";
  if (row.exchange && row.exchange->low_latency) label += " (low latency)";
  if (row.group.ranks > row.group.ranks_per_node) label += " (nodes)";
  return label;
}

CollectiveTime forecast_of(const CollectiveMeasurement& row, const Cluster& cluster,
                           const CollectiveWeights* weights) {
  const CollectiveOptions options = {.software = row.software, .weights = weights};
  if (row.exchange)
    return expert_exchange_time(row.kind, *row.exchange, row.group, cluster, options);
  return collective_time(row.kind, row.bytes, row.dtype, row.group, cluster, options);
}

}  // namespace tilecast
