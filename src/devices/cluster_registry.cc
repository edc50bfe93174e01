#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "base/embedded.h"
#include "base/file.h"
#include "base/text.h"
#include "devices/cluster.h"
#include "tilecast/error.h"

namespace tilecast {
namespace {

/// The bundled files are about 3 kB each.
constexpr uint64_t kMaxClusterBytes = uint64_t{1} << 20;

constexpr int64_t kGuessedGpus = 8;  // the most common number in a server

/// Means of the measured nodes, whose starts are 4.2 to 8 us and whose steps take 0.8 to 1.4 us
/// (512-byte all-reduces of aiconfigurator's nccl table). Infinity Fabric joins each pair of GPUs
/// by links of their own (data sheets of MI100 to MI355X).
LinkLevel guessed_level(const Link& link, int64_t gpus) {
  return {.kind = link.kind,
          .fabric = link.kind == "infinity-fabric" ? Fabric::kMesh : Fabric::kSwitch,
          .gpus = gpus,
          .bytes_per_s = link.bytes_per_s,
          .start_s = 5.5e-6,
          .latency_s = 1e-6,
          .guessed = true};
}

/// Levels of PCIe from more than `joined` GPUs on, at this link's rate: the levels of the only node
/// without NVLink that was measured. Other servers may be better, but then so may servers with
/// L40S: equal cards are compared on equal nodes.
std::vector<LinkLevel> pcie_levels(const Link& pcie, int64_t joined) {
  // Looked up once: each collective on a device without a cluster asks for its node.
  static const Cluster measured = find_cluster("l40s-pcie");
  const double scale = pcie.bytes_per_s / measured.levels.front().bytes_per_s;
  std::vector<LinkLevel> levels;
  for (LinkLevel level : measured.levels) {
    if (level.gpus <= joined) continue;
    level.bytes_per_s *= scale;
    if (level.shared_bytes_per_s) *level.shared_bytes_per_s *= scale;
    level.guessed = true;
    levels.push_back(std::move(level));
  }
  return levels;
}

/// The fastest link joins all GPUs of the node, unless the data sheet says that it is a bridge or
/// it is PCIe: then more GPUs reach each other through PCIe only.
Cluster guessed_node(const Device& device) {
  if (device.links.empty())
    throw Error(ErrorKind::kUnsupported,
                fmt::format("{}: the device file names no links; several ranks cannot be forecast",
                            device.id));
  const Link& fastest =
      *std::max_element(device.links.begin(), device.links.end(),
                        [](const Link& a, const Link& b) { return a.bytes_per_s < b.bytes_per_s; });
  Cluster node{.id = device.id + "-node", .name = "8 x " + device.name, .device = device};
  node.gpus_per_node = kGuessedGpus;
  const auto pcie = std::find_if(device.links.begin(), device.links.end(),
                                 [](const Link& link) { return link.kind == "pcie"; });
  const bool bridge = fastest.gpus > 1 && fastest.gpus < kGuessedGpus;
  if (pcie == device.links.end() || (!bridge && &*pcie != &fastest)) {
    node.levels = {guessed_level(fastest, kGuessedGpus)};
    return node;
  }
  if (bridge) node.levels = {guessed_level(fastest, fastest.gpus)};
  for (LinkLevel& level : pcie_levels(*pcie, bridge ? fastest.gpus : 1))
    node.levels.push_back(std::move(level));
  return node;
}

}  // namespace

const std::vector<Cluster>& bundled_clusters() {
  static const std::vector<Cluster> clusters = [] {
    std::vector<Cluster> all;
    for (const EmbeddedFile& file : embedded_files("clusters/"))
      all.push_back(parse_cluster(file.content, std::string(file.path)));
    return all;
  }();
  return clusters;
}

bool is_named(const Cluster& cluster, std::string_view name) {
  const std::string wanted = normalized_name(name);
  const auto same = [&](const std::string& other) { return normalized_name(other) == wanted; };
  return same(cluster.id) || same(cluster.name) ||
         std::any_of(cluster.aliases.begin(), cluster.aliases.end(), same);
}

Cluster find_cluster(const std::string& name_or_path) {
  if (is_path(name_or_path))
    return parse_cluster(read_file(name_or_path, kMaxClusterBytes), printable(name_or_path),
                         std::filesystem::path(name_or_path).parent_path());
  std::vector<std::string> names;
  for (const Cluster& cluster : bundled_clusters()) {
    if (is_named(cluster, name_or_path)) return cluster;
    names.push_back(cluster.id);
    names.insert(names.end(), cluster.aliases.begin(), cluster.aliases.end());
  }
  throw Error(ErrorKind::kNotFound,
              fmt::format("unknown cluster '{}'{}; 'tilecast clusters' lists all, or give the path "
                          "of a cluster file (.json)",
                          shown_name(name_or_path), did_you_mean(name_or_path, names)));
}

Cluster node_of(const Device& device) {
  const Cluster* largest = nullptr;
  for (const Cluster& cluster : bundled_clusters()) {
    if (cluster.device.id == device.id &&
        (largest == nullptr || cluster.gpus_per_node > largest->gpus_per_node))
      largest = &cluster;
  }
  if (largest == nullptr) return guessed_node(device);
  Cluster node = with_nodes(*largest, 1);
  // The links at the rates of this device, should its file be another one.
  for (LinkLevel& level : node.levels) {
    for (size_t i = 0; i < device.links.size() && i < node.device.links.size(); ++i) {
      const Link& ours = device.links[i];
      const Link& theirs = node.device.links[i];
      if (ours.kind == level.kind && theirs.kind == level.kind)
        level.bytes_per_s *= ours.bytes_per_s / theirs.bytes_per_s;
    }
  }
  node.device = device;
  return node;
}

}  // namespace tilecast
