#include "collectives/law.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "collectives/paths.h"
#include "software/software.h"

namespace tilecast {
namespace {

/// Passes of the whole buffer over each link, for many ranks.
double passes_of(CollectiveKind kind) { return kind == CollectiveKind::kAllReduce ? 2 : 1; }

bool switch_sums(DType dtype) {
  return dtype == DType::kFp16 || dtype == DType::kBf16 || dtype == DType::kFp32;
}

/// The curve of a kind inside a node; nullopt where none was measured.
std::optional<Curve> curve_of(CollectiveKind kind) {
  switch (kind) {
    case CollectiveKind::kAllReduce:
      return Curve::kRingAllReduce;
    case CollectiveKind::kBroadcast:  // a ring as all_gather's: not measured itself
    case CollectiveKind::kAllGather:
      return Curve::kAllGather;
    case CollectiveKind::kReduceScatter:
      return Curve::kReduceScatter;
    case CollectiveKind::kSendRecv:
      return Curve::kSendRecv;
    default:
      return Curve::kAllToAll;
  }
}

/// The curve of the software's own all-reduce; nullopt: it takes NCCL's.
std::optional<Curve> own_curve(Software software) {
  const std::string& name = traits_of(software).all_reduce_curve;
  const auto words = choice_words(Curve{});
  const auto found = std::find(words.begin(), words.end(), name);
  if (found == words.end()) return std::nullopt;
  return static_cast<Curve>(found - words.begin());
}

class Law {
 public:
  Law(CollectiveKind kind, int64_t bytes, const CommGroup& group, const Cluster& cluster,
      const CollectiveConstants& constants)
      : c_(constants),
        kind_(kind),
        bytes_(static_cast<double>(bytes)),
        ranks_(static_cast<double>(group.ranks)),
        inside_(static_cast<double>(group.ranks_per_node)),
        nodes_(static_cast<double>(nodes_of(group))),
        node_(node_path(group, cluster)),
        start_s_(node_.level != nullptr ? node_.level->start_s : c_.start_s) {
    if (nodes_ > 1) network_ = network_path(group, cluster);
  }

  /// All ranks in one ring; each channel crosses each node's border once.
  CollectiveLawTime ring() const {
    const double passes = passes_of(kind_);
    // A ring closes over all ranks; a pass takes all hops but one.
    const double hops = ranks_ - 1;
    const double network_hops = nodes_ > 1 ? nodes_ * hops / ranks_ : 0;
    const double steps =
        (hops - network_hops) * node_.latency_s + network_hops * network_.latency_s;
    const double factor = kind_ == CollectiveKind::kBroadcast ? 1 : (ranks_ - 1) / ranks_;
    const double sent = passes * factor * bytes_;
    return finish(CollectiveAlgorithm::kRing, passes * steps, {sent, nodes_ > 1 ? sent : 0}, 1);
  }

  /// Inside the nodes a ring, between them up and down a double binary tree.
  CollectiveLawTime tree() const {
    const double levels = std::ceil(std::log2(nodes_));
    const double steps = 2 * (inside_ - 1) * node_.latency_s + 2 * levels * network_.latency_s;
    return finish(CollectiveAlgorithm::kTree, steps,
                  {2 * bytes_ * (inside_ - 1) / inside_, 2 * bytes_ * (nodes_ - 1) / nodes_},
                  c_.tree_share);
  }

  /// The switch sums and spreads: each byte is sent once and received once.
  CollectiveLawTime in_switch() const {
    CollectiveLawTime law = of(CollectiveAlgorithm::kSwitch, Curve::kSwitchAllReduce);
    law.use.link_bytes = bytes_;
    law.latency_s = c_.switch_start_s;
    law.link_s = bytes_ / node_.bytes_per_s;
    law.transfer_s = law.node_s = law.link_s / c_.switch_share;
    return law;
  }

  /// An all-reduce of serving software: every rank reads all others at once, or its share of them
  /// and then the sums. It starts like a collective of NCCL without steps.
  CollectiveLawTime serving(Curve curve) const {
    CollectiveLawTime law = of(CollectiveAlgorithm::kOneShot, curve);
    const auto send = [&](CollectiveLawTime& to, double bytes) {
      to.use.link_bytes = bytes;
      to.link_s = bytes / node_.bytes_per_s;
      to.transfer_s = to.node_s = to.link_s / efficiency();
    };
    law.latency_s = start_s_;
    send(law, (ranks_ - 1) * bytes_);
    CollectiveLawTime twice = law;
    twice.latency_s += 2 * node_.latency_s;
    twice.algorithm = CollectiveAlgorithm::kDirect;
    send(twice, 2 * (ranks_ - 1) / ranks_ * bytes_);
    return twice.seconds() < law.seconds() ? twice : law;
  }

