#include "scenario/host_work.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/checked.h"
#include "ops/op_def.h"
#include "predict/unmeasured.h"
#include "scenario/parallel/rank_layout.h"
#include "tilecast/error.h"

namespace tilecast {
namespace {

/// The coherent link of superchips, else PCIe.
double link_to_host(const Device& device) {
  double rate = 0;
  bool coherent = false;
  for (const Link& each : device.links) {
    const bool c2c = each.kind == "nvlink-c2c";
    if (!c2c && (coherent || each.kind != "pcie")) continue;
    coherent = c2c;
    rate = each.bytes_per_s;
  }
  return rate;
}

/// Ranks of the step on one node.
int64_t gpus_of_a_host(const Device& device, const Request& r) {
  const Execution& e = r.execution;
  const int64_t ranks = checked_product({e.dp, e.tp, e.pp, r.parallel.cp});
  return ranks == 1 ? 1 : std::min(ranks, cluster_of(device, r).gpus_per_node);
}

}  // namespace

HostRates host_rates(const PassSetup& setup, const LawConstants& laws) {
  const Request& r = setup.request;
  if (!r.optimizer_offload || r.mode != Mode::kTraining) return {};
  const double link = link_to_host(setup.device);
  if (link == 0)
    throw Error(ErrorKind::kUnsupported,
                fmt::format("{}: `optimizer-offload` needs the rate of its link to the host; its "
                            "file names no link of kind pcie",
                            setup.device.id));
  const double memory = r.host_bytes_per_s.value_or(laws.host.memory_bytes_per_s);
  return {.link_bytes_per_s = link * laws.host.link_ratio,
          .memory_bytes_per_s = memory / static_cast<double>(gpus_of_a_host(setup.device, r))};
}

/// The ends of the interval are guesses, as the rates are: copies and updates that overlap take
/// half of the time; slow hosts have two thirds of the rate.
void price_host_work(const Program& program, const HostRates& rates,
                     std::vector<KernelTime>& times) {
  constexpr double kLow = 0.5, kHigh = 1.5;
  if (rates.memory_bytes_per_s == 0) return;
  static const OpId copy = require_op("host_copy"), adam = require_op("host_adam");
  for (size_t i = 0; i < program.kernels.size(); ++i) {
    const Kernel& kernel = program.kernels[i];
    if (kernel.op != copy && kernel.op != adam) continue;
    const double seconds = kernel.op == copy
                               ? static_cast<double>(kernel.write_bytes) / rates.link_bytes_per_s
                               : static_cast<double>(kernel.bytes()) / rates.memory_bytes_per_s;
    times[i] = {.seconds = seconds,
                .low_s = kLow * seconds,
                .high_s = kHigh * seconds,
                .limit = Limit::kNetwork,
                .predictor = "host",
                .extrapolated = true,
                .extrapolated_feature = kUnmeasuredOperator};
  }
}

}  // namespace tilecast
