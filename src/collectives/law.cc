#include "collectives/law.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "collectives/paths.h"

namespace tilecast {
namespace {

// Constants of all links and devices. Source where none is stated: aiconfigurator's nccl table
// (A100, H100, H200, B200, L40S; NCCL 2.23 to 2.29), rounded means over the devices.

/// Time at which a collective of no steps would end: 512 bytes on 2, 4 and 8 GPUs, extrapolated to
/// no steps (A100 8, H100 4.6, B200 6, L40S 4 us).
constexpr double kStart = 5.5e-6;
constexpr double kPipeline = 0.9;  ///< see law.h
/// Part of a link's rate that a transfer of 512 MB reaches, by the ranks of a node: 2, and 4 or
/// more. Rings through 2 GPUs use fewer channels.
constexpr double kPairEfficiency = 0.62, kRingEfficiency = 0.79;
/// NVLink SHARP: per byte of the buffer (H100 0.62, B200 0.46), and the longer start-up of its
/// kernels, from 1 to 16 MB on 8 H100.
constexpr double kSwitchEfficiency = 0.56, kSwitchStart = 20e-6;
/// From which number of ranks: on 4 GPUs, half and int8 (which the switch does not sum) take the
/// same time.
constexpr int64_t kSwitchRanks = 5;
/// Part of a NIC's rate that one flow reaches: send_recv of 67 MB between nodes, 36 of 50 GB/s
/// (vidur, h100_dgx).
constexpr double kNetworkEfficiency = 0.75;
/// A tree's inner ranks receive from two, so it stays below a ring's rate. Guess; all_reduce of
/// 1 GB over 16 nodes with NCCL_ALGO=Tree would settle it.
constexpr double kTreeEfficiency = 0.85;

/// Passes of the whole buffer over each link, for many ranks.
double passes_of(CollectiveKind kind) { return kind == CollectiveKind::kAllReduce ? 2 : 1; }

bool switch_sums(DType dtype) {
  return dtype == DType::kFp16 || dtype == DType::kBf16 || dtype == DType::kFp32;
}

class Law {
 public:
  Law(CollectiveKind kind, int64_t bytes, const CommGroup& group, const Cluster& cluster)
      : kind_(kind),
        bytes_(static_cast<double>(bytes)),
        ranks_(static_cast<double>(group.ranks)),
        inside_(static_cast<double>(group.ranks_per_node)),
        nodes_(static_cast<double>(nodes_of(group))),
        node_(node_path(group, cluster)) {
    if (nodes_ > 1) network_ = network_path(group, cluster);
  }

  /// All ranks in one ring; each channel crosses each node's border once.
  LawTime ring() const {
    const double passes = passes_of(kind_);
    const double borders = nodes_ > 1 ? nodes_ : 0;
    // A ring closes over all ranks; a pass takes all hops but one.
    const double hops = ranks_ - 1;
    const double network_hops = borders * hops / ranks_;
    const double steps =
        (hops - network_hops) * node_.latency_s + network_hops * network_.latency_s;
    const double factor = kind_ == CollectiveKind::kBroadcast ? 1 : (ranks_ - 1) / ranks_;
    return finish(CollectiveAlgorithm::kRing, kStart + passes * steps, passes * factor * bytes_,
                  nodes_ > 1 ? passes * factor * bytes_ : 0, 1);
  }

  /// Inside the nodes a ring, between them up and down a double binary tree.
  LawTime tree() const {
    const double levels = std::ceil(std::log2(nodes_));
    const double steps = 2 * (inside_ - 1) * node_.latency_s + 2 * levels * network_.latency_s;
    return finish(CollectiveAlgorithm::kTree, kStart + steps,
                  inside_ > 1 ? 2 * bytes_ * (inside_ - 1) / inside_ : 0,
                  2 * bytes_ * (nodes_ - 1) / nodes_, kTreeEfficiency);
  }

  /// The switch sums and spreads: each byte is sent once and received once.
  LawTime in_switch() const {
    LawTime time;
    time.algorithm = CollectiveAlgorithm::kSwitch;
    time.use.link_bytes = bytes_;
    time.latency_s = kSwitchStart;
    time.transfer_s = bytes_ / (kSwitchEfficiency * node_.bytes_per_s);
    return close(time);
  }

  /// Every rank sends to each other, or one to one.
  LawTime direct(double imbalance) const {
    const bool pair = kind_ == CollectiveKind::kSendRecv;
    const double part = pair ? bytes_ : imbalance * bytes_ / ranks_;
    const double near = pair ? (nodes_ > 1 ? 0 : 1) : inside_ - 1;
    const double far = pair ? (nodes_ > 1 ? 1 : 0) : ranks_ - inside_;
    // All peers at once: the start-up grows with the logarithm of their number only (6.2, 6.7 and
    // 7.5 us on 2, 4 and 8 H100).
    const double step = nodes_ > 1 ? network_.latency_s : node_.latency_s;
    return finish(CollectiveAlgorithm::kDirect, kStart + step * std::log2(ranks_), part * near,
                  part * far * (pair ? 1 : inside_), 1);
  }

 private:
  /// `link_bytes` that each rank sends inside its node, `network_bytes` that a node sends out. Both
  /// kinds of links work at the same time.
  LawTime finish(CollectiveAlgorithm algorithm, double latency_s, double link_bytes,
                 double network_bytes, double network_part) const {
    LawTime time;
    time.algorithm = algorithm;
    time.latency_s = latency_s;
    time.use = {link_bytes, network_bytes};
    const double efficiency = inside_ > 2 ? kRingEfficiency : kPairEfficiency;
    if (link_bytes > 0 && node_.level != nullptr)
      time.transfer_s = link_bytes / (efficiency * node_.bytes_per_s);
    if (network_bytes > 0)
      time.transfer_s =
          std::max(time.transfer_s,
                   network_bytes / (kNetworkEfficiency * network_part * network_.bytes_per_s));
    if (node_.level == nullptr) time.use.link_bytes = 0;
    return close(time);
  }

  static LawTime close(LawTime time) {
    time.seconds =
        time.latency_s + time.transfer_s + kPipeline * std::sqrt(time.latency_s * time.transfer_s);
    return time;
  }

  CollectiveKind kind_;
  double bytes_, ranks_, inside_, nodes_;
  NodePath node_;
  NetworkPath network_;
};

}  // namespace

LawTime law_time(CollectiveKind kind, int64_t bytes, DType dtype, const CommGroup& group,
                 const Cluster& cluster, const CollectiveOptions& options) {
  const Law law(kind, bytes, group, cluster);
  std::vector<LawTime> choices;
  switch (kind) {
    case CollectiveKind::kAllReduce: {
      choices.push_back(law.ring());
      const NodePath path = node_path(group, cluster);
      if (nodes_of(group) > 1)
        choices.push_back(law.tree());
      else if (path.level->reduces && group.ranks >= kSwitchRanks && switch_sums(dtype))
        choices.push_back(law.in_switch());
      break;
    }
    case CollectiveKind::kAllGather:
    case CollectiveKind::kReduceScatter:
    case CollectiveKind::kBroadcast:
      choices.push_back(law.ring());
      break;
    case CollectiveKind::kAllToAll:
    case CollectiveKind::kSendRecv:
    case CollectiveKind::kExpertDispatch:
    case CollectiveKind::kExpertCombine:
      choices.push_back(law.direct(options.imbalance));
      break;
  }
  return *std::min_element(choices.begin(), choices.end(), [](const LawTime& a, const LawTime& b) {
    return a.seconds < b.seconds;
  });
}

}  // namespace tilecast
