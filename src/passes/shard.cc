#include <utility>

#include "ops/op_def.h"
#include "ops/sharding.h"
#include "ops/validate.h"
#include "passes/passes.h"

namespace tilecast {
namespace {

class Sharder {
 public:
  Sharder(const Graph& from, int64_t ranks)
      : from_(from),
        ranks_(ranks),
        b_(to_),
        now_(from.tensors.size(), -1),
        placements_(from.tensors.size()),
        splits_(from.tensors.size(), nullptr) {
    for (const WeightSplit& split : from.splits) splits_[index(split.weight)] = &split;
  }

  Graph run() {
    to_.name = from_.name;
    copy_given();
    for (const Segment& segment : from_.segments) {
      // Tensors carried between repetitions are replicated.
      for (const Carry& carry : segment.carries) make_replicated(carry.initial);
      b_.begin_segment(segment.name, segment.repeat);
      for (int32_t i = 0; i < segment.node_count; ++i)
        divide(from_.nodes[static_cast<size_t>(segment.first_node + i)]);
      for (const Carry& carry : segment.carries) {
        make_replicated(carry.next);
        b_.carry(now_[index(carry.initial)], now_[index(carry.next)]);
      }
    }
    // Gathering the shards of logits is modelled as an all-reduce.
    for (const TensorId id : from_.outputs) {
      make_replicated(id);
      to_.outputs.push_back(now_[index(id)]);
    }
    return std::move(to_);
  }

 private:
  static size_t index(TensorId id) { return static_cast<size_t>(id); }

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
      now_[id] = b_.tensor(std::move(tensor));
    }
  }

  void divide(const Node& whole) {
    Node node = whole;
    ShardedNode n{b_, from_, whole, node, {}, {}, ranks_};
    for (TensorId& id : node.inputs) {
      n.inputs.push_back(placements_[index(id)]);
      n.splits.push_back(splits_[index(id)]);
      id = now_[index(id)];
    }
    const OpDef& op = op_def(node.op);
    const Shard rule = op.shard != nullptr  ? op.shard
                       : op.pointwise_flops ? shard_pointwise
                                            : shard_replicated;
    const Placement placement = rule(n);
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      now_[index(whole.inputs[i])] = node.inputs[i];
      placements_[index(whole.inputs[i])] = n.inputs[i];
    }
    const std::vector<TensorId> outputs =
        b_.add(op.name, std::move(node.inputs), std::move(node.name), std::move(node.attributes));
    for (size_t i = 0; i < outputs.size(); ++i) {
      now_[index(whole.outputs[i])] = outputs[i];
      placements_[index(whole.outputs[i])] = placement;
    }
  }

  void make_replicated(TensorId id) {
    Node reader{.inputs = {now_[index(id)]}};
    ShardedNode n{b_, from_, reader, reader, {placements_[index(id)]}, {}, ranks_};
    n.make_replicated(0);
    now_[index(id)] = reader.inputs[0];
    placements_[index(id)] = {};
  }

  const Graph& from_;
  int64_t ranks_;
  Graph to_;
  GraphBuilder b_;
  std::vector<TensorId> now_;
  std::vector<Placement> placements_;
  std::vector<const WeightSplit*> splits_;
};

}  // namespace

Graph shard(const Graph& graph, int64_t ranks) {
  if (ranks == 1) return graph;
  Graph result = Sharder(graph, ranks).run();
  validate_if_debug(result);
  return result;
}

}  // namespace tilecast
