#include "devices/cluster.h"

#include <gtest/gtest.h>

#include <map>

#include "base/embedded.h"
#include "base/json.h"
#include "base/text.h"
#include "devices/registry.h"
#include "tilecast/error.h"

namespace tilecast {
namespace {

Json sample_cluster() {
  for (const EmbeddedFile& file : embedded_files("clusters/dgx-h100"))
    return parse_json(file.content, "sample");
  ADD_FAILURE() << "dgx-h100 is not bundled";
  return {};
}

std::string cluster_error(const Json& json) {
  try {
    parse_cluster(json.dump(), "mine.json");
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(EveryCluster, HasItsIdAsFileNameAndNamesOfItsOwn) {
  std::map<std::string, std::string> owners;
  for (const EmbeddedFile& file : embedded_files("clusters/")) {
    const Cluster c = parse_cluster(file.content, std::string(file.path));
    EXPECT_EQ("clusters/" + c.id + ".json", file.path);
    std::vector<std::string> names = c.aliases;
    names.push_back(c.id);
    for (const std::string& name : names) {
      const auto [it, fresh] = owners.emplace(normalized_name(name), c.id);
      EXPECT_TRUE(fresh || it->second == c.id) << name << ": " << it->second << " and " << c.id;
      EXPECT_EQ(find_cluster(name).id, c.id);
    }
    EXPECT_EQ(c.levels.back().gpus, c.gpus_per_node) << c.id;
  }
  EXPECT_GE(owners.size(), 12u);
}

TEST(EveryCluster, LinksOfSwitchesRunAtTheRateOfTheDevice) {
  for (const Cluster& c : bundled_clusters()) {
    for (const LinkLevel& level : c.levels) {
      if (level.fabric != Fabric::kSwitch) continue;
      for (const Link& link : c.device.links) {
        if (link.kind == level.kind) {
          EXPECT_EQ(level.bytes_per_s, link.bytes_per_s) << c.id;
        }
      }
    }
  }
}

TEST(ClusterFile, AnUnreachableRankIsNamed) {
  Json json = sample_cluster();
  json["gpus_per_node"]["value"] = 16;
  EXPECT_EQ(cluster_error(json),
            "mine.json: 'links': rank 8 of a node cannot be reached: the links join 8 GPUs, "
            "gpus_per_node is 16; add the level that joins all of them");
  json = sample_cluster();
  json.erase("network");
  json["nodes"] = 2;
  EXPECT_EQ(cluster_error(json),
            "mine.json: dgx-h100: rank 8 cannot be reached: 2 nodes, but no 'network' joins them; "
            "describe it in a cluster file");
  json = sample_cluster();
  json.erase("links");
  EXPECT_NE(cluster_error(json).find("rank 1 of a node of 8 GPUs cannot be reached"),
            std::string::npos);
}

TEST(ClusterFile, ALinkWithoutBandwidthIsRefused) {
  Json json = sample_cluster();
  json["links"][0]["bytes_per_s"] = {{"value", 0}, {"unit", "B/s"}, {"source", "test"}};
  EXPECT_EQ(
      cluster_error(json),
      "mine.json: links[0]: bytes_per_s: 'value': expected a number above 0 and at most 1e19, "
      "found 0");
  json = sample_cluster();
  json["network"]["bytes_per_s"]["value"] = 0;
  EXPECT_NE(cluster_error(json).find("expected a number above 0"), std::string::npos);
  json = sample_cluster();
  json["links"][0]["kind"] = "carrier-pigeon";
  EXPECT_NE(cluster_error(json).find("has no carrier-pigeon link to take it from"),
            std::string::npos);
}

TEST(ClusterFile, EachNumberNeedsASourceAndEachFieldAMeaning) {
  Json json = sample_cluster();
  json["network"]["latency_s"]["source"] = "";
  EXPECT_NE(cluster_error(json).find("source"), std::string::npos);
  json = sample_cluster();
  json["colour"] = "green";
  EXPECT_NE(cluster_error(json).find("colour"), std::string::npos);
  json = sample_cluster();
  json["device"] = "nvidia-h1000";
  EXPECT_NE(cluster_error(json).find("mine.json: device: unknown GPU 'nvidia-h1000'"),
            std::string::npos);
}

TEST(FindCluster, AnUnknownNameGetsTheNearest) {
  try {
    find_cluster("dgx-h10");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kNotFound);
    EXPECT_NE(std::string(error.what()).find("did you mean 'dgx-h100'"), std::string::npos)
        << error.what();
  }
}

/// HGX boards of one generation stand in the same networks.
TEST(FindCluster, HopperBoardsHaveTheNetworkOfDgxH100) {
  const Network dgx = *find_cluster("dgx-h100").network;
  for (const char* name : {"hgx-h200", "hgx-h800", "hgx-h20"}) {
    const Network board = *find_cluster(name).network;
    EXPECT_EQ(board.rails, dgx.rails) << name;
    EXPECT_EQ(board.nodes_per_leaf, dgx.nodes_per_leaf) << name;
    EXPECT_EQ(board.nics_per_node, dgx.nics_per_node) << name;
  }
}

TEST(NodeOf, TakesTheBundledNodeOrGuessesOne) {
  EXPECT_EQ(node_of(find_device("H100")).id, "dgx-h100");
  EXPECT_EQ(node_of(find_device("nvidia-a100-sxm4-40gb")).gpus_per_node, 8)
      << "the larger of two clusters";
  const Cluster guess = node_of(find_device("V100-SXM2"));
  EXPECT_EQ(guess.gpus_per_node, 8);
  EXPECT_EQ(guess.levels.front().kind, "nvlink");
  Device slower = find_device("H100");
  slower.links.front().bytes_per_s /= 2;
  EXPECT_EQ(node_of(slower).levels.front().bytes_per_s, slower.links.front().bytes_per_s);
  slower.links.clear();
  slower.id = "mine";
  EXPECT_THROW(node_of(slower), Error);
}

TEST(NodeOf, ADeviceWithoutAClusterIsGuessedFromItsLinks) {
  Device device = find_device("RTX 4090");  // PCIe 4.0 alone
  EXPECT_EQ(node_of(device).levels.back().fabric, Fabric::kBus);
  // As the server with L40S, which has the same PCIe; only its own links were measured.
  std::vector<LinkLevel> l40s = find_cluster("l40s-pcie").levels;
  for (LinkLevel& level : l40s) level.guessed = true;
  EXPECT_EQ(node_of(device).levels, l40s);
  device.links = {{.kind = "pcie", .bytes_per_s = 2 * l40s[0].bytes_per_s}};
  EXPECT_EQ(*node_of(device).levels.back().shared_bytes_per_s, 2 * *l40s.back().shared_bytes_per_s);
  // A bridge joins a pair; others reach each other through PCIe.
  const Cluster pairs = node_of(find_device("A40"));
  ASSERT_EQ(pairs.levels.size(), 3u);
  for (const char* gpu :
       {"A30", "RTX A6000", "3090", "A100-PCIe-40GB", "A100-PCIe-80GB", "H100-PCIe", "H100-NVL"}) {
    EXPECT_EQ(node_of(find_device(gpu)).levels[0].kind, "nvlink") << gpu;
    EXPECT_EQ(node_of(find_device(gpu)).levels[0].gpus, 2) << gpu;
    EXPECT_EQ(find_device(gpu).links[0].gpus, 2) << gpu;
  }
  EXPECT_EQ(pairs.levels[0].kind, "nvlink");
  EXPECT_EQ(pairs.levels[0].gpus, 2);
  EXPECT_EQ(pairs.levels[1].kind, "pcie");
  EXPECT_EQ(pairs.levels[2].gpus, pairs.gpus_per_node);
  // Infinity Fabric: a link of its own to each other GPU.
  const Cluster hive = node_of(find_device("MI100"));
  EXPECT_EQ(hive.levels[0].fabric, Fabric::kMesh);
  EXPECT_EQ(hive.levels[0].gpus, 4);
  // Links that the data sheet joins to no fewer GPUs join all.
  const Cluster cube = node_of(find_device("V100-SXM2"));
  ASSERT_EQ(cube.levels.size(), 1u);
  EXPECT_GT(cube.levels[0].start_s, 0);
}

TEST(NodeOf, AnAcceleratorOfTheSameLinksHasTheSameNode) {
  // MI325X had one of its seven links: tensor parallelism was 2.3 times slower than on MI300X.
  EXPECT_EQ(node_of(find_device("MI325X")).levels, node_of(find_device("MI300X")).levels);
  EXPECT_GT(node_of(find_device("MI355X")).levels[0].bytes_per_s,
            node_of(find_device("MI300X")).levels[0].bytes_per_s);
}

}  // namespace
}  // namespace tilecast
