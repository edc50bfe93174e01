#include "collectives/paths.h"

#include <fmt/format.h>

#include <algorithm>

#include "tilecast/error.h"

namespace tilecast {

int64_t nodes_of(const CommGroup& group) {
  return (group.ranks + group.ranks_per_node - 1) / group.ranks_per_node;
}

void check_group(const CommGroup& group, const Cluster& cluster) {
  const auto refuse = [&](const std::string& why) {
    throw Error(ErrorKind::kInput, fmt::format("{}: {}", cluster.id, why));
  };
  if (group.ranks < 1 || group.ranks_per_node < 1 || group.concurrent < 1 || group.stride < 1)
    refuse("expected at least 1 rank, rank per node, group and GPU of distance");
  if (group.ranks_per_node > group.ranks)
    refuse(
        fmt::format("{} ranks per node, but the group has {}", group.ranks_per_node, group.ranks));
  const int64_t reach = (group.ranks_per_node - 1) * group.stride + 1;
  if (reach > cluster.gpus_per_node)
    refuse(fmt::format("{} ranks at a distance of {} do not fit into a node of {} GPUs",
                       group.ranks_per_node, group.stride, cluster.gpus_per_node));
  if (const int64_t nodes = nodes_of(group); nodes > cluster.nodes)
    refuse(
        fmt::format("{} ranks with {} a node take {} nodes, but the cluster has {}; set the "
                    "number of nodes",
                    group.ranks, group.ranks_per_node, nodes, cluster.nodes));
}

NodePath node_path(const CommGroup& group, const Cluster& cluster) {
  const int64_t n = group.ranks_per_node;
  if (n == 1) return {};
  const int64_t reach = (n - 1) * group.stride + 1;
  const LinkLevel& level = *std::find_if(cluster.levels.begin(), cluster.levels.end(),
                                         [&](const LinkLevel& l) { return l.gpus >= reach; });
  double rate = level.bytes_per_s;
  const auto ranks = static_cast<double>(n);
  if (level.fabric == Fabric::kMesh)  // only the links to the other ranks of the group
    rate *= (ranks - 1) / (static_cast<double>(level.gpus) - 1);
  if (level.shared_bytes_per_s)
    rate =
        std::min(rate, *level.shared_bytes_per_s / (ranks * static_cast<double>(group.concurrent)));
  return {&level, rate, level.latency_s};
}

bool uses_pcie(const CommGroup& group, const Cluster& cluster) {
  const NodePath path = node_path(group, cluster);
  return path.level != nullptr && path.level->kind == "pcie";
}

NetworkPath network_path(const CommGroup& group, const Cluster& cluster) {
  const Network& network = *cluster.network;
  const auto nics = static_cast<double>(network.nics_per_node);
  // A rank uses the NICs next to its GPU, at least one; groups share what the node has.
  const double near = std::max(1.0, static_cast<double>(group.ranks_per_node) * nics /
                                        static_cast<double>(cluster.gpus_per_node));
  const double share = std::min(near, nics / static_cast<double>(group.concurrent));
  double rate = share * network.bytes_per_s;
  if (nodes_of(group) > network.nodes_per_leaf) rate /= network.oversubscription;
  return {rate, network.latency_s};
}

}  // namespace tilecast
