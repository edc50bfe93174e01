#include "scenario/generation/encode_workers.h"

#include <fmt/format.h>

#include <string>

#include "base/checked.h"
#include "collectives/collective.h"
#include "scenario/memory_total.h"
#include "software/software.h"
#include "tilecast/error.h"

namespace tilecast {
namespace {

Request worker_request(const Request& servers) {
  Request worker = servers;
  worker.execution.tp = servers.deployment.encode.tp;
  return worker;
}

/// Why the ranks of a worker cannot share the tower; "": they can.
std::string refused_tp(const VisionTower& tower, int64_t tp, int64_t gpus_per_node) {
  const auto indivisible = [&](int64_t size, const char* what) {
    return fmt::format("`encode-tp` {} does not divide the {} {} of the vision tower", tp, size,
                       what);
  };
  if (tower.heads % tp != 0) return indivisible(tower.heads, "attention heads");
  if (tower.ffn_dim % tp != 0) return indivisible(tower.ffn_dim, "columns of the MLP (ffn_dim)");
  if (tp > gpus_per_node)
    return fmt::format("`encode-tp` {} does not fit into a node of {} GPUs", tp, gpus_per_node);
  return "";
}

}  // namespace

EncodeWorkers::EncodeWorkers(const ServedModel& servers)
    : servers_(servers),
      request_(worker_request(servers.asked)),
      tower_(servers.model, request_, servers.dtype()) {
  // Pools of one node use its links; else workers and servers are on different nodes.
  const Cluster& node = servers.plan.cluster;
  if (const std::string why =
          refused_tp(*servers.model.vision, request_.execution.tp, node.gpus_per_node);
      !why.empty())
    throw Error(ErrorKind::kInput, fmt::format("{}: {}", servers.model.name, why));
  const bool one_node = all_gpus(servers.asked) <= node.gpus_per_node;
  cluster_ = with_nodes(node, one_node ? 1 : 2);
  pair_ = {.ranks = 2, .ranks_per_node = one_node ? 2 : 1, .concurrent = 1};
}

TimedStep EncodeWorkers::time(int64_t images) const { return time_tower(servers_, tower_, images); }

double EncodeWorkers::run_s(int64_t images) const {
  return time(images).totals.seconds.value + request_.execution.step_overhead_s.value_or(0);
}

int64_t EncodeWorkers::largest_share() const {
  return ceil_divide(request_.images, request_.deployment.encode.workers);
}

double EncodeWorkers::transfer_s(int64_t images) const {
  const int64_t bytes = checked_multiply(images, tower_.embeddings_bytes());
  return collective_time(CollectiveKind::kSendRecv, bytes, servers_.dtype(), pair_, cluster_,
                         {.software = *request_.execution.software})
      .seconds;
}

Memory EncodeWorkers::memory_of(const TowerSteps& tower) const {
  const int64_t images = tower.most_together();
  Memory memory = bare_rank(servers_.device, software_def(*request_.execution.software).memory,
                            Mode::kInference);
  memory.weights_bytes = tower.weights_bytes();
  memory.activations_bytes = checked_add(tower.activations_bytes(images),
                                         checked_multiply(images, tower.embeddings_bytes()));
  set_peak(memory, checked_add(memory.weights_bytes, memory.activations_bytes));
  return memory;
}

std::optional<int64_t> EncodeWorkers::tp_that_fits() const {
  const int64_t most = servers_.plan.cluster.gpus_per_node;
  Request changed = request_;
  for (int64_t& tp = changed.execution.tp; tp <= most; tp *= 2) {
    if (!refused_tp(*servers_.model.vision, tp, most).empty()) continue;
    if (memory_of(TowerSteps(servers_.model, changed, servers_.dtype())).fits) return tp;
  }
  return std::nullopt;
}

}  // namespace tilecast
