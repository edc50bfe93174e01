#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/checked.h"
#include "ops/op_def.h"
#include "ops/sharding.h"
#include "ops/validate.h"
#include "passes/passes.h"
#include "passes/stage.h"
#include "tilecast/error.h"

namespace tilecast {
namespace {

class Sharder {
 public:
  Sharder(const Graph& from, const ShardForm& form)
      : from_(from),
        form_(form),
        ranks_(form.ranks),
        b_(to_),
        now_(from.tensors.size(), -1),
        placements_(from.tensors.size()),
        splits_(from.tensors.size(), nullptr) {
    for (const WeightSplit& split : from.splits) {
      if (is_divisible(split)) splits_[index(split.weight)] = &split;
    }
  }

  Graph run() {
    to_.name = from_.name;
    copy_given();
    for (const Segment& segment : from_.segments) {
      // Tensors carried between repetitions are replicated, or divided along the sequence.
      divides_rows_ = divides_rows_ || (form_.sequence_parallel && !segment.carries.empty());
      for (const Carry& carry : segment.carries) settle(carry.initial);
      b_.begin_segment(segment, segment.repeat);
      for (int32_t i = 0; i < segment.node_count; ++i)
        divide(from_.nodes[static_cast<size_t>(segment.first_node + i)]);
      for (const Carry& carry : segment.carries) {
        settle(carry.next);
        b_.carry(now_[index(carry.initial)], now_[index(carry.next)]);
      }
    }
    // In training, each rank computes the loss over its share of the vocabulary.
    for (const TensorId id : from_.outputs) {
      const Placement::Kind kind = placements_[index(id)].kind;
      if (!form_.training) gather_logits(id);
      if (!form_.training || kind == Placement::Kind::kPartialSum) settle(id);
      to_.outputs.push_back(now_[index(id)]);
    }
    return std::move(to_);
  }

 private:
  static constexpr size_t kHeads = 1;  ///< of [b, heads, s, s]

  static size_t index(TensorId id) { return static_cast<size_t>(id); }

  /// Training divides evenly. A vocabulary is padded before (`pad_vocabulary`); one that the ranks
  /// do not divide stays whole. Heads and FFNs have to be divisible.
  bool is_divisible(const WeightSplit& split) const {
    if (!form_.training) return true;
    for (const int64_t units : split.parts) {
      if (units % ranks_ == 0) continue;
      if (split.kind == SplitKind::kVocabulary) return false;
      // Ranks that outnumber the heads of keys and values share them. Sums over shared inputs would
      // count them several times.
      if (split.kind == SplitKind::kOutputs && ranks_ % units == 0) continue;
      throw Error(ErrorKind::kInput,
                  fmt::format("{}: `tp` {} does not divide the {} units (heads, or rows of an FFN) "
                              "of '{}'",
                              from_.name, ranks_, units, from_.tensor(split.weight).name));
    }
    return true;
  }

  /// Copies tensors that no node computes; of a divided weight, the rank's shard.
  void copy_given() {
    const std::vector<bool> made = made_tensors(from_);
    for (size_t id = 0; id < made.size(); ++id) {
      if (made[id]) continue;
      Tensor tensor = from_.tensors[id];
      tensor.storage =
          tensor.storage == static_cast<TensorId>(id) ? -1 : now_[index(tensor.storage)];
      if (const WeightSplit* split = splits_[id])
        tensor.shape[split->dim] = share_of(*split, ranks_);
      if (form_.sequence_parallel && is_received(tensor) && tensor.shape.size() == 3 &&
          tensor.shape[1] % ranks_ == 0) {
        tensor.shape[1] /= ranks_;
        placements_[id] = {.kind = Placement::Kind::kSharded, .dim = 1};
      }
      if (is_received_by_heads(static_cast<TensorId>(id)))
        tensor.shape[kHeads] = ceil_divide(tensor.shape[kHeads], ranks_);
      now_[id] = b_.tensor(std::move(tensor));
    }
  }

