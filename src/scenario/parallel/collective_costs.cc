#include "scenario/parallel/collective_costs.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "base/checked.h"
#include "collectives/paths.h"
#include "ops/op_def.h"
#include "predict/collective.h"

namespace tilecast {
namespace {

/// Between which ranks an operator communicates.
struct Use {
  std::string_view op;
  CommGroup (RankLayout::*group)() const;
};
constexpr Use kUses[] = {{"all_reduce", &RankLayout::tensor_group},
                         {"all_gather", &RankLayout::tensor_group},
                         {"reduce_scatter", &RankLayout::tensor_group},
                         {"context_all_gather", &RankLayout::context_group},
                         {"context_reduce_scatter", &RankLayout::context_group},
                         {"context_ring", &RankLayout::context_ring},
                         {"context_ring_backward", &RankLayout::context_ring},
                         {"sequence_all_to_all", &RankLayout::context_group},
                         {"data_all_gather", &RankLayout::data_group},
                         {"data_reduce_scatter", &RankLayout::data_group},
                         {"expert_all_gather", &RankLayout::expert_tensor_group},
                         {"expert_reduce_scatter", &RankLayout::expert_tensor_group},
                         {"expert_dispatch", &RankLayout::expert_group},
                         {"expert_combine", &RankLayout::expert_group}};

const Use& use_of(OpId op) {
  const std::string_view name = op_def(op).name;
  const auto* found = std::find_if(std::begin(kUses), std::end(kUses),
                                   [&](const Use& use) { return use.op == name; });
  TILECAST_CHECK(found != std::end(kUses)) << name;
  return *found;
}

Exchange exchange_of(const CollectiveTime& time) {
  return {time.seconds,
          {.node_s = time.node_s,
           .network_s = time.network_s,
           .both_s = std::min(time.node_s, time.network_s),
           .less_s = time.seconds - time.low_s,
           .more_s = time.high_s - time.seconds}};
}

}  // namespace

void set_time(KernelTime& kernel, const CollectiveTime& time) {
  kernel.seconds = time.seconds;
  kernel.low_s = time.low_s;
  kernel.high_s = time.high_s;
  kernel.limit = Limit::kNetwork;
  // Serving software's may be faster than what NCCL reaches of a PCIe tree.
  kernel.utilization_ratio = time.seconds > 0 ? std::min(1.0, time.link_s / time.seconds) : 1;
  kernel.extrapolated = time.extrapolated;
  kernel.predictor = "collective";
}

CollectiveTime CollectiveCosts::time(CollectiveKind kind, int64_t bytes, DType dtype,
                                     const CommGroup& group) const {
  return noted(collective_time(kind, bytes, dtype, group, layout_.cluster, {.software = software_}),
               group);
}

CollectiveTime CollectiveCosts::noted(const CollectiveTime& time, const CommGroup& group) const {
  extrapolated_ = extrapolated_ || time.extrapolated;
  over_pcie_ = over_pcie_ || uses_pcie(group, layout_.cluster);
  return time;
}

CollectiveTime CollectiveCosts::sent_once(const Kernel& kernel, const Node& node,
                                          int64_t num_experts) const {
  const auto top_k = attribute<int64_t>(node, "top_k");
  // The kernel's bytes count min(top_k, ranks) copies for the busiest rank, see copies_sent; the
  // law needs tokens, and no more than bytes of them.
  const int64_t copies = std::min(top_k, attribute<int64_t>(node, "ranks"));
  const double busiest = static_cast<double>(attribute<int64_t>(node, "busiest_percent")) / 100;
  const double elements = static_cast<double>(std::get<Collective>(kernel.shape).elements) /
                          (static_cast<double>(copies) * busiest);
  constexpr int64_t kHidden = 1024;  // tokens and hidden size matter by their product only
  const CommGroup group = layout_.expert_group();
  const ExpertExchange exchange{.tokens = std::llround(elements / kHidden),
                                .hidden_dim = kHidden,
                                .top_k = top_k,
                                .num_experts = num_experts,
                                .dispatch_dtype = kernel.dtype};
  return noted(expert_exchange_time(collective_kind(kernel), exchange, group, layout_.cluster,
                                    {.imbalance = busiest}),
               group);
}

CollectiveTime CollectiveCosts::time_inside(const Kernel& kernel, const Node& node) const {
  const Use& use = use_of(kernel.op);
  if (use.group == &RankLayout::expert_group) {
    const auto num_experts = attribute<int64_t>(node, "num_experts");
    if (num_experts > 0) return sent_once(kernel, node, num_experts);
  }
  if (use.group == &RankLayout::context_ring)
    return around_ring(kernel, attribute<int64_t>(node, "ranks"));
  return time(collective_kind(kernel), collective_bytes(kernel), kernel.dtype,
              (layout_.*use.group)());
}

CollectiveTime CollectiveCosts::around_ring(const Kernel& kernel, int64_t ranks) const {
  const int64_t steps = ranks - 1;
  CollectiveTime all = time(collective_kind(kernel), collective_bytes(kernel) / steps, kernel.dtype,
                            layout_.context_ring());
  for (double* seconds : {&all.seconds, &all.low_s, &all.high_s, &all.link_s, &all.latency_s,
                          &all.transfer_s, &all.node_s, &all.network_s})
    *seconds *= static_cast<double>(steps);
  return all;
}

Exchange CollectiveCosts::exchange(CollectiveKind kind, int64_t bytes, DType dtype,
                                   const CommGroup& group) const {
  return group.ranks == 1 || bytes == 0 ? Exchange{} : exchange_of(time(kind, bytes, dtype, group));
}

Exchange CollectiveCosts::inside(const Program& program, const Launch& launch) const {
  return exchange_of(time_inside(program.kernels[launch.kernel], *launch.node));
}

void CollectiveCosts::price(const Program& program, std::vector<KernelTime>& times) const {
  std::vector<bool> priced(times.size(), false);
  for (const Launch& launch : program.launches) {
    const Kernel& kernel = program.kernels[launch.kernel];
    if (priced[launch.kernel] || !kernel.is<Collective>()) continue;
    set_time(times[launch.kernel], time_inside(kernel, *launch.node));
    priced[launch.kernel] = true;
  }
  if (layout_.cp > 1) hide_ring(program, times);
  if (!layout_.tp_overlap && !layout_.expert_overlap) return;
  double computed_s = 0;
  for (const Launch& launch : program.launches) {
    if (launch.node->phase != Phase::kOptimizer && !program.kernels[launch.kernel].is<Collective>())
      computed_s += times[launch.kernel].seconds * static_cast<double>(program.count(launch));
  }
  if (layout_.tp_overlap) computed_s -= hide(program, times, false, computed_s);
  // Another micro-batch computes meanwhile.
  if (layout_.expert_overlap && layout_.pipeline.microbatches > 1)
    hide(program, times, true, computed_s);
}

double occupied_share(const Device& device) {
  constexpr double kChannels = 24;
  const Gpu* gpu = device.as_gpu();
  if (gpu == nullptr) return 0;
  return std::min(1.0, kChannels / static_cast<double>(gpu->sm_count));
}

/// While a rank attends to a block of keys, the next block is on its way: the last of as many
/// blocks as ranks has nothing beside it. As above, the exchange takes multiprocessors from
/// attention.
void CollectiveCosts::hide_ring(const Program& program, std::vector<KernelTime>& times) const {
  for (const bool backward : {false, true}) {
    const OpId ring = require_op(backward ? "context_ring_backward" : "context_ring");
    double sent_s = 0, attention_s = 0;
    for (const Launch& launch : program.launches) {
      const Kernel& kernel = program.kernels[launch.kernel];
      const double seconds =
          times[launch.kernel].seconds * static_cast<double>(program.count(launch));
      if (kernel.op == ring) sent_s += seconds;
      if (kernel.is<Attention>() && std::get<Attention>(kernel.shape).backward == backward)
        attention_s += seconds;
    }
    if (sent_s <= 0) continue;
    const double beside_s = attention_s * (1 - 1 / static_cast<double>(layout_.cp));
    const double hidden = std::min(1.0, beside_s / sent_s);
    const double visible = 1 - hidden + hidden * occupied_share(layout_.cluster.device);
    for (size_t i = 0; i < times.size(); ++i) {
      if (program.kernels[i].op != ring) continue;
      for (double* seconds : {&times[i].seconds, &times[i].low_s, &times[i].high_s})
        *seconds *= visible;
    }
  }
}

/// What runs beside computing slows it down by the multiprocessors that it occupies; no more is
/// hidden than is computed. Of a product and its exchange in as many parts as ranks, one part has
/// nothing beside it (Transformer Engine's ring exchange and pipelined reduce-scatter). An exchange
/// of experts runs beside the passes of another micro-batch.
double CollectiveCosts::hide(const Program& program, std::vector<KernelTime>& times, bool experts,
                             double computed_s) const {
  const auto hides = [&](OpId op) {
    const std::string_view name = op_def(op).name;
    return experts ? name == "expert_dispatch" || name == "expert_combine"
                   : name == "all_gather" || name == "reduce_scatter";
  };
  double hidden_s = 0;
  const double parts = experts ? 1 : 1 - 1 / static_cast<double>(layout_.tp);
  for (const Launch& launch : program.launches) {
    if (launch.node->phase == Phase::kOptimizer) continue;
    const Kernel& kernel = program.kernels[launch.kernel];
    if (kernel.is<Collective>() && hides(kernel.op))
      hidden_s += parts * times[launch.kernel].seconds * static_cast<double>(program.count(launch));
  }
  if (hidden_s <= 0) return 0;
  const double hidden = parts * std::min(1.0, computed_s / hidden_s);
  const double visible = 1 - hidden + hidden * occupied_share(layout_.cluster.device);
  for (size_t i = 0; i < times.size(); ++i) {
    if (!program.kernels[i].is<Collective>() || !hides(program.kernels[i].op)) continue;
    for (double* seconds : {&times[i].seconds, &times[i].low_s, &times[i].high_s})
      *seconds *= visible;
  }
  return std::min(hidden_s, computed_s);
}

Exchange CollectiveCosts::send(int64_t bytes, DType dtype, bool divided, StageLinks links) const {
  const bool in_parts = layout_.tp > 1 && links == StageLinks::kNetwork && !divided;
  const int64_t sent = in_parts ? ceil_divide(bytes, layout_.tp) : bytes;
  Exchange sending = exchange(CollectiveKind::kSendRecv, sent, dtype, layout_.stage_pair(links));
  if (in_parts) sending += all_gather(bytes, dtype, layout_.tensor_group());
  return sending;
}

}  // namespace tilecast
