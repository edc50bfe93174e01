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

/// The p-norm of two times, or of two rates (a negative exponent): a smooth maximum, or minimum.
double joined(double a, double b, double exponent) {
  return std::pow(std::pow(a, exponent) + std::pow(b, exponent), 1 / exponent);
}

/// An exchange of tokens and the group that makes it.
struct Exchange {
  bool dispatch;
  const ExpertExchange& shape;
  const CollectiveOptions& options;
  const ExpertExchangeConstants& constants;
  NodePath node;  ///< between the ranks of a node
  double ranks, inside, nodes;
  double even_bytes;  ///< a copy of each token of a rank
};

Exchange exchange_of(CollectiveKind kind, const ExpertExchange& e, const CommGroup& group,
                     const Cluster& cluster, const CollectiveOptions& options) {
  constexpr double kByteBits = 8;
  const ExpertExchangeConstants& c = constants_of(options).expert_exchange;
  const bool dispatch = kind == CollectiveKind::kExpertDispatch;
  const double element =
      dispatch ? static_cast<double>(dtype_bits(e.dispatch_dtype)) / kByteBits : 2;
  const double scales = dispatch && e.dispatch_dtype == DType::kFp8 ? c.scale_bytes_per_element : 0;
  const double token_bytes = static_cast<double>(e.hidden_dim) * (element + scales);
  return {.dispatch = dispatch,
          .shape = e,
          .options = options,
          .constants = c,
          .node = node_path(group, cluster),
          .ranks = static_cast<double>(group.ranks),
          .inside = static_cast<double>(group.ranks_per_node),
          .nodes = static_cast<double>(nodes_of(group)),
          .even_bytes = static_cast<double>(e.tokens) * token_bytes};
}

/// What low-latency kernels move and how long they take to start; returns the rate inside a node.
double low_latency(const Exchange& x, CollectiveLawTime& law) {
  const ExpertExchangeConstants& c = x.constants;
  law.curve = x.dispatch ? Curve::kLowLatencyDispatch : Curve::kLowLatencyCombine;
  const double copies =
      x.options.imbalance * x.even_bytes * static_cast<double>(x.shape.top_k) / x.ranks;
  law.use = {copies * (x.inside - 1), copies * (x.ranks - x.inside) * x.inside};
  law.latency_s += x.dispatch ? c.low_latency_dispatch_start_s +
                                    c.expert_start_s * static_cast<double>(x.shape.num_experts)
                              : c.low_latency_combine_start_s;
  return x.node.bytes_per_s * c.low_latency_share;
}

/// The same for the kernels of long batches, which SMs copy with.
double high_throughput(const Exchange& x, CollectiveLawTime& law) {
  const ExpertExchangeConstants& c = x.constants;
  law.curve = x.dispatch ? Curve::kDispatch : Curve::kCombine;
  // Inside a node, a copy for each other rank; between nodes one for each other node, which the
  // rank that gets it passes on.
  const double imbalance = x.options.imbalance;
  const double near = copies_of(x.shape, x.ranks, imbalance) * (x.inside - 1) / x.inside;
  const double far =
      x.nodes > 1 ? copies_of(x.shape, x.nodes, imbalance) * (x.nodes - 1) / x.nodes : 0;
  law.use = {x.even_bytes * near, x.even_bytes * far * x.inside};
  law.latency_s += x.dispatch ? c.dispatch_start_s : c.combine_start_s;
  const double sms = static_cast<double>(x.shape.sm_count) *
                     (x.dispatch ? c.dispatch_sm_bytes_per_s : c.combine_sm_bytes_per_s);
  return joined(sms, c.link_share * x.node.bytes_per_s, -c.bend_exponent);
}

/// Seconds that the SMs need for the tokens of a low-latency dispatch.
double token_seconds(const Exchange& x, const Cluster& cluster) {
  const Gpu* gpu = cluster.device.as_gpu();
  const double sms = std::min(static_cast<double>(x.shape.num_experts),
                              gpu != nullptr ? static_cast<double>(gpu->sm_count) : INFINITY);
  return x.options.imbalance * static_cast<double>(x.shape.tokens) / sms * x.constants.token_step_s;
}

}  // namespace

CollectiveLawTime law_of(CollectiveKind kind, const ExpertExchange& e, const CommGroup& group,
                         const Cluster& cluster, const CollectiveOptions& options) {
  const Exchange x = exchange_of(kind, e, group, cluster, options);
  const ExpertExchangeConstants& c = x.constants;
  CollectiveLawTime law;
  law.pipeline_ratio = constants_of(options).collectives.pipeline_ratio;
  law.algorithm = x.nodes > 1 ? CollectiveAlgorithm::kHierarchical : CollectiveAlgorithm::kDirect;
  law.level = x.node.level;
  law.width = x.nodes;
  law.latency_s = x.node.level != nullptr ? x.node.level->start_s : 0;
  const double rate = e.low_latency ? low_latency(x, law) : high_throughput(x, law);
  if (x.nodes > 1) law.latency_s += c.network_start_s + c.network_step_s * std::log2(x.nodes);
  if (x.node.level == nullptr) law.use.link_bytes = 0;
  if (law.use.link_bytes > 0) {
    law.link_s = law.use.link_bytes / x.node.bytes_per_s;
    law.transfer_s = law.node_s = law.use.link_bytes / rate;
  }
  if (x.nodes > 1) {
    const double network_s = law.use.network_bytes / network_path(group, cluster).bytes_per_s;
    law.link_s = std::max(law.link_s, network_s);
    law.network_s = network_s / c.network_share;
    law.transfer_s = std::max(law.transfer_s, law.network_s);
  }
  if (e.low_latency && x.dispatch)
    law.transfer_s = joined(law.transfer_s, token_seconds(x, cluster), c.bend_exponent);
  law.size_s = law.transfer_s;
  return law;
}

}  // namespace tilecast
