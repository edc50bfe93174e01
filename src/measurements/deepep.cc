#include "measurements/layouts.h"

// Aiconfigurator's tables deepep_normal and deepep_low_latency: DeepEP's dispatch (FP8) and combine
// (BF16) on nodes of 8 GPUs.

namespace tilecast {
namespace {

constexpr int64_t kGpusPerNode = 8;  // the tables state nodes only

struct Columns {
  std::string_view dispatch, combine;          ///< times in us
  std::string_view dispatch_sms, combine_sms;  ///< "": of the low-latency kernels
};

void read(const CsvTable& table, const Columns& names, Collector& collector) {
  const auto column = [&](std::string_view name) { return table.require_column(name); };
  const size_t gpu = column("gpu"), nodes = column("nodes"), hidden = column("hidden_size");
  const size_t tokens = column("num_tokens"), top_k = column("topk");
  const size_t experts = column("num_experts");
  const size_t dispatch = column(names.dispatch), combine = column(names.combine);
  for (size_t r = 0; r < table.rows.size(); ++r) {
    ExpertExchange exchange = {.tokens = table.integer(r, tokens),
                               .hidden_dim = table.integer(r, hidden),
                               .top_k = table.integer(r, top_k),
                               .num_experts = table.integer(r, experts),
                               .low_latency = names.dispatch_sms.empty()};
    const CommGroup group = {.ranks = kGpusPerNode * table.integer(r, nodes),
                             .ranks_per_node = kGpusPerNode};
    if (exchange.num_experts < group.ranks || exchange.top_k > exchange.num_experts) {
      collector.skip(table.where, "fewer experts than ranks");
      continue;
    }
    const auto add = [&](CollectiveKind kind, size_t time, std::string_view sms) {
      if (!sms.empty()) exchange.sm_count = table.integer(r, column(sms));
      collector.add_collective(table, {.gpu = table.rows[r][gpu],
                                       .kind = kind,
                                       .group = group,
                                       .exchange = exchange,
                                       .measured_s = table.number(r, time) * 1e-6});
    };
    add(CollectiveKind::kExpertDispatch, dispatch, names.dispatch_sms);
    add(CollectiveKind::kExpertCombine, combine, names.combine_sms);
  }
}

}  // namespace

extern const LayoutDef kDeepEpLayout = {
    "deepep_normal",
    {"gpu", "nodes", "hidden_size", "num_tokens", "topk", "num_experts", "dispatch_sms",
     "dispatch_transmit_us", "combine_sms", "combine_transmit_us"},
    [](const CsvTable& table, Collector& collector) {
      read(table, {"dispatch_transmit_us", "combine_transmit_us", "dispatch_sms", "combine_sms"},
           collector);
    }};
extern const LayoutDef kDeepEpLowLatencyLayout = {
    "deepep_low_latency",
    {"gpu", "nodes", "hidden_size", "num_tokens", "topk", "num_experts", "dispatch_us",
     "combine_us"},
    [](const CsvTable& table, Collector& collector) {
      read(table, {"dispatch_us", "combine_us", "", ""}, collector);
    }};

}  // namespace tilecast
