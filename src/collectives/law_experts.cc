#include <algorithm>
#include <cmath>

#include "collectives/law.h"
#include "collectives/paths.h"
#include "tilecast/error.h"

// The law of DeepEP's kernels. Constants without another source: aiconfigurator's deepep tables,
// hidden size 7168, 8 of 256 experts, rounded.

namespace tilecast {
namespace {

/// Start-up beyond that of the links: one token on 8 H100 takes 26 and 47 us; low latency 13 us.
constexpr double kDispatchStart = 21e-6, kCombineStart = 42e-6;
constexpr double kLowLatencyDispatchStart = 4e-6, kLowLatencyCombineStart = 8e-6;
/// Time that nodes add: 2 to 8 nodes take 22 to 29 us (low latency, one token or two).
constexpr double kNetworkStart = 8e-6, kNetworkStep = 2e-6;
/// Rate of one SM, 4 SMs on H100 and B200 alike, and what all together reach of the links.
constexpr double kDispatchSmRate = 14.8e9, kCombineSmRate = 17.9e9, kLinkEfficiency = 0.76;
/// How sharply the SMs' rate bends into the links': 16, 20 and 24 SMs reach 224, 270, 294 GB/s.
constexpr double kBend = 4;
/// Low latency, slope from 512 to 1024 tokens on 8 H100.
constexpr double kLowLatencyEfficiency = 0.6;
/// Low-latency dispatch: its start grows with the experts (128 to 512 of them, 10 to 17 us on
/// H100), and it runs one SM for each expert, which takes this long for a token (1,024 tokens to 8
/// and 16 experts: 2.3 to 2.9 us on H100 and B200).
constexpr double kExpertStart = 0.018e-6, kTokenStep = 2.5e-6;
/// Share of the NICs' rate: 43 and 46 of 50 GB/s on 2 and 4 nodes.
constexpr double kDispatchNetworkEfficiency = 0.88;
/// DeepEP's dispatch in FP8 sends a scale in fp32 for 128 elements (its README).
constexpr double kScaleBytes = 4.0 / 128;

/// Parts (ranks or nodes) of `parts` that a token's experts are on, in the mean: experts are drawn
/// evenly, without putting back.
double reached(const ExpertExchange& e, double parts) {
  const auto experts = static_cast<double>(e.num_experts);
  double missed = 1;
  for (int64_t i = 0; i < e.top_k; ++i) {
    const auto drawn = static_cast<double>(i);
    missed *= std::max(0.0, experts - experts / parts - drawn) / (experts - drawn);
  }
  return parts * (1 - missed);
}

/// Copies of a token, for `parts` times the share of the part that gets most. A part gets each
/// token once, whatever the number of its experts there.
double copies_of(const ExpertExchange& e, double parts, double imbalance) {
  return std::min(parts, imbalance * reached(e, parts));
}

}  // namespace

CollectiveLawTime law_of(CollectiveKind kind, const ExpertExchange& e, const CommGroup& group,
                         const Cluster& cluster, const CollectiveOptions& options) {
  const bool dispatch = kind == CollectiveKind::kExpertDispatch;
  const NodePath node = node_path(group, cluster);
  const auto ranks = static_cast<double>(group.ranks);
  const auto inside = static_cast<double>(group.ranks_per_node);
  const auto nodes = static_cast<double>(nodes_of(group));
  const double element = dispatch ? static_cast<double>(dtype_bits(e.dispatch_dtype)) / 8 : 2;
  const double scales = dispatch && e.dispatch_dtype == DType::kFp8 ? kScaleBytes : 0;
  const double token_bytes = static_cast<double>(e.hidden_dim) * (element + scales);
  const double even = static_cast<double>(e.tokens) * token_bytes;

  CollectiveLawTime law;
  law.algorithm = nodes > 1 ? CollectiveAlgorithm::kHierarchical : CollectiveAlgorithm::kDirect;
  law.level = node.level;
  law.width = nodes;
  const double start = node.level != nullptr ? node.level->start_s : 0;
  double rate = node.bytes_per_s;
  if (e.low_latency) {
    law.curve = dispatch ? Curve::kLowLatencyDispatch : Curve::kLowLatencyCombine;
    const double copies = options.imbalance * even * static_cast<double>(e.top_k) / ranks;
    law.use = {copies * (inside - 1), copies * (ranks - inside) * inside};
    law.latency_s = start + (dispatch ? kLowLatencyDispatchStart +
                                            kExpertStart * static_cast<double>(e.num_experts)
                                      : kLowLatencyCombineStart);
    rate *= kLowLatencyEfficiency;
  } else {
    law.curve = dispatch ? Curve::kDispatch : Curve::kCombine;
    // Inside a node, a copy for each other rank; between nodes one for each other node, which the
    // rank that gets it passes on.
    const double near = copies_of(e, ranks, options.imbalance) * (inside - 1) / inside;
    const double far = nodes > 1 ? copies_of(e, nodes, options.imbalance) * (nodes - 1) / nodes : 0;
    law.use = {even * near, even * far * inside};
    law.latency_s = start + (dispatch ? kDispatchStart : kCombineStart);
    const double sms =
        static_cast<double>(e.sm_count) * (dispatch ? kDispatchSmRate : kCombineSmRate);
    rate = std::pow(std::pow(sms, -kBend) + std::pow(kLinkEfficiency * rate, -kBend), -1 / kBend);
  }
  if (nodes > 1) law.latency_s += kNetworkStart + kNetworkStep * std::log2(nodes);
  if (node.level == nullptr) law.use.link_bytes = 0;
  if (law.use.link_bytes > 0) {
    law.link_s = law.use.link_bytes / node.bytes_per_s;
    law.transfer_s = law.node_s = law.use.link_bytes / rate;
  }
  if (nodes > 1) {
    const double network_s = law.use.network_bytes / network_path(group, cluster).bytes_per_s;
    law.link_s = std::max(law.link_s, network_s);
    law.network_s = network_s / kDispatchNetworkEfficiency;
    law.transfer_s = std::max(law.transfer_s, law.network_s);
  }
  if (e.low_latency && dispatch) {
    const Gpu* gpu = cluster.device.as_gpu();
    const double sms = std::min(static_cast<double>(e.num_experts),
                                gpu != nullptr ? static_cast<double>(gpu->sm_count) : INFINITY);
    const double tokens_s = options.imbalance * static_cast<double>(e.tokens) / sms * kTokenStep;
    law.transfer_s =
        std::pow(std::pow(law.transfer_s, kBend) + std::pow(tokens_s, kBend), 1 / kBend);
  }
  law.size_s = law.transfer_s;
  return law;
}

}  // namespace tilecast
