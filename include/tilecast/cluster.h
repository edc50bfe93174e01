#pragma once

// Clusters and single collectives. Library: tilecast::api.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tilecast {

/// One level of links inside a node, innermost first.
struct ClusterLink {
  std::string kind;
  std::string fabric;                        ///< "switch", "mesh" or "bus"
  int64_t gpus = 0;                          ///< that it joins
  double bytes_per_s = 0;                    ///< of one GPU, in one direction
  std::optional<double> shared_bytes_per_s;  ///< of all transfers together
  double latency_s = 0;
  bool reduces = false;  ///< the switch sums
};

struct ClusterNetwork {
  std::string kind;
  int64_t nics_per_node = 0;
  double bytes_per_s = 0;  ///< of one NIC, in one direction
  double latency_s = 0;
  double oversubscription = 1;
};

struct ClusterEntry {
  std::string id;
  std::string name;
  std::vector<std::string> aliases;
  std::string gpu;  ///< id of the device
  int64_t gpus_per_node = 0;
  int64_t nodes = 1;
  std::vector<ClusterLink> links;
  std::optional<ClusterNetwork> network;
};

/// All bundled clusters, sorted by id.
std::vector<ClusterEntry> cluster_catalog();

/// Request for a single collective.
struct CollectiveQuery {
  std::string kind;     ///< one of collective_kinds()
  std::string cluster;  ///< id, alias or file
  int64_t nodes = 0;    ///< of the cluster; 0: as many as the ranks take
  int64_t ranks = 0;
  int64_t ranks_per_node = 0;  ///< 0: as many as a node has GPUs
  int64_t concurrent = 1;      ///< groups that share each node's links
  int64_t bytes = 0;           ///< of the whole buffer, as NCCL's tests count
  std::string dtype = "bf16";
  std::string software = "pytorch";
};

struct CollectiveForecast {
  std::string kind, cluster, cluster_name, dtype;
  int64_t ranks = 0, ranks_per_node = 0, nodes = 0, bytes = 0;
  double latency_s = 0;  ///< the time
  double low_s = 0;      ///< 80 % interval
  double high_s = 0;
  std::string_view algorithm;
  double start_s = 0;        ///< start-up and steps: what more bandwidth does not shorten
  double transfer_s = 0;     ///< the bytes at what the links reach of their rate
  double link_bytes = 0;     ///< that one rank sends inside its node
  double network_bytes = 0;  ///< that a node's ranks of the group send to other nodes
  /// As `nccl-tests` define it: comparable with the rate of the links.
  double bus_bytes_per_s = 0;
  bool extrapolated = false;
};

std::vector<std::string> collective_kinds();

/// Throws Error{kNotFound} for an unknown cluster or kind, Error{kInput} for ranks that the cluster
/// does not hold.
CollectiveForecast forecast_collective(const CollectiveQuery& query);

}  // namespace tilecast
