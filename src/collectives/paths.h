#pragma once

#include "collectives/collective.h"

namespace tilecast {

/// The links inside a node that a group gets.
struct NodePath {
  const LinkLevel* level = nullptr;  ///< nullptr: one rank a node
  double bytes_per_s = 0;            ///< that each rank sends with all ranks of the node at work
  double latency_s = 0;
};

/// The links to other nodes that a group gets.
struct NetworkPath {
  double bytes_per_s = 0;  ///< that the ranks of one node send together
  double latency_s = 0;
};

/// Nodes that the group spans.
int64_t nodes_of(const CommGroup& group);

/// Throws Error{kInput} for a group that the cluster does not hold.
void check_group(const CommGroup& group, const Cluster& cluster);

/// Whether the group uses PCIe inside its nodes. It was measured on one server only (that of
/// l40s-pcie), and servers differ in switches, sockets and peer-to-peer transfers, where boards
/// with NVLink are alike.
bool uses_pcie(const CommGroup& group, const Cluster& cluster);

NodePath node_path(const CommGroup& group, const Cluster& cluster);

/// Only for a group of several nodes.
NetworkPath network_path(const CommGroup& group, const Cluster& cluster);

}  // namespace tilecast