  /// Whether the part received a bias of attention (T5's, by relative positions). Each rank of the
  /// stage before computed the bias of its own heads.
  bool is_received_by_heads(TensorId id) const {
    const Tensor& tensor = from_.tensor(id);
    if (!is_received(tensor) || tensor.shape.size() != 4 || tensor.shape[kHeads] == 1) return false;
    constexpr auto kBias = 3;  // after queries, keys and values
    return std::any_of(from_.nodes.begin(), from_.nodes.end(), [&](const Node& node) {
      return op_def(node.op).shard == shard_heads &&
             std::find(node.inputs.begin() + std::min<ptrdiff_t>(kBias, std::ssize(node.inputs)),
                       node.inputs.end(), id) != node.inputs.end();
    });
  }

  /// Every rank gets the logits of the whole vocabulary, from which tokens are drawn. A tensor that
  /// is not divided by columns becomes whole like other tensors.
  void gather_logits(TensorId id) {
    Placement& placement = placements_[index(id)];
    TensorId& now = now_[index(id)];
    const size_t last = to_.tensor(now).shape.size() - 1;
    if (placement.kind != Placement::Kind::kSharded || placement.dim != last)
      return make_replicated(id);
    const std::string name = to_.tensor(now).name + ".all_gather";
    const RoleScope role(b_, b_.role_of_maker(now));
    now =
        b_.op("all_gather", {now}, name, {{"ranks", ranks_}, {"dim", static_cast<int64_t>(last)}});
    placement = {};
  }

  void divide(const Node& whole) {
    Node node = whole;
    ShardedNode n = sharded(whole, node);
    for (TensorId& id : node.inputs) {
      n.inputs.push_back(placements_[index(id)]);
      n.splits.push_back(splits_[index(id)]);
      id = now_[index(id)];
    }
    n.shared = node.inputs;
    n.shared_placements = n.inputs;
    const OpDef& op = op_def(node.op);
    const Shard rule = op.shard != nullptr  ? op.shard
                       : op.pointwise_flops ? shard_pointwise
                                            : shard_replicated;
    const Placement placement = rule(n);
    const RoleScope role(b_, whole.role);
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      now_[index(whole.inputs[i])] = n.shared[i];
      placements_[index(whole.inputs[i])] = n.shared_placements[i];
    }
    const std::vector<TensorId> outputs =
        b_.add(op.name, std::move(node.inputs), std::move(node.name), std::move(node.attributes));
    for (size_t i = 0; i < outputs.size(); ++i) {
      now_[index(whole.outputs[i])] = outputs[i];
      placements_[index(whole.outputs[i])] = placement;
    }
  }

  ShardedNode sharded(const Node& whole, Node& node) {
    ShardedNode n{b_, from_, whole, node, {}, {}, ranks_};
    n.training = form_.training;
    n.divides_rows = divides_rows_;
    n.entered = &entered_;
    return n;
  }

  /// Applies a change of placement to a tensor that no node of the whole model reads here.
  void change(TensorId id, void (ShardedNode::*how)(size_t)) {
    Node reader{.inputs = {now_[index(id)]}};
    ShardedNode n = sharded(reader, reader);
    n.inputs = {placements_[index(id)]};
    n.shared = reader.inputs;
    n.shared_placements = n.inputs;
    (n.*how)(0);
    now_[index(id)] = reader.inputs[0];
    placements_[index(id)] = n.inputs[0];
  }
  void settle(TensorId id) {
    change(id, &ShardedNode::settle);
    // Shards of a weight's split are not carried.
    if (placements_[index(id)].split != nullptr) make_replicated(id);
  }
  void make_replicated(TensorId id) { change(id, &ShardedNode::make_replicated); }

  const Graph& from_;
  const ShardForm form_;
  int64_t ranks_;
  bool divides_rows_ = false;
  std::map<TensorId, TensorId> entered_;
  Graph to_;
  GraphBuilder b_;
  std::vector<TensorId> now_;
  std::vector<Placement> placements_;
  std::vector<const WeightSplit*> splits_;
};

}  // namespace

Graph shard(const Graph& graph, const ShardForm& form) {
  if (form.ranks == 1) return graph;
  Graph result = Sharder(graph, form).run();
  validate_if_debug(result);
  return result;
}

}  // namespace tilecast
