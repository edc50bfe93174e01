#include "scenario/generation/server_pools.h"

#include <algorithm>

#include "base/checked.h"
#include "scenario/generation/served_cache.h"
#include "scenario/generation/served_stages.h"

namespace tilecast {
namespace {

/// Ranks that hold different parts of the cache of a sequence: stages, and shares of the key heads.
int64_t holders(const ServedModel& served) {
  int64_t heads = 1;
  for (const Decoder::Cache& cache : served.decoder().caches)
    heads = std::max(heads, cache.kv_heads);
  return std::min(served.plan.tp, heads) * served.plan.pp;
}

}  // namespace

PrefillWorkers::PrefillWorkers(const ServedModel& servers)
    : servers_(servers), request_(prefill_worker_request(servers.asked)) {
  served_ = std::make_unique<ServedModel>(servers, request_);
  const Cluster& node = servers.plan.cluster;
  const int64_t all = all_gpus(servers.asked);
  flows_ = std::min(holders(servers), holders(*served_));
  // Pools of one node use its links; else workers and servers are on different nodes.
  const bool one_node = all <= node.gpus_per_node;
  cluster_ = with_nodes(node, one_node ? 1 : 2);
  const int64_t senders = std::min(flows_, node.gpus_per_node);
  pair_ = {.ranks = 2, .ranks_per_node = one_node ? 2 : 1, .concurrent = senders};
}

double PrefillWorkers::link_s(int64_t prompt) const {
  const int64_t bytes = tilecast::cache_bytes(servers_, 1, prompt, 1);
  return collective_time(CollectiveKind::kSendRecv, ceil_divide(bytes, flows_), servers_.kv_dtype,
                         pair_, cluster_, {.software = *request_.execution.software})
      .seconds;
}

/// The prefill of one prompt on an idle worker.
double PrefillWorkers::alone_s(int64_t prompt) const {
  const int64_t chunk = request_.execution.max_num_batched_tokens;
  double seconds = 0;
  for (int64_t past = 0; past < prompt; past += chunk)
    seconds += StagedStep(*served_, {{1, std::min(chunk, prompt - past), past}}, StepLaunch::kHost)
                   .through()
                   .value;
  return seconds;
}

double PrefillWorkers::after_prefill_s(int64_t prompt) const {
  const double whole = link_s(prompt);
  if (servers_.asked.deployment.prefill.transfer == KvTransfer::kAfterPrefill) return whole;
  const auto layers = static_cast<double>(std::max<int64_t>(1, servers_.decoder().layers));
  return std::max(whole / layers, whole - alone_s(prompt) * (layers - 1) / layers);
}

}  // namespace tilecast