  /// Every rank sends to each other, or one to one.
  CollectiveLawTime direct(double imbalance) const {
    const bool pair = kind_ == CollectiveKind::kSendRecv;
    const double part = pair ? bytes_ : imbalance * bytes_ / ranks_;
    const double near = pair ? (nodes_ > 1 ? 0 : 1) : inside_ - 1;
    const double far = pair ? (nodes_ > 1 ? 1 : 0) : (ranks_ - inside_) * inside_;
    // All peers at once: the start-up grows with the logarithm of their number only (6.2, 6.7 and
    // 7.5 us on 2, 4 and 8 H100).
    const double step = nodes_ > 1 ? network_.latency_s : node_.latency_s;
    return finish(CollectiveAlgorithm::kDirect, step * std::log2(ranks_), {part * near, part * far},
                  1);
  }

 private:
  double efficiency() const {
    if (kind_ == CollectiveKind::kSendRecv) return c_.send_share;
    return inside_ > 2 ? c_.ring_share : c_.pair_share;
  }

  CollectiveLawTime of(CollectiveAlgorithm algorithm, std::optional<Curve> curve) const {
    CollectiveLawTime law;
    law.pipeline_ratio = c_.pipeline_ratio;
    law.algorithm = algorithm;
    law.level = node_.level;
    if (nodes_ > 1) return law;
    law.curve = curve;
    law.size_s = bytes_ / node_.bytes_per_s;
    law.width = inside_;
    return law;
  }

  /// Both kinds of links work at the same time: the slower counts.
  CollectiveLawTime finish(CollectiveAlgorithm algorithm, double steps_s, LinkUse use,
                           double network_part) const {
    CollectiveLawTime law = of(algorithm, curve_of(kind_));
    law.latency_s = start_s_ + steps_s;
    if (node_.level == nullptr) use.link_bytes = 0;
    law.use = use;
    if (use.link_bytes > 0) law.link_s = use.link_bytes / node_.bytes_per_s;
    law.transfer_s = law.node_s = law.link_s / efficiency();
    if (use.network_bytes > 0) {
      const double network_s = use.network_bytes / network_.bytes_per_s;
      law.link_s = std::max(law.link_s, network_s);
      law.network_s = network_s / (c_.network_share * network_part);
      law.transfer_s = std::max(law.transfer_s, law.network_s);
    }
    law.least_s = law.link_s;
    return law;
  }

  const CollectiveConstants& c_;
  CollectiveKind kind_;
  double bytes_, ranks_, inside_, nodes_;
  NodePath node_;
  NetworkPath network_;
  double start_s_;
};

}  // namespace

double CollectiveLawTime::seconds(double scale) const {
  const double transfer = scale * transfer_s;
  return latency_s + transfer + pipeline_ratio * std::sqrt(latency_s * transfer);
}

const LawConstants& constants_of(const CollectiveOptions& options) {
  return options.laws != nullptr ? *options.laws : bundled_laws();
}

std::vector<CollectiveLawTime> laws_of(CollectiveKind kind, int64_t bytes, DType dtype,
                                       const CommGroup& group, const Cluster& cluster,
                                       const CollectiveOptions& options) {
  const CollectiveConstants& c = constants_of(options).collectives;
  const Law law(kind, bytes, group, cluster, c);
  switch (kind) {
    case CollectiveKind::kAllReduce: {
      if (nodes_of(group) > 1) return {law.ring(), law.tree()};
      if (const auto curve = own_curve(options.software)) return {law.serving(*curve)};
      if (node_path(group, cluster).level->reduces && group.ranks >= c.switch_ranks &&
          switch_sums(dtype))
        return {law.ring(), law.in_switch()};
      return {law.ring()};
    }
    case CollectiveKind::kAllGather:
    case CollectiveKind::kReduceScatter:
    case CollectiveKind::kBroadcast:
      return {law.ring()};
    default:
      return {law.direct(options.imbalance)};
  }
}

}  // namespace tilecast
