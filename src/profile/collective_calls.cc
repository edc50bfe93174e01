// Names and dtypes are those of PyTorch's ProcessGroupNCCL (torch/csrc/distributed/c10d) as the
// profiler writes them.

#include "profile/collective_calls.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "base/checked.h"
#include "base/text.h"
#include "collectives/paths.h"

namespace tilecast {
namespace {

/// Which of the two numbers of elements is the whole buffer.
enum class Whole : uint8_t { kIn, kOut };

struct NamedCollective {
  std::string_view name;
  CollectiveKind kind;
  Whole whole = Whole::kIn;
};
constexpr NamedCollective kNamed[] = {
    {"allreduce", CollectiveKind::kAllReduce},
    {"all_reduce", CollectiveKind::kAllReduce},
    {"allreduce_coalesced", CollectiveKind::kAllReduce},
    {"all_gather", CollectiveKind::kAllGather, Whole::kOut},
    {"_allgather_base", CollectiveKind::kAllGather, Whole::kOut},
    {"allgather_into_tensor_coalesced", CollectiveKind::kAllGather, Whole::kOut},
    {"reduce_scatter", CollectiveKind::kReduceScatter},
    {"_reduce_scatter_base", CollectiveKind::kReduceScatter},
    {"reduce_scatter_tensor_coalesced", CollectiveKind::kReduceScatter},
    {"all_to_all", CollectiveKind::kAllToAll},
    {"all_to_allv", CollectiveKind::kAllToAll},
    {"broadcast", CollectiveKind::kBroadcast},
    {"_broadcast_oop", CollectiveKind::kBroadcast},
    {"send", CollectiveKind::kSendRecv},
    {"recv", CollectiveKind::kSendRecv, Whole::kOut},
};

std::optional<DType> dtype_of_scalar(std::string_view name) {
  struct Named {
    std::string_view name;
    DType dtype;
  };
  static constexpr Named kTypes[] = {
      {"Float", DType::kFp32},          {"BFloat16", DType::kBf16},
      {"Half", DType::kFp16},           {"Long", DType::kInt64},
      {"Int", DType::kInt32},           {"Byte", DType::kInt8},
      {"Char", DType::kInt8},           {"Bool", DType::kBool},
      {"Float8_e4m3fn", DType::kFp8},   {"Float8_e5m2", DType::kFp8},
      {"Float8_e4m3fnuz", DType::kFp8}, {"Float8_e5m2fnuz", DType::kFp8}};
  for (const Named& named : kTypes)
    if (named.name == name) return named.dtype;
  return std::nullopt;
}

/// The ranks, each once, or those of a group that is the whole job.
std::set<int64_t> stated_ranks(const TracedCollective& traced, int64_t world_size) {
  std::set<int64_t> ranks(traced.ranks.begin(), traced.ranks.end());
  constexpr int64_t kMost = int64_t{1} << 20;
  if (ranks.empty() && traced.group_size == world_size)
    for (int64_t rank = 0; rank < std::min(world_size, kMost); ++rank) ranks.insert(rank);
  return ranks;
}

}  // namespace

std::optional<KnownCollective> known_collective(const TracedCollective& traced) {
  const auto* const named =
      std::find_if(std::begin(kNamed), std::end(kNamed),
                   [&](const NamedCollective& one) { return one.name == traced.name; });
  const std::optional<DType> dtype = dtype_of_scalar(traced.dtype);
  if (named == std::end(kNamed) || !dtype) return std::nullopt;
  const int64_t elements = named->whole == Whole::kIn ? traced.in_elements : traced.out_elements;
  constexpr int64_t kMostElements = int64_t{1} << 50;
  if (elements < 1 || elements > kMostElements) return std::nullopt;
  return KnownCollective{named->kind, *dtype,
                         ceil_divide(checked_multiply(elements, dtype_bits(*dtype)), 8)};
}

std::optional<CommGroup> group_on(const TracedCollective& traced, int64_t world_size,
                                  const Cluster& cluster) {
  const std::set<int64_t> ranks = stated_ranks(traced, world_size);
  if (ranks.size() < 2) return std::nullopt;
  std::map<int64_t, std::vector<int64_t>> by_node;
  for (const int64_t rank : ranks) by_node[rank / cluster.gpus_per_node].push_back(rank);
  const auto most = std::max_element(
      by_node.begin(), by_node.end(),
      [](const auto& a, const auto& b) { return a.second.size() < b.second.size(); });
  const std::vector<int64_t>& fullest = most->second;
  CommGroup group{.ranks = static_cast<int64_t>(ranks.size()),
                  .ranks_per_node = static_cast<int64_t>(fullest.size())};
  if (fullest.size() > 1)
    group.stride = std::max<int64_t>(
        1, (fullest.back() - fullest.front()) / static_cast<int64_t>(fullest.size() - 1));
  // Each rank of the job is in one such group: those of a node share its links.
  const int64_t of_node =
      std::min(cluster.gpus_per_node, std::max(world_size, *ranks.rbegin() + 1));
  group.concurrent = std::max<int64_t>(1, of_node / group.ranks_per_node);
  return group;
}

std::optional<Interval> collective_there(const TracedCollective& traced, int64_t world_size,
                                         const Cluster& cluster) {
  const std::optional<KnownCollective> known = known_collective(traced);
  const std::optional<CommGroup> group = group_on(traced, world_size, cluster);
  if (!known || !group) return std::nullopt;
  const CollectiveTime time =
      collective_time(known->kind, known->bytes, known->dtype, *group,
                      with_nodes(cluster, std::max(cluster.nodes, nodes_of(*group))));
  return Interval{time.seconds, time.low_s, time.high_s};
}

std::string sizes_of(const TracedCollective& traced) {
  return fmt::format("{} elements, {} ranks",
                     format_integer(std::max(traced.in_elements, traced.out_elements)),
                     traced.group_size);
}

}  // namespace tilecast
