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

  template <typename Fields>
  static void fields(Fields& field) {
    field.is("ClusterLink", "One level of links inside a node.");
    field("kind", "", "nvlink, pcie, …", &ClusterLink::kind);
    field("fabric", "", "how they join the GPUs", &ClusterLink::fabric, {"switch", "mesh", "bus"});
    field("gpus", "", "that the level joins", &ClusterLink::gpus);
    field("bytes_per_s", "bytes/s", "of one GPU, in one direction", &ClusterLink::bytes_per_s);
    field.if_set("shared_bytes_per_s", "bytes/s", "of all transfers of a bus together",
                 &ClusterLink::shared_bytes_per_s);
    field("latency_s", "s", "one step of a collective, smallest message", &ClusterLink::latency_s);
    field("reduces", "", "the switch sums", &ClusterLink::reduces);
  }
};

struct ClusterNetwork {
  std::string kind;
  int64_t nics_per_node = 0;
  double bytes_per_s = 0;  ///< of one NIC, in one direction
  double latency_s = 0;
  double oversubscription = 1;

  template <typename Fields>
  static void fields(Fields& field) {
    field.is("ClusterNetwork", "The network between nodes.");
    field("kind", "", "infiniband, …", &ClusterNetwork::kind);
    field("nics_per_node", "", "network cards of a node", &ClusterNetwork::nics_per_node);
    field("bytes_per_s", "bytes/s", "of one NIC, in one direction", &ClusterNetwork::bytes_per_s);
    field("latency_s", "s", "one step of a collective, smallest message",
          &ClusterNetwork::latency_s);
    field("oversubscription", "", "rate of the NICs over what the network carries",
          &ClusterNetwork::oversubscription);
  }
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

  template <typename Fields>
  static void fields(Fields& field) {
    field.is("ClusterEntry", "A bundled cluster.");
    field("id", "", "name for --cluster", &ClusterEntry::id);
    field("name", "", "the product name", &ClusterEntry::name);
    field("aliases", "", "other names", &ClusterEntry::aliases);
    field("gpu", "", "id of the GPU", &ClusterEntry::gpu);
    field("gpus_per_node", "", "GPUs of a node", &ClusterEntry::gpus_per_node);
    field("nodes", "", "default", &ClusterEntry::nodes);
    field("links", "", "inside a node, innermost first", &ClusterEntry::links);
    field("network", "", "between nodes", &ClusterEntry::network);
  }
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

  template <typename Fields>
  static void fields(Fields& field) {
    field.is("Collective", "The time of one collective.");
    field("collective", "", "what it does", &CollectiveForecast::kind);
    field("cluster", "", "id of the cluster", &CollectiveForecast::cluster);
    field("dtype", "", "of the elements", &CollectiveForecast::dtype);
    field("ranks", "", "GPUs that take part", &CollectiveForecast::ranks);
    field("ranks_per_node", "", "of these on each node", &CollectiveForecast::ranks_per_node);
    field("nodes", "", "that take part", &CollectiveForecast::nodes);
    field("bytes", "bytes", "of the whole buffer", &CollectiveForecast::bytes);
    field("latency_s", "s", "the time", &CollectiveForecast::latency_s);
    field("low_s", "s", "80 % interval", &CollectiveForecast::low_s);
    field("high_s", "s", "80 % interval", &CollectiveForecast::high_s);
    field("algorithm", "", "of the library", &CollectiveForecast::algorithm);
    field("start_s", "s", "start-up and steps", &CollectiveForecast::start_s);
    field("transfer_s", "s", "the bytes, at what the links reach of their rate",
          &CollectiveForecast::transfer_s);
    field("bus_bytes_per_s", "bytes/s", "as nccl-tests define it",
          &CollectiveForecast::bus_bytes_per_s);
    field("link_bytes", "bytes", "that one rank sends inside its node",
          &CollectiveForecast::link_bytes);
    field("network_bytes", "bytes", "that a node's ranks of the group send to other nodes",
          &CollectiveForecast::network_bytes);
    field("extrapolated", "", "outside the training range", &CollectiveForecast::extrapolated);
  }
};

std::vector<std::string> collective_kinds();

/// Throws Error{kNotFound} for an unknown cluster or kind, Error{kInput} for ranks that the cluster
/// does not hold.
CollectiveForecast forecast_collective(const CollectiveQuery& query);

}  // namespace tilecast
