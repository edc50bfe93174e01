#include "passes/stage.h"

#include <algorithm>
#include <utility>

#include "base/checked.h"
#include "ops/op_def.h"
#include "ops/sharding.h"
#include "ops/validate.h"

namespace tilecast {
namespace {

class Part {
 public:
  Part(const Graph& from, const LayerRange& layers)
      : from_(from),
        layers_(layers),
        b_(to_),
        maker_(from.tensors.size(), -1),
        now_(from.tensors.size(), -1),
        segment_(from.segments.size(), -1),
        included_(from.nodes.size(), false),
        read_(from.tensors.size(), false) {}

  Graph run() {
    to_.name = from_.name;
    for (size_t i = 0; i < from_.nodes.size(); ++i) {
      for (const TensorId id : from_.nodes[i].outputs) maker_[index(id)] = static_cast<int32_t>(i);
      for (const TensorId id : from_.nodes[i].inputs) read_[index(id)] = true;
    }
    repeat_ = segment_runs(from_, layers_);
    find_needed();
    int32_t next = needs_prologue_ ? 1 : 0;
    for (size_t s = 0; s < repeat_.size(); ++s) {
      if (repeat_[s] > 0) segment_[s] = next++;
    }
    copy_given();
    if (needs_prologue_) prologue();
    for (size_t s = 0; s < repeat_.size(); ++s) {
      if (repeat_[s] > 0) copy_segment(s);
    }
    set_outputs();
    for (WeightSplit split : from_.splits) {
      split.weight = now_[index(split.weight)];
      if (split.weight >= 0) to_.splits.push_back(split);
    }
    return std::move(to_);
  }

 private:
  static size_t index(TensorId id) { return static_cast<size_t>(id); }

  bool is_included(int32_t node) const { return included_[static_cast<size_t>(node)]; }

  /// Whether the node can be computed from the shapes that the part has.
  bool depends_on_shapes_only(const Node& node) const {
    if (op_def(node.op).shard == shard_sizes) return true;
    return std::all_of(node.inputs.begin(), node.inputs.end(), [&](TensorId id) {
      const int32_t made = maker_[index(id)];
      return made >= 0 ? depends_on_shapes_only(from_.nodes[static_cast<size_t>(made)])
                       : from_.tensor(id).kind != TensorKind::kWeight &&
                             from_.tensor(id).kind != TensorKind::kInput;
    });
  }

  /// Marks the nodes of the part, and what they need of others.
  void find_needed() {
    std::vector<TensorId> open;
    for (size_t s = 0; s < repeat_.size(); ++s) {
      if (repeat_[s] == 0) continue;
      const Segment& segment = from_.segments[s];
      for (int32_t i = segment.first_node; i < segment.first_node + segment.node_count; ++i) {
        included_[static_cast<size_t>(i)] = true;
        const Node& node = from_.nodes[static_cast<size_t>(i)];
        open.insert(open.end(), node.inputs.begin(), node.inputs.end());
      }
      for (const Carry& carry : segment.carries) open.push_back(carry.initial);
    }
    used_.assign(from_.tensors.size(), false);
    while (!open.empty()) {
      const TensorId id = open.back();
      open.pop_back();
      if (used_[index(id)]) continue;
      used_[index(id)] = true;
      const int32_t made = maker_[index(id)];
      if (made < 0 || is_included(made)) continue;
      needs_prologue_ = true;
      const Node& node = from_.nodes[static_cast<size_t>(made)];
      if (!depends_on_shapes_only(node)) continue;  // received
      extra_.push_back(made);
      open.insert(open.end(), node.inputs.begin(), node.inputs.end());
    }
  }

  void copy_given() {
    for (size_t id = 0; id < from_.tensors.size(); ++id) {
      // Weights that nothing reads stay where the model starts.
      const bool unread = layers_.has_start && !read_[id] &&
                          from_.tensors[id].kind == TensorKind::kWeight &&
                          from_.tensors[id].segment < 0;
      if (maker_[id] >= 0 || (!used_[id] && !unread)) continue;
      Tensor tensor = from_.tensors[id];
      tensor.storage = -1;
      const int32_t own = tensor.segment < 0 ? -1 : segment_[static_cast<size_t>(tensor.segment)];
      tensor.segment = own;
      if (tensor.kind == TensorKind::kWeight) tensor.origin = static_cast<TensorId>(id);
      now_[id] = b_.tensor(std::move(tensor));
    }
  }

  /// Tensors that the part receives, and tensors that it computes again.
  void prologue() {
    b_.begin_segment("received", 1);
    to_.segments.back().role = Role::kReceived;
    std::sort(extra_.begin(), extra_.end());
    for (size_t id = 0; id < from_.tensors.size(); ++id) {
      const int32_t made = maker_[id];
      if (!used_[id] || made < 0 || is_included(made) ||
          std::binary_search(extra_.begin(), extra_.end(), made))
        continue;
      // Two tensors of one shape that the part reads from outside are the hidden state before and
      // after the layers of other parts.
      const Tensor& tensor = from_.tensors[id];
      now_[id] = received_with(tensor);
      if (now_[id] >= 0) continue;
      now_[id] = b_.tensor({.name = "pipeline.received." + tensor.name,
                            .shape = tensor.shape,
                            .dtype = tensor.dtype,
                            .kind = TensorKind::kInput,
                            .role = Role::kReceived});
    }
    for (const int32_t node : extra_) copy_node(from_.nodes[static_cast<size_t>(node)]);
  }

