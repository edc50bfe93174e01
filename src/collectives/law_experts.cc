#include <algorithm>
#include <cmath>

#include "collectives/law.h"
#include "collectives/paths.h"
#include "tilecast/error.h"

// The law of DeepEP's kernels.

namespace tilecast {
namespace {

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
  constexpr double kByteBits = 8;
  const LawConstants& laws = constants_of(options);
  const ExpertExchangeConstants& c = laws.expert_exchange;
  const bool dispatch = kind == CollectiveKind::kExpertDispatch;
  const NodePath node = node_path(group, cluster);
  const auto ranks = static_cast<double>(group.ranks);
  const auto inside = static_cast<double>(group.ranks_per_node);
  const auto nodes = static_cast<double>(nodes_of(group));
  const double element =
      dispatch ? static_cast<double>(dtype_bits(e.dispatch_dtype)) / kByteBits : 2;
  const double scales = dispatch && e.dispatch_dtype == DType::kFp8 ? c.scale_bytes_per_element : 0;
  const double token_bytes = static_cast<double>(e.hidden_dim) * (element + scales);
  const double even = static_cast<double>(e.tokens) * token_bytes;

  CollectiveLawTime law;
  law.pipeline_ratio = laws.collectives.pipeline_ratio;
  law.algorithm = nodes > 1 ? CollectiveAlgorithm::kHierarchical : CollectiveAlgorithm::kDirect;
  law.level = node.level;
  law.width = nodes;
  const double start = node.level != nullptr ? node.level->start_s : 0;
  const double bend = c.bend_exponent;
  double rate = node.bytes_per_s;
  if (e.low_latency) {
    law.curve = dispatch ? Curve::kLowLatencyDispatch : Curve::kLowLatencyCombine;
    const double copies = options.imbalance * even * static_cast<double>(e.top_k) / ranks;
    law.use = {copies * (inside - 1), copies * (ranks - inside) * inside};
    law.latency_s = start + (dispatch ? c.low_latency_dispatch_start_s +
                                            c.expert_start_s * static_cast<double>(e.num_experts)
                                      : c.low_latency_combine_start_s);
    rate *= c.low_latency_share;
  } else {
    law.curve = dispatch ? Curve::kDispatch : Curve::kCombine;
    // Inside a node, a copy for each other rank; between nodes one for each other node, which the
    // rank that gets it passes on.
    const double near = copies_of(e, ranks, options.imbalance) * (inside - 1) / inside;
    const double far = nodes > 1 ? copies_of(e, nodes, options.imbalance) * (nodes - 1) / nodes : 0;
    law.use = {even * near, even * far * inside};
    law.latency_s = start + (dispatch ? c.dispatch_start_s : c.combine_start_s);
    const double sms = static_cast<double>(e.sm_count) *
                       (dispatch ? c.dispatch_sm_bytes_per_s : c.combine_sm_bytes_per_s);
    rate = std::pow(std::pow(sms, -bend) + std::pow(c.link_share * rate, -bend), -1 / bend);
  }
  if (nodes > 1) law.latency_s += c.network_start_s + c.network_step_s * std::log2(nodes);
  if (node.level == nullptr) law.use.link_bytes = 0;
  if (law.use.link_bytes > 0) {
    law.link_s = law.use.link_bytes / node.bytes_per_s;
    law.transfer_s = law.node_s = law.use.link_bytes / rate;
  }
  if (nodes > 1) {
    const double network_s = law.use.network_bytes / network_path(group, cluster).bytes_per_s;
    law.link_s = std::max(law.link_s, network_s);
    law.network_s = network_s / c.network_share;
    law.transfer_s = std::max(law.transfer_s, law.network_s);
  }
  if (e.low_latency && dispatch) {
    const Gpu* gpu = cluster.device.as_gpu();
    const double sms = std::min(static_cast<double>(e.num_experts),
                                gpu != nullptr ? static_cast<double>(gpu->sm_count) : INFINITY);
    const double tokens_s =
        options.imbalance * static_cast<double>(e.tokens) / sms * c.token_step_s;
    law.transfer_s = std::pow(std::pow(law.transfer_s, bend) + std::pow(tokens_s, bend), 1 / bend);
  }
  law.size_s = law.transfer_s;
  return law;
}

}  // namespace tilecast
