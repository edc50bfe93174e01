#include "collectives/collective.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "collectives/law.h"
#include "collectives/paths.h"
#include "collectives/weights.h"
#include "tilecast/error.h"

namespace tilecast {
namespace {

constexpr double kMicrosecond = 1e-6;  // seconds

/// The law's time times what was measured over it. More bytes, and so less bandwidth, never take
/// less time: where a measured curve falls (NCCL changes its protocol), it stays level.
double corrected_s(const CollectiveLawTime& law, const CurveMix& mix) {
  const double size = std::log2(law.size_s / kMicrosecond);
  const Between width = Between::of(std::log2(law.width), 0, kWidthCount);
  const Between place = Between::of(size, kFirstSize, kSizeCount);
  const auto at = [&](int knot) { return residual_at(mix, *law.curve, width, knot); };
  double longest = law.seconds() * std::exp((1 - place.share) * at(place.first) +
                                            place.share * at(place.first + 1));
  for (int knot = place.first; knot >= 0; --knot) {
    const double scale = std::exp2(kFirstSize + knot - size);
    if (scale > 1) continue;
    longest = std::max(longest, law.seconds(scale) * std::exp(at(knot)));
  }
  return longest;
}

CollectiveTime time_of(const CollectiveLawTime& law, const CollectiveWeights& weights,
                       const CollectiveConstants& c) {
  CollectiveTime time;
  time.algorithm = law.algorithm;
  time.use = law.use;
  time.latency_s = law.latency_s;
  time.transfer_s = law.transfer_s;
  time.link_s = law.link_s;
  time.seconds = law.seconds();
  double spread = c.unmeasured_spread_log;  // between nodes only DeepEP was measured
  time.extrapolated = true;
  if (law.curve && law.level != nullptr && law.size_s > 0) {
    const CurveMix mix = mix_for(weights, *law.curve, law.level->kind, law.level->generation);
    time.seconds = std::max(corrected_s(law, mix), law.least_s);
    time.extrapolated = !mix.known || law.level->guessed || law.width > 1 << (kWidthCount - 1);
    const auto curve = static_cast<size_t>(*law.curve);
    spread = time.extrapolated ? weights.unknown_spread[curve] : weights.known_spread[curve];
  }
  time.node_s = std::min(law.node_s, time.seconds);
  time.network_s = std::min(law.network_s, time.seconds);
  time.low_s = time.seconds * std::exp(-spread);
  time.high_s = time.seconds * std::exp(spread);
  return time;
}

const CollectiveWeights& weights_of(const CollectiveOptions& options) {
  return options.weights != nullptr ? *options.weights : bundled_collective_weights();
}

[[noreturn]] void refuse(CollectiveKind kind, const std::string& why) {
  throw Error(ErrorKind::kInput, fmt::format("{}: {}", choice_word(kind), why));
}

}  // namespace

CollectiveTime collective_time(CollectiveKind kind, int64_t bytes, DType dtype,
                               const CommGroup& group, const Cluster& cluster,
                               const CollectiveOptions& options) {
  check_group(group, cluster);
  if (bytes < 0) refuse(kind, fmt::format("expected at least 0 bytes, found {}", bytes));
  if (!(options.imbalance >= 1))
    refuse(kind, fmt::format("expected an imbalance of at least 1, found {}", options.imbalance));
  if (kind == CollectiveKind::kSendRecv && group.ranks > 2)
    refuse(kind, fmt::format("expected 2 ranks, found {}", group.ranks));
  if (group.ranks == 1 || bytes == 0) return {};
  CollectiveTime best;
  best.seconds = INFINITY;
  for (const CollectiveLawTime& law : laws_of(kind, bytes, dtype, group, cluster, options)) {
    const CollectiveTime time =
        time_of(law, weights_of(options), constants_of(options).collectives);
    if (time.seconds < best.seconds) best = time;
  }
  return best;
}

CollectiveTime expert_exchange_time(CollectiveKind kind, const ExpertExchange& exchange,
                                    const CommGroup& group, const Cluster& cluster,
                                    const CollectiveOptions& options) {
  check_group(group, cluster);
  if (kind != CollectiveKind::kExpertDispatch && kind != CollectiveKind::kExpertCombine)
    refuse(kind, "expected expert_dispatch or expert_combine");
  const ExpertExchange& e = exchange;
  if (e.tokens < 0 || e.hidden_dim < 1 || e.sm_count < 1 || e.num_experts < group.ranks ||
      e.top_k < 1 || e.top_k > e.num_experts)
    refuse(kind,
           fmt::format("{} tokens of {}, {} of {} experts on {} ranks and {} SMs cannot be: "
                       "expected at least one expert a rank, and no more of them a token than "
                       "there are",
                       e.tokens, e.hidden_dim, e.top_k, e.num_experts, group.ranks, e.sm_count));
  if (group.ranks == 1 || e.tokens == 0) return {};
  return time_of(law_of(kind, e, group, cluster, options), weights_of(options),
                 constants_of(options).collectives);
}

CommGroup packed_group(int64_t ranks, const Cluster& cluster) {
  return {.ranks = ranks, .ranks_per_node = std::min(ranks, cluster.gpus_per_node)};
}

}  // namespace tilecast
