#include "scenario/generation/server_ranks.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/checked.h"
#include "ops/expert_load.h"
#include "ops/op_def.h"
#include "tilecast/error.h"

namespace tilecast {
namespace {

[[noreturn]] void refuse_server(const std::string& message) {
  throw Error(ErrorKind::kInput, message);
}

/// Layers of each stage. Source: vLLM, distributed/utils.py (get_pp_indices), which SGLang copied:
/// spare layers go to the stages before the last one.
std::vector<LayerRange> stages_of(const Model& model, const Graph& modules, int64_t pp) {
  if (pp == 1) return {{.first = 0, .count = 0, .has_start = true, .has_end = true}};
  const int64_t layers = layer_count(modules);
  if (pp > layers)
    refuse_server(fmt::format("{}: `pp` {}, but the model has {} layers that stages can divide",
                              model.name, pp, layers));
  std::vector<int64_t> counts(static_cast<size_t>(pp), layers / pp);
  for (int64_t spare = 0; spare < layers % pp; ++spare)
    counts[static_cast<size_t>(std::max<int64_t>(0, pp - 2 - spare))] += 1;
  std::vector<LayerRange> stages;
  int64_t first = 0;
  for (const int64_t count : counts) {
    stages.push_back({.first = first, .count = count});
    first += count;
  }
  stages.front().has_start = true;
  stages.back().has_end = true;
  return stages;
}

Cluster cluster_of(const Device& device, const Request& request, int64_t ranks) {
  const Parallel& p = request.parallel;
  if (all_gpus(request) == 1 && p.cluster.empty()) return {.device = device};
  const Cluster cluster = p.cluster.empty() ? node_of(device) : find_cluster(p.cluster);
  const int64_t each = cluster.gpus_per_node;
  if (p.nodes && checked_multiply(*p.nodes, each) < all_gpus(request)) {
    const Deployment& d = request.deployment;
    std::string more;
    if (d.prefill.workers > 0)
      more = fmt::format(" and {} prefill workers of {}", d.prefill.workers,
                         prefill_worker_gpus(request));
    if (d.encode.workers > 0)
      more += fmt::format(" and {} encode workers of {}", d.encode.workers, d.encode.tp);
    refuse_server(fmt::format(
        "{} GPUs are needed ({} replicas of {}{}), but `nodes` {} of {} have {}; raise `nodes` or "
        "lower the degrees",
        all_gpus(request), request.deployment.replicas, server_gpus(request), more, *p.nodes,
        cluster.name, *p.nodes * each));
  }
  const int64_t needed = ceil_divide(all_gpus(request), each);
  if (p.nodes && *p.nodes > needed)
    refuse_server(fmt::format(
        "{} GPUs fill {} of the `nodes` {} of {}; use `nodes` {}, or more replicas or ranks",
        all_gpus(request), needed, *p.nodes, cluster.name, needed));
  // Tensor parallelism over more GPUs than a node has is as if its links joined them, unless the
  // cluster is given.
  const bool only_tp = ranks == request.execution.tp && p.cluster.empty();
  return with_nodes(cluster, only_tp ? 1 : ceil_divide(ranks, each));
}

/// DeepEP's kernels for the tokens of a node that dispatches or combines.
CollectiveTime exchange_time(const RankLayout& layout, const Graph& graph, const Node& node,
                             const Node& experts, ExpertKernels kernels) {
  const bool dispatch = op_def(node.op).name == "expert_dispatch";
  const Tensor& own = graph.tensor(dispatch ? node.inputs[0] : node.outputs[0]);
  const int64_t hidden = own.shape.back();
  const int64_t top_k = attribute<int64_t>(experts, "sent_top_k"),
                count = graph.tensor(experts.inputs[1]).shape[0] * layout.ep,
                skew = attribute<int64_t>(experts, "skew_percent");
  ExpertExchange exchange{.tokens = element_count(own.shape) / hidden,
                          .hidden_dim = hidden,
                          .top_k = top_k,
                          .num_experts = count,
                          .low_latency = kernels == ExpertKernels::kLowLatency};
  // Tokens are sent in the dtype of the experts' product.
  const bool narrow = attribute<QuantScheme>(experts, "scheme") != QuantScheme::kNone &&
                      graph.tensor(experts.inputs[1]).dtype == DType::kFp8;
  exchange.dispatch_dtype = narrow ? DType::kFp8 : own.dtype;
  const ExpertLoad busiest =
      expert_load(exchange.tokens * layout.dp, top_k, count, layout.ep, skew);
  const double mean =
      static_cast<double>(exchange.tokens * layout.dp * top_k) / static_cast<double>(layout.ep);
  return expert_exchange_time(
      dispatch ? CollectiveKind::kExpertDispatch : CollectiveKind::kExpertCombine, exchange,
      layout.data_group(), layout.cluster,
      {.imbalance = std::max(1.0, busiest.assignments / std::max(1.0, mean))});
}

}  // namespace

int64_t server_gpus(const Request& r) {
  return checked_product({r.execution.tp, r.execution.pp, r.execution.dp});
}

int64_t prefill_worker_gpus(const Request& r) {
  const PrefillPool& p = r.deployment.prefill;
  return checked_product({p.tp, p.pp, p.dp});
}

int64_t all_gpus(const Request& r) {
  const EncodePool& encode = r.deployment.encode;
  return checked_add(
      checked_add(checked_multiply(r.deployment.replicas, server_gpus(r)),
                  checked_multiply(r.deployment.prefill.workers, prefill_worker_gpus(r))),
      checked_multiply(encode.workers, encode.tp));
}

Request prefill_worker_request(const Request& request) {
  const PrefillPool& pool = request.deployment.prefill;
  Request worker = request;
  worker.execution.tp = pool.tp;
  worker.execution.pp = pool.pp;
  worker.execution.dp = pool.dp;
  worker.parallel.ep = pool.ep;
  worker.parallel.nodes.reset();  // checked for all servers together
  worker.deployment.replicas = pool.workers;
  worker.deployment.prefill = {};
  worker.deployment.speculation = {};
  worker.output = 1;
  worker.load.max_output = 0;
  for (TraceRequest& r : worker.load.trace) r.output = 1;
  // DeepEP needs a layout of whole experts, which the decode pool may have alone.
  if (pool.tp > 1 || pool.ep != pool.dp) worker.deployment.all2all = All2All::kAllGather;
  return worker;
}

RankLayout server_ranks(const Model& model, const Device& device, const Request& request,
                        const Graph& modules) {
  const Execution& e = request.execution;
  RankLayout layout{.cluster = {}, .dp = e.dp, .tp = e.tp, .pp = e.pp, .ep = request.parallel.ep};
  layout.cluster = cluster_of(device, request, server_gpus(request));
  layout.parts = stages_of(model, modules, e.pp);
  return layout;
}

void price_collectives(const RankLayout& layout, const Graph& graph, const Program& program,
                       ExpertKernels kernels, Software software, std::vector<KernelTime>& times) {
  CollectiveCosts(layout, software).price(program, times);
  const OpId experts_op = require_op("experts"), dispatch = require_op("expert_dispatch"),
             combine = require_op("expert_combine");
  const auto first = std::find_if(graph.nodes.begin(), graph.nodes.end(),
                                  [&](const Node& node) { return node.op == experts_op; });
  for (const Launch& launch : program.launches) {
    const Node& node = *launch.node;
    if (node.op != dispatch && node.op != combine) continue;
    KernelTime& time = times[launch.kernel];
    set_time(time, exchange_time(layout, graph, node, *first, kernels));
  }
}

double send_s(const RankLayout& layout, const Graph& stage, StageLinks links, Software software) {
  int64_t bytes = 0;
  for (const TensorId id : stage.outputs)
    bytes = checked_add(bytes, tensor_bytes(stage.tensor(id)));
  return CollectiveCosts(layout, software)
      .send(bytes, stage.tensor(stage.outputs.front()).dtype, false, links)
      .seconds;
}

}  // namespace tilecast
