#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <optional>

#include "base/text.h"
#include "measurements/layouts.h"
#include "software/software.h"

// Measured collectives: the tables nccl and custom_allreduce of aiconfigurator (one node, CUDA
// graphs), the networks of Vidur and PipeWeave (launched by the host, mean or median of a few).

namespace tilecast {
namespace {

std::optional<CollectiveKind> find_kind(const std::string& name) {
  const auto words = choice_words(CollectiveKind{});
  const auto it = std::find(words.begin(), words.end(), name == "alltoall" ? "all_to_all" : name);
  if (it == words.end()) return std::nullopt;
  return static_cast<CollectiveKind>(it - words.begin());
}

std::optional<DType> element_type(const std::string& name) {
  return find_dtype(name == "half" ? "fp16" : name == "bfloat16" ? "bf16" : name);
}

void read_nccl(const CsvTable& table, Collector& collector) {
  const auto column = [&](std::string_view name) { return table.require_column(name); };
  const size_t gpu = column("gpu"), dtype = column("dtype"), kind = column("collective");
  const size_t ranks = column("num_gpus"), elements = column("elements");
  const size_t latency = column("latency_ms");
  for (size_t r = 0; r < table.rows.size(); ++r) {
    const std::vector<std::string>& row = table.rows[r];
    const auto known = find_kind(row[kind]);
    const auto type = element_type(row[dtype]);
    if (!known || !type) {
      collector.skip(table.where, fmt::format("collective '{}' of dtype '{}' is not forecast",
                                              shown_name(row[kind]), shown_name(row[dtype])));
      continue;
    }
    const int64_t n = table.integer(r, ranks);
    collector.add_collective(table, {.gpu = row[gpu],
                                     .kind = *known,
                                     .bytes = table.integer(r, elements) * dtype_bits(*type) / 8,
                                     .dtype = *type,
                                     .group = {.ranks = n, .ranks_per_node = n},
                                     .measured_s = table.number(r, latency) * 1e-3});
  }
}

/// Most rows are there twice: replayed in a CUDA graph, and launched by the host (40 us and more at
/// any small size). Nothing but the time tells them apart; the faster is the kernel's.
void read_serving_all_reduce(const CsvTable& table, Collector& collector) {
  const auto column = [&](std::string_view name) { return table.require_column(name); };
  const size_t gpu = column("gpu"), software = column("software"), dtype = column("dtype");
  const size_t ranks = column("num_gpus"), elements = column("elements");
  const size_t latency = column("latency_ms");
  std::map<std::vector<std::string>, CollectiveMeasurement> fastest;
  for (size_t r = 0; r < table.rows.size(); ++r) {
    const std::vector<std::string>& row = table.rows[r];
    const auto known = find_software(row[software].substr(0, row[software].find(' ')));
    const auto type = element_type(row[dtype]);
    if (!known || !type) {
      collector.skip(table.where, fmt::format("software '{}' or dtype '{}' is not forecast",
                                              shown_name(row[software]), shown_name(row[dtype])));
      continue;
    }
    const int64_t n = table.integer(r, ranks);
    const CollectiveMeasurement measured = {
        .gpu = row[gpu],
        .bytes = table.integer(r, elements) * dtype_bits(*type) / 8,
        .dtype = *type,
        .group = {.ranks = n, .ranks_per_node = n},
        .software = *known,
        .measured_s = table.number(r, latency) * 1e-3};
    const auto [it, first] = fastest.try_emplace(
        {row[gpu], row[software], row[dtype], row[ranks], row[elements]}, measured);
    if (first) continue;
    collector.skip(table.where, "launched by the host: the same collective was also replayed");
    if (measured.measured_s < it->second.measured_s) it->second = measured;
  }
  for (const auto& [key, measured] : fastest) collector.add_collective(table, measured);
}

void read_pipeweave_collectives(const CsvTable& table, Collector& collector) {
  const auto column = [&](std::string_view name) { return table.require_column(name); };
  const size_t gpu = column("gpu"), kind = column("collective"), ranks = column("ranks");
  const size_t bytes = column("bytes"), latency = column("latency_s");
  for (size_t r = 0; r < table.rows.size(); ++r) {
    const auto known = find_kind(table.rows[r][kind]);
    if (!known) {
      collector.skip(table.where, fmt::format("collective '{}' is not forecast",
                                              shown_name(table.rows[r][kind])));
      continue;
    }
    const int64_t n = table.integer(r, ranks);
    collector.add_collective(table, {.gpu = table.rows[r][gpu],
                                     .kind = *known,
                                     .bytes = table.integer(r, bytes),
                                     .dtype = DType::kFp16,
                                     .group = {.ranks = n, .ranks_per_node = n},
                                     .host_paced = true,
                                     .measured_s = table.number(r, latency)});
  }
}

/// The bundled clusters that are like Vidur's nodes. Its A100 nodes state no network: one flow
/// between them gets 8 GB/s, as from a NIC of 100 Gb/s.
const std::map<std::string, std::string, std::less<>>& vidur_nodes() {
  static const std::map<std::string, std::string, std::less<>> kNodes = {
      {"a100_dgx", "p4d"}, {"h100_dgx", "dgx-h100"}, {"a100_pairwise_nvlink", "a100-pcie-4"}};
  return kNodes;
}

void read_vidur_collectives(const CsvTable& table, Collector& collector) {
  const std::string node = std::filesystem::path(table.where).parent_path().filename().string();
  const auto cluster = vidur_nodes().find(node);
  if (cluster == vidur_nodes().end())
    return collector.skip(table.where, "the folder is not a node of a bundled cluster");
  const auto column = [&](std::string_view name) { return table.require_column(name); };
  const size_t kind = column("collective"), ranks = column("num_workers"), bytes = column("size");
  const size_t inside = column("devices_per_node");
  for (size_t r = 0; r < table.rows.size(); ++r) {
    const std::string& name = table.rows[r][kind];
    const auto known = find_kind(name);
    const int64_t n = table.integer(r, ranks), near = table.integer(r, inside);
    if (!known || near < 1 || near > n) {
      collector.skip(table.where, fmt::format("'{}' of {} ranks, {} a node, is not forecast",
                                              shown_name(name), n, near));
      continue;
    }
    // The two folders of pairs hold the same file of send_recv, so one of them was not measured.
    if (node.ends_with("pairwise_nvlink") && *known == CollectiveKind::kSendRecv) {
      collector.skip(table.where, "the same rows are in the folder of another GPU");
      continue;
    }
    collector.add_collective(
        table, {.gpu = node.substr(0, 4),
                .cluster = cluster->second,
                .kind = *known,
                .bytes = table.integer(r, bytes),
                .dtype = DType::kFp16,
                .group = {.ranks = n, .ranks_per_node = near},
                .host_paced = true,
                .measured_s = table.number(r, column("time_stats." + name + ".median")) * 1e-3});
  }
}

}  // namespace

extern const LayoutDef kNcclLayout = {
    "nccl", {"gpu", "dtype", "collective", "num_gpus", "elements", "latency_ms"}, read_nccl};
extern const LayoutDef kServingAllReduceLayout = {
    "custom_allreduce",
    {"gpu", "software", "dtype", "num_gpus", "elements", "latency_ms"},
    read_serving_all_reduce};
extern const LayoutDef kPipeWeaveCollectivesLayout = {
    "pipeweave_collectives",
    {"gpu", "collective", "ranks", "bytes", "latency_s"},
    read_pipeweave_collectives};
extern const LayoutDef kVidurNetworkLayout = {
    "vidur_network",
    {"collective", "num_workers", "size", "devices_per_node"},
    read_vidur_collectives};

}  // namespace tilecast
