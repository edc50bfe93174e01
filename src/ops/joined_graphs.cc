#include "ops/joined_graphs.h"

#include <utility>

#include "ops/op_def.h"
#include "ops/validate.h"

namespace tilecast {

std::vector<TensorId> JoinedGraphs::add(const Graph& from, const Before& before) {
  std::vector<TensorId> now(from.tensors.size(), -1);
  const auto place = [&](TensorId id) -> TensorId& { return now[static_cast<size_t>(id)]; };
  const auto first = static_cast<int32_t>(to_.segments.size());
  const std::vector<bool> made = made_tensors(from);
  for (size_t id = 0; id < made.size(); ++id) {
    if (made[id]) continue;
    Tensor tensor = from.tensors[id];
    tensor.storage = -1;
    if (tensor.segment >= 0) tensor.segment += first;
    now[id] = b_.tensor(std::move(tensor));
  }
  for (const Segment& segment : from.segments) {
    b_.set_role(Role::kNone);
    if (before) before(segment, now);
    b_.begin_segment(segment, segment.repeat);
    for (int32_t i = segment.first_node; i < segment.first_node + segment.node_count; ++i) {
      const Node& node = from.nodes[static_cast<size_t>(i)];
      std::vector<TensorId> inputs;
      for (const TensorId id : node.inputs) inputs.push_back(place(id));
      b_.set_role(node.role);
      b_.set_counts(node.counts);
      b_.set_attention_core(node.attention_core);
      const std::vector<TensorId> outputs =
          b_.add(op_def(node.op).name, std::move(inputs), node.name, node.attributes);
      for (size_t o = 0; o < outputs.size(); ++o) {
        place(node.outputs[o]) = outputs[o];
        to_.tensor(outputs[o]).held = from.tensor(node.outputs[o]).held;
      }
    }
    b_.set_counts(Counts::kAll);
    b_.set_attention_core(false);
    for (const Carry& carry : segment.carries) b_.carry(place(carry.initial), place(carry.next));
  }
  for (WeightSplit split : from.splits) {
    split.weight = place(split.weight);
    to_.splits.push_back(split);
  }
  return now;
}

}  // namespace tilecast
