#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "devices/device.h"

namespace tilecast {

/// How the GPUs that a level of links joins reach each other.
enum class Fabric : uint8_t {
  kSwitch,  ///< each GPU has a port of its own, at full rate to all others
  kMesh,    ///< each GPU has a link of its own to each other GPU
  kBus,     ///< all transfers share one path, as through PCIe root ports and host memory
};
constexpr auto choice_words(Fabric) {
  return std::array<std::string_view, 3>{"switch", "mesh", "bus"};
}

/// One level of the links inside a node, innermost first: it joins `gpus` GPUs. GPUs that a level
/// further inside joins use that one.
struct LinkLevel {
  std::string kind;  ///< "nvlink", "pcie", "infinity-fabric", …
  Fabric fabric = Fabric::kSwitch;
  int64_t gpus = 0;
  /// Rate of one GPU in one direction, over all its links of this level.
  double bytes_per_s = 0;
  /// kBus only: of all transfers between the GPUs of this level together.
  std::optional<double> shared_bytes_per_s;
  double start_s = 0;  ///< a collective of no steps: what its kernel takes in any case
  /// One step of a collective between neighbours, with a smallest message.
  double latency_s = 0;
  bool reduces = false;  ///< the switch sums (NVLink SHARP)
  /// Generation of the kind of link: NVLink 4, PCIe 5. Chooses the measured curves that apply;
  /// nullopt: the curves of all generations.
  std::optional<int64_t> generation;
  bool guessed = false;  ///< by `node_of`, of a device that no bundled cluster has
  bool operator==(const LinkLevel&) const = default;
};

/// The network between nodes.
struct Network {
  std::string kind;  ///< "infiniband", "ethernet"
  int64_t nics_per_node = 0;
  double bytes_per_s = 0;  ///< of one NIC, in one direction
  double latency_s = 0;    ///< one step of a collective between neighbours, smallest message
  /// How many times faster the NICs below a leaf switch are than its links upward, which traffic
  /// to the nodes of other leaves takes; 1: a full fat tree.
  double oversubscription = 1;
  /// Nodes below one leaf switch; traffic between them is not oversubscribed.
  int64_t nodes_per_leaf = 1;
  /// NIC i of each node is on leaf switch i: ranks with the same place in their nodes are
  /// neighbours.
  bool rails = false;
  bool operator==(const Network&) const = default;
};

/// Equal nodes of equal GPUs, and what joins them. A "node" is the set of GPUs that the links of
/// `levels` join: a rack of GB200 NVL72 is one node of 72. Immutable after reading.
struct Cluster {
  std::string id;
  std::string name;
  std::vector<std::string> aliases;
  Device device;
  int64_t nodes = 1;
  int64_t gpus_per_node = 1;
  std::vector<LinkLevel> levels;  ///< innermost first; the last joins all GPUs of a node
  std::optional<Network> network;
  /// What a node draws beside its GPUs under load: processors, memory, NICs, fans, losses.
  std::optional<double> server_w;
  /// Power usage effectiveness: the energy of the facility over that of its servers.
  std::optional<double> pue;

  int64_t gpus() const { return nodes * gpus_per_node; }
};

/// Reads a cluster file. `where` names it in messages. Throws Error{kInput} for an unknown field, a
/// wrong unit or value, a missing source, or GPUs that no link reaches.
/// `folder`: that of the file, to which the path of a device file is relative.
Cluster parse_cluster(std::string_view json_text, const std::string& where,
                      const std::filesystem::path& folder = {});

/// The cluster with another number of nodes. Throws Error{kInput} for less than one node, and where
/// no network joins several.
Cluster with_nodes(const Cluster& cluster, int64_t nodes);

/// The cluster where only `gpus` GPUs of each node are used, with their share of its NICs.
Cluster with_gpus_per_node(const Cluster& cluster, int64_t gpus);

/// A bundled cluster by id, name or alias (case and punctuation ignored), or the path of a cluster
/// file. Throws Error{kNotFound} with the nearest names, Error{kInput} for a broken file.
/// Whether `name` is the cluster's id, name or an alias; case and punctuation are ignored.
bool is_named(const Cluster& cluster, std::string_view name);

Cluster find_cluster(const std::string& name_or_path);

/// All clusters of data/clusters, sorted by id. Read once, on first use.
const std::vector<Cluster>& bundled_clusters();

/// One node of this device: that of its bundled cluster with the largest nodes, or where there is
/// none, 8 GPUs joined by the fastest link of the data sheet; those that a bridge or PCIe joins
/// reach further ones through PCIe, as in the measured server with L40S. Its rates
/// are the device's. Throws Error{kUnsupported} for a device whose file names no links.
Cluster node_of(const Device& device);

}  // namespace tilecast
