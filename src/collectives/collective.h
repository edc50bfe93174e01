#pragma once

// Time of collective operations between ranks. Goals: law first (steps, bytes, links of the
// topology file), then a residual learned from measured collectives, which depends on the kind of
// link and its rate, never on a device's name. Between nodes nearly nothing is measured: there the
// law stands alone, and the interval says so.

#include <cstdint>
#include <string_view>

#include "devices/cluster.h"
#include "graph/dtype.h"
#include "laws/constants.h"
#include "tilecast/choices.h"

namespace tilecast {

struct CollectiveWeights;  // weights.h

enum class CollectiveKind : uint8_t {
  kAllReduce,
  kAllGather,
  kReduceScatter,
  kAllToAll,
  kBroadcast,
  kSendRecv,
  kExpertDispatch,
  kExpertCombine,
};
constexpr auto choice_words(CollectiveKind) {
  return std::array<std::string_view, 8>{"all_reduce",      "all_gather",    "reduce_scatter",
                                         "all_to_all",      "broadcast",     "send_recv",
                                         "expert_dispatch", "expert_combine"};
}
constexpr size_t kCollectiveKindCount = choice_words(CollectiveKind{}).size();

enum class CollectiveAlgorithm : uint8_t {
  kNone,          ///< one rank or no bytes: nothing is sent
  kRing,          ///< neighbour to neighbour, all ranks in one ring
  kTree,          ///< up and down a binary tree of nodes
  kSwitch,        ///< the switch sums (NVLink SHARP)
  kDirect,        ///< every rank sends to each other
  kHierarchical,  ///< inside the nodes, then between them
  kOneShot,       ///< every rank reads all others and sums by itself
};
constexpr auto choice_words(CollectiveAlgorithm) {
  return std::array<std::string_view, 7>{"none",   "ring",         "tree",    "switch",
                                         "direct", "hierarchical", "one_shot"};
}

/// The ranks of one collective and where they are. Ranks fill nodes evenly.
struct CommGroup {
  int64_t ranks = 1;
  int64_t ranks_per_node = 1;  ///< of this group; at most `ranks`
  /// Groups of the same kind that share each node's links at the same time, this one included.
  int64_t concurrent = 1;
  /// Distance between neighbours inside a node, in GPUs: 1 for tensor parallelism, the tensor
  /// parallel width for data parallelism. Decides which links of a PCIe tree they use.
  int64_t stride = 1;
  bool operator==(const CommGroup&) const = default;
};

/// Bytes that one rank, and one node, send: for contention, and for tests of the algebra.
struct LinkUse {
  double link_bytes = 0;     ///< one rank sends over the links inside its node
  double network_bytes = 0;  ///< the group's ranks of one node send to other nodes, together
};

struct CollectiveTime {
  double seconds = 0;
  double low_s = 0;  ///< 80 % interval
  double high_s = 0;
  CollectiveAlgorithm algorithm = CollectiveAlgorithm::kNone;
  LinkUse use;
  /// The part of `seconds` that more bandwidth does not shorten: start-up and steps.
  double latency_s = 0;
  /// The transfer alone at the part of the links' rates that the law expects.
  double transfer_s = 0;
  double link_s = 0;  ///< the same at the full rates of the data sheets
  /// The parts of `seconds` in which it fills the links inside the nodes, and the links between
  /// nodes.
  double node_s = 0, network_s = 0;
  /// No measured collective of this kind of link, or between nodes: the law alone.
  bool extrapolated = false;
};

struct CollectiveOptions {
  /// Whose kernels run. PyTorch calls NCCL or RCCL; serving software has all-reduces of its own for
  /// small messages inside a node.
  Software software{};
  /// For kAllToAll, kExpertDispatch and kExpertCombine: the most that a rank sends or receives,
  /// over the mean; 1: even. All ranks wait for it.
  double imbalance = 1;
  /// nullptr: the bundled weights.
  const CollectiveWeights* weights = nullptr;
  /// nullptr: the bundled constants.
  const LawConstants* laws = nullptr;
};

/// Time of one collective: the same arguments give the same bits. Launch overhead is included as
/// far as the library's kernels have it, the host's is not.
///
/// `bytes`, as NCCL's tests count them, is the size of the whole buffer:
/// - all_reduce, broadcast: of each rank's buffer; send_recv: of the message;
/// - all_gather: of the result; reduce_scatter: of each rank's input, which is `ranks` results;
/// - all_to_all: of each rank's input; 1 / ranks of it goes to each rank, itself included;
/// - expert_dispatch: of the tokens that one rank sends out, one copy for each (token, rank) pair
///   that has an expert of the token; expert_combine: of the same copies on their way back. See
///   expert_exchange_time for DeepEP's kernels, which know tokens and experts.
/// Throws Error{kInput} for a group that the cluster does not hold, or less than no bytes.
CollectiveTime collective_time(CollectiveKind kind, int64_t bytes, DType dtype,
                               const CommGroup& group, const Cluster& cluster,
                               const CollectiveOptions& options = {});

/// An exchange of tokens between ranks that share the experts of a layer, by DeepEP's kernels.
struct ExpertExchange {
  int64_t tokens = 0;  ///< of one rank
  int64_t hidden_dim = 0;
  int64_t top_k = 1;        ///< experts that a token goes to
  int64_t num_experts = 1;  ///< on all ranks
  /// Dtype of the tokens sent out; results come back in bf16.
  DType dispatch_dtype = DType::kFp8;
  /// The kernels for decoding: one copy for each expert, straight to its rank. Else one copy for
  /// each rank, and between nodes one for each node.
  bool low_latency = false;
  int64_t sm_count = 20;  ///< that the normal kernels take; DeepEP's default
};

/// Time of kExpertDispatch or kExpertCombine. `imbalance` of the options as in collective_time.
CollectiveTime expert_exchange_time(CollectiveKind kind, const ExpertExchange& exchange,
                                    const CommGroup& group, const Cluster& cluster,
                                    const CollectiveOptions& options = {});

/// The ranks of a node that fills from its first GPU: `ranks` on as few nodes as possible.
CommGroup packed_group(int64_t ranks, const Cluster& cluster);

}  // namespace tilecast