  TensorId received_with(const Tensor& like) const {
    for (size_t i = 0; i < to_.tensors.size(); ++i) {
      const Tensor& tensor = to_.tensors[i];
      if (is_received(tensor) && tensor.shape == like.shape && tensor.dtype == like.dtype)
        return static_cast<TensorId>(i);
    }
    return -1;
  }

  void copy_segment(size_t s) {
    const Segment& segment = from_.segments[s];
    b_.begin_segment(segment, repeat_[s]);
    for (int32_t i = segment.first_node; i < segment.first_node + segment.node_count; ++i)
      copy_node(from_.nodes[static_cast<size_t>(i)]);
    if (!segment.carries.empty()) sent_.clear();
    for (const Carry& carry : segment.carries) {
      b_.carry(now_[index(carry.initial)], now_[index(carry.next)]);
      sent_.push_back(now_[index(carry.next)]);
    }
  }

  void copy_node(const Node& node) {
    std::vector<TensorId> inputs;
    for (const TensorId id : node.inputs) inputs.push_back(now_[index(id)]);
    b_.set_counts(node.counts);
    b_.set_role(node.role);
    const std::vector<TensorId> outputs =
        b_.add(op_def(node.op).name, std::move(inputs), node.name, node.attributes);
    for (size_t i = 0; i < node.outputs.size(); ++i) now_[index(node.outputs[i])] = outputs[i];
  }

  /// The model's outputs, or what the next part gets.
  void set_outputs() {
    for (const TensorId id : from_.outputs) {
      const int32_t made = maker_[index(id)];
      if (made >= 0 && is_included(made)) to_.outputs.push_back(now_[index(id)]);
    }
    if (!to_.outputs.empty()) return;
    to_.outputs = sent_;
    if (!sent_.empty()) return;
    // A part without layers: what the first layers get.
    const auto first = std::find_if(from_.segments.begin(), from_.segments.end(),
                                    [](const Segment& s) { return s.is_layers(); });
    if (first == from_.segments.end()) return;
    for (const Carry& carry : first->carries) to_.outputs.push_back(now_[index(carry.initial)]);
  }

  const Graph& from_;
  const LayerRange layers_;
  Graph to_;
  GraphBuilder b_;
  std::vector<int32_t> maker_;  ///< by tensor: the node that computes it; -1: none
  std::vector<TensorId> now_;
  std::vector<int64_t> repeat_;   ///< by segment: how often it runs here
  std::vector<int32_t> segment_;  ///< by segment: its index here; -1: it is not in the part
  std::vector<bool> included_;    ///< by node
  std::vector<bool> used_;        ///< by tensor
  std::vector<bool> read_;        ///< by tensor: by a node of any part
  std::vector<int32_t> extra_;    ///< nodes of other parts that are computed again
  bool needs_prologue_ = false;
  std::vector<TensorId> sent_;  ///< what the next part gets
};

}  // namespace

int64_t layer_count(const Graph& modules) {
  int64_t layers = 0;
  for (const Segment& segment : modules.segments) {
    if (segment.is_layers()) layers = checked_add(layers, segment.repeat);
  }
  return layers;
}

std::vector<int64_t> segment_runs(const Graph& modules, const LayerRange& layers) {
  std::vector<int64_t> runs;
  const int64_t all = layer_count(modules), end = layers.first + layers.count;
  int64_t layer = 0;
  for (const Segment& segment : modules.segments) {
    if (segment.is_layers()) {
      const int64_t first = std::max(layer, layers.first);
      const int64_t last = std::min(layer + segment.repeat, end);
      runs.push_back(std::max<int64_t>(0, last - first));
      layer += segment.repeat;
      continue;
    }
    const bool mine = layer == 0     ? layers.has_start
                      : layer == all ? layers.has_end
                                     : layers.first < layer && layer <= end;
    runs.push_back(mine ? segment.repeat : 0);
  }
  return runs;
}

Graph part_of(const Graph& modules, const LayerRange& layers) {
  if (layers.has_start && layers.has_end) return modules;
  Graph part = Part(modules, layers).run();
  validate_if_debug(part);
  return part;
}

bool is_received(const Tensor& tensor) {
  return tensor.kind == TensorKind::kInput && tensor.role == Role::kReceived;
}

std::vector<TensorId> received_inputs(const Graph& graph) {
  std::vector<TensorId> ids;
  for (size_t i = 0; i < graph.tensors.size(); ++i) {
    if (is_received(graph.tensors[i])) ids.push_back(static_cast<TensorId>(i));
  }
  return ids;
}

std::vector<TensorId> shared_weights(const Graph& first, const Graph& second) {
  std::vector<TensorId> shared;
  for (size_t i = 0; i < first.tensors.size(); ++i) {
    const Tensor& tensor = first.tensors[i];
    if (tensor.kind != TensorKind::kWeight || tensor.segment > 0 || tensor.origin < 0) continue;
    const auto same = [&](const Tensor& other) {
      return other.kind == TensorKind::kWeight && other.origin == tensor.origin &&
             other.segment < 0;
    };
    if (std::any_of(second.tensors.begin(), second.tensors.end(), same))
      shared.push_back(static_cast<TensorId>(i));
  }
  return shared;
}

}  // namespace tilecast
