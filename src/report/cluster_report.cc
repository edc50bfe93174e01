// The output of 'tilecast clusters' and 'tilecast collective'.

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "report/kernel_text.h"
#include "report/text_table.h"
#include "tilecast/view.h"

namespace tilecast {
namespace {

/// "nvlink 450 GB/s to 8": the rate of one GPU in one direction.
std::string link_text(const ClusterLink& link) {
  const double rate = link.shared_bytes_per_s.value_or(link.bytes_per_s);
  return fmt::format("{} {}{} to {}", link.kind, format_si(rate, "B/s"),
                     link.shared_bytes_per_s ? " bus" : "", link.gpus);
}

}  // namespace

std::string clusters_table(const std::vector<ClusterEntry>& clusters, const TableStyle& style) {
  TextTable table;
  table.header = {"id", "GPUs", "links", "network"};
  table.right = {false, true, false, false};
  table.fit = {Fit::kWhole, Fit::kWhole, Fit::kWhole, Fit::kWhole};
  for (const ClusterEntry& c : clusters) {
    table.rows.push_back(
        {c.id, std::to_string(c.gpus_per_node), c.links.empty() ? "-" : link_text(c.links.front()),
         c.network ? fmt::format("{} x {} {}", c.network->nics_per_node,
                                 format_si(c.network->bytes_per_s, "B/s"), c.network->kind)
                   : "-"});
    for (size_t i = 1; i < c.links.size(); ++i)
      table.rows.push_back({"", "", link_text(c.links[i]), ""});
  }
  return format_text_table(table, style) + "\n" +
         wrapped(
             "GPUs of a node; the links inside it, with the rate of one GPU in one direction (a "
             "bus: of all together) and the GPUs that they join; its network cards. --format json "
             "has devices, latencies and aliases.",
             style);
}

std::string collective_table(const CollectiveForecast& f, const TableStyle& style) {
  const std::string places =
      f.nodes > 1 ? fmt::format("{} on {} nodes of {}", f.ranks, f.nodes, f.cluster_name)
                  : fmt::format("{} on {}", f.ranks, f.cluster_name);
  std::string out =
      title_lines(fmt::format("{} of {} {}, ranks: {}", f.kind,
                              format_si(static_cast<double>(f.bytes), "B"), f.dtype, places),
                  style);
  TextTable table;
  table.rows = {{"time", format_seconds(f.latency_s),
                 fmt::format("80 % interval {}{}", span_text(f.latency_s),
                             f.extrapolated ? "; extrapolated" : "")},
                {"  start", format_seconds(f.start_s), "and steps; does not depend on the bytes"},
                {"  transfer", format_seconds(f.transfer_s), "of the bytes"},
                {"algorithm", std::string(f.algorithm), ""},
                {"bus", format_si(f.bus_bytes_per_s, "B/s"), "as nccl-tests define it"},
                {"sent", format_si(f.link_bytes, "B"), "by each rank inside its node"},
                {"", format_si(f.network_bytes, "B"), "by each node to others"}};
  if (f.nodes == 1) table.rows.pop_back();
  table.fit = {Fit::kWhole, Fit::kWhole, Fit::kWrap};
  return out + "\n" + format_text_table(table, style, 2);
}

}  // namespace tilecast
