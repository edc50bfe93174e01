#include "devices/cluster.h"

#include <algorithm>
#include <filesystem>

#include "base/file.h"
#include "devices/registry.h"
#include "devices/sourced.h"
#include "tilecast/error.h"

namespace tilecast {
namespace {

/// More than any fabric was built for; keeps products of sizes within 64 bits.
constexpr int64_t kMostNodes = 1 << 20;

/// The rate of the device's link of this kind.
double device_rate(const JsonObject& entry, const Device& device, const std::string& kind) {
  for (const Link& link : device.links) {
    if (link.kind == kind) return link.bytes_per_s;
  }
  std::vector<std::string> kinds;
  for (const Link& link : device.links) kinds.push_back(link.kind);
  entry.fail("bytes_per_s",
             fmt::format("is missing, and {} has no {} link to take it from (its links: {})",
                         device.id, shown_name(kind), kinds.empty() ? "none" : join(kinds, ", ")));
}

LinkLevel read_level(const JsonObject& entry, const Device& device) {
  entry.reject_unknown({"kind", "generation", "fabric", "gpus", "bytes_per_s", "shared_bytes_per_s",
                        "start_s", "latency_s", "reduces"});
  LinkLevel level;
  level.kind = name_under(entry, "kind");
  level.fabric = sourced_word<Fabric>(entry, "fabric");
  level.gpus = sourced_integer(entry, "gpus", "1");
  level.bytes_per_s = entry.has("bytes_per_s")
                          ? sourced_number(entry, "bytes_per_s", "B/s", "link_bytes_per_s")
                          : device_rate(entry, device, level.kind);
  if (entry.has("shared_bytes_per_s")) {
    if (level.fabric != Fabric::kBus)
      entry.fail("shared_bytes_per_s", "only a level with the fabric \"bus\" has it");
    level.shared_bytes_per_s =
        sourced_number(entry, "shared_bytes_per_s", "B/s", "link_bytes_per_s");
  }
  level.start_s = sourced_number(entry, "start_s", "s", "latency_s");
  level.latency_s = sourced_number(entry, "latency_s", "s");
  if (entry.has("generation")) level.generation = sourced_integer(entry, "generation", "1");
  if (entry.has("reduces")) level.reduces = sourced_boolean(entry, "reduces");
  return level;
}

std::vector<LinkLevel> read_levels(const JsonObject& file, const Cluster& cluster) {
  std::vector<LinkLevel> levels;
  const Json& list = file.json()["links"];
  if (!list.is_array()) file.fail("links", "expected a list");
  for (size_t i = 0; i < list.size(); ++i) {
    const JsonObject entry(list[i], fmt::format("{}: links[{}]", file.where(), i));
    levels.push_back(read_level(entry, cluster.device));
    if (i > 0 && levels[i].gpus <= levels[i - 1].gpus)
      entry.fail("gpus", fmt::format("expected more than the {} of the level before it, found {}",
                                     levels[i - 1].gpus, levels[i].gpus));
  }
  const int64_t reached = levels.empty() ? 1 : levels.back().gpus;
  if (reached < cluster.gpus_per_node)
    file.fail("links", fmt::format("rank {} of a node cannot be reached: the links join {} GPUs, "
                                   "gpus_per_node is {}; add the level that joins all of them",
                                   reached, reached, cluster.gpus_per_node));
  if (reached > cluster.gpus_per_node)
    file.fail("links", fmt::format("the links join {} GPUs, but gpus_per_node is {}", reached,
                                   cluster.gpus_per_node));
  return levels;
}

Network read_network(const JsonObject& entry) {
  entry.reject_unknown({"kind", "nics_per_node", "bytes_per_s", "latency_s", "oversubscription",
                        "nodes_per_leaf", "rails"});
  Network network;
  network.kind = name_under(entry, "kind");
  network.nics_per_node = sourced_integer(entry, "nics_per_node", "1");
  network.bytes_per_s = sourced_number(entry, "bytes_per_s", "B/s", "link_bytes_per_s");
  network.latency_s = sourced_number(entry, "latency_s", "s");
  if (entry.has("oversubscription"))
    network.oversubscription = sourced_number(entry, "oversubscription", "1");
  if (entry.has("nodes_per_leaf"))
    network.nodes_per_leaf = sourced_integer(entry, "nodes_per_leaf", "1");
  if (entry.has("rails")) network.rails = sourced_boolean(entry, "rails");
  return network;
}

}  // namespace

namespace {

/// The device that a file names: an id or alias, or a path, which is relative to the file's folder.
std::string device_named(const std::string& name, const std::filesystem::path& folder) {
  return is_path(name) ? (folder / name).string() : name;
}

}  // namespace

Cluster parse_cluster(std::string_view json_text, const std::string& where,
                      const std::filesystem::path& folder) {
  const Json json = parse_json(json_text, where);
  const JsonObject file(json, where);
  file.reject_unknown({"schema_version", "id", "name", "aliases", "notes", "device", "nodes",
                       "gpus_per_node", "links", "network", "server_w", "pue"});
  file.integer({"schema_version"}, 1, 1);
  Cluster cluster;
  cluster.id = name_under(file, "id");
  cluster.name = name_under(file, "name");
  if (file.has("aliases")) cluster.aliases = file.strings("aliases");
  for (const std::string& alias : cluster.aliases) check_name(file, "aliases", alias);
  try {
    cluster.device = find_device(device_named(file.string("device"), folder));
  } catch (const Error& error) {
    throw Error(error.kind(), where + ": device: " + error.what());
  }
  cluster.gpus_per_node = sourced_integer(file, "gpus_per_node", "1");
  if (file.has("links"))
    cluster.levels = read_levels(file, cluster);
  else if (cluster.gpus_per_node > 1)
    file.fail("links", fmt::format("is missing: rank 1 of a node of {} GPUs cannot be reached",
                                   cluster.gpus_per_node));
  if (file.has("network")) cluster.network = read_network(file.object("network"));
  if (file.has("server_w")) cluster.server_w = sourced_number(file, "server_w", "W");
  if (file.has("pue")) cluster.pue = sourced_number(file, "pue", "1");
  const int64_t nodes = file.optional_integer({"nodes"}, 1, kMostNodes).value_or(1);
  try {
    return with_nodes(cluster, nodes);
  } catch (const Error& error) {
    throw Error(error.kind(), where + ": " + error.what());
  }
}

Cluster with_gpus_per_node(const Cluster& cluster, int64_t gpus) {
  Cluster result = cluster;
  if (result.network)
    result.network->nics_per_node =
        std::max<int64_t>(1, result.network->nics_per_node * gpus / cluster.gpus_per_node);
  for (LinkLevel& level : result.levels) level.gpus = std::min(level.gpus, gpus);
  result.gpus_per_node = gpus;
  return result;
}

Cluster with_nodes(const Cluster& cluster, int64_t nodes) {
  if (nodes < 1 || nodes > kMostNodes)
    throw Error(ErrorKind::kInput,
                fmt::format("{}: expected 1 to {} nodes, found {}", cluster.id, kMostNodes, nodes));
  if (nodes > 1 && !cluster.network)
    throw Error(ErrorKind::kInput,
                fmt::format("{}: rank {} cannot be reached: {} nodes, but no 'network' joins them; "
                            "describe it in a cluster file",
                            cluster.id, cluster.gpus_per_node, nodes));
  Cluster result = cluster;
  result.nodes = nodes;
  return result;
}

}  // namespace tilecast
