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

/// One level that joins 8 GPUs, the most common number in a server, by the fastest link. Its
/// latency: 1 us, between the measured 0.8 us of H100's NVLink and 1.4 us of B200's and of PCIe
/// (512-byte all-reduces of aiconfigurator's nccl table).
Cluster guessed_node(const Device& device) {
  if (device.links.empty())
    throw Error(ErrorKind::kUnsupported,
                fmt::format("{}: the device file names no links; several ranks cannot be forecast",
                            device.id));
  const Link& fastest =
      *std::max_element(device.links.begin(), device.links.end(),
                        [](const Link& a, const Link& b) { return a.bytes_per_s < b.bytes_per_s; });
  Cluster node;
  node.id = device.id + "-node";
  node.name = "8 x " + device.name;
  node.device = device;
  node.gpus_per_node = 8;
  node.levels = {
      {.kind = fastest.kind, .gpus = 8, .bytes_per_s = fastest.bytes_per_s, .latency_s = 1e-6}};
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

Cluster find_cluster(const std::string& name_or_path) {
  if (name_or_path.ends_with(".json") || name_or_path.find('/') != std::string::npos)
    return parse_cluster(read_file(name_or_path, kMaxClusterBytes), printable(name_or_path));
  const std::string wanted = normalized_name(name_or_path);
  std::vector<std::string> names;
  for (const Cluster& cluster : bundled_clusters()) {
    std::vector<std::string> own = cluster.aliases;
    own.push_back(cluster.id);
    own.push_back(cluster.name);
    for (const std::string& name : own) {
      if (normalized_name(name) == wanted) return cluster;
    }
    names.insert(names.end(), own.begin(), own.end() - 1);
  }
  throw Error(ErrorKind::kNotFound,
              fmt::format("unknown cluster '{}'{}; 'tilecast clusters' lists all, or give the path "
                          "of a cluster file (.json)",
                          shown_name(name_or_path), did_you_mean(name_or_path, names)));
}

Cluster node_of(const Device& device) {
  for (const Cluster& cluster : bundled_clusters()) {
    if (cluster.device.id != device.id) continue;
    Cluster node = with_nodes(cluster, 1);
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
  return guessed_node(device);
}

}  // namespace tilecast
