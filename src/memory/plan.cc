#include "memory/plan.h"

#include <algorithm>
#include <vector>

#include "base/checked.h"

namespace tilecast {
namespace {

/// Lifetimes of tensors in the graph with all repetitions expanded: each tensor of a repeated body
/// has one instance per repetition. Times are positions in the order of execution.
class Lifetimes {
 public:
  explicit Lifetimes(const Graph& graph) : graph_(graph) {
    offsets_.reserve(graph.tensors.size());
    size_t total = 0;
    for (const Tensor& tensor : graph.tensors) {
      offsets_.push_back(total);
      total += static_cast<size_t>(graph.repeat_of(tensor.segment));
    }
    last_use_.assign(total, -1);
    born_.assign(total, -1);
  }

  int64_t peak() {
    walk();
    for (TensorId id : graph_.outputs) {
      const Tensor& storage = graph_.tensor(graph_.tensor(id).storage);
      last_use_[instance(graph_.tensor(id).storage, graph_.repeat_of(storage.segment) - 1)] = time_;
    }
    return sweep();
  }

 private:
  size_t instance(TensorId id, int64_t repetition) const {
    const int64_t repeat = graph_.repeat_of(graph_.tensor(id).segment);
    return offsets_[static_cast<size_t>(id)] +
           static_cast<size_t>(std::clamp<int64_t>(repetition, 0, repeat - 1));
  }

  void touch(TensorId id, int64_t repetition) {
    last_use_[instance(graph_.tensor(id).storage, repetition)] = time_;
  }

  /// The instance of tensor `id` that the body of `segment` reads in a repetition.
  void read(const Segment& segment, int32_t index, TensorId id, int64_t repetition) {
    const int32_t home = graph_.tensor(id).segment;
    if (home == index) return touch(id, repetition);
    for (const Carry& carry : segment.carries) {
      if (carry.initial == id && repetition > 0) return touch(carry.next, repetition - 1);
    }
    if (segment.reverses) {
      const int64_t mirrored = segment.repeat - 1 - repetition;
      if (home == *segment.reverses) return touch(id, mirrored);
      for (const Carry& carry : graph_.segments[static_cast<size_t>(*segment.reverses)].carries) {
        if (carry.initial == id && mirrored > 0) return touch(carry.next, mirrored - 1);
      }
    }
    // A tensor of another segment: the instance of its last repetition.
    touch(id, graph_.repeat_of(home) - 1);
  }

  /// Autocast keeps its copies of weights until the forward pass ends.
  void touch_cached() {
    for (size_t t = 0; t < graph_.tensors.size(); ++t) {
      if (!graph_.tensors[t].cached) continue;
      for (int64_t r = 0; r < graph_.repeat_of(graph_.tensors[t].segment); ++r)
        touch(static_cast<TensorId>(t), r);
    }
  }

  void walk() {
    bool forward = true;
    for (size_t s = 0; s < graph_.segments.size(); ++s) {
      const Segment& segment = graph_.segments[s];
      for (int64_t r = 0; r < segment.repeat; ++r) {
        for (int32_t i = 0; i < segment.node_count; ++i, ++time_) {
          const Node& node = graph_.nodes[static_cast<size_t>(segment.first_node + i)];
          if (forward && node.phase != Phase::kForward) {
            touch_cached();
            forward = false;
          }
          for (TensorId id : node.inputs) read(segment, static_cast<int32_t>(s), id, r);
          for (TensorId id : node.outputs) {
            const size_t made = instance(graph_.tensor(id).storage, r);
            if (graph_.tensor(id).storage == id) born_[made] = time_;
            last_use_[made] = std::max(last_use_[made], time_);
          }
        }
      }
    }
    if (forward) touch_cached();
  }

  int64_t sweep() const {
    std::vector<int64_t> change(static_cast<size_t>(time_) + 2, 0);
    for (size_t t = 0; t < graph_.tensors.size(); ++t) {
      const Tensor& tensor = graph_.tensors[t];
      if (tensor.kind != TensorKind::kActivation || static_cast<size_t>(tensor.storage) != t)
        continue;
      const int64_t bytes = tensor_bytes(tensor);
      for (int64_t r = 0; r < graph_.repeat_of(tensor.segment); ++r) {
        const size_t i = offsets_[t] + static_cast<size_t>(r);
        if (born_[i] < 0) continue;
        int64_t& rise = change[static_cast<size_t>(born_[i])];
        rise = checked_add(rise, bytes);
        change[static_cast<size_t>(last_use_[i]) + 1] -= bytes;
      }
    }
    int64_t live = 0;
    int64_t peak = 0;
    for (int64_t step : change) {
      live = checked_add(live, step);
      peak = std::max(peak, live);
    }
    return peak;
  }

  const Graph& graph_;
  std::vector<size_t> offsets_;
  std::vector<int64_t> last_use_;
  std::vector<int64_t> born_;
  int64_t time_ = 0;
};

}  // namespace

MemoryPlan plan_memory(const Graph& graph) {
  MemoryPlan plan;
  bool trained = false;
  for (const Node& node : graph.nodes) trained = trained || node.phase != Phase::kForward;
  for (const Tensor& tensor : graph.tensors) {
    const int64_t bytes = checked_multiply(memory_bytes(tensor), graph.repeat_of(tensor.segment));
    const auto add = [&](int64_t& total) { total = checked_add(total, bytes); };
    switch (tensor.kind) {
      case TensorKind::kWeight:
        add(plan.weights_bytes);
        if (trained) add(plan.gradients_bytes);
        break;
      case TensorKind::kBuffer:
        add(plan.weights_bytes);
        break;
      case TensorKind::kCache:
        add(plan.cache_bytes);
        break;
      case TensorKind::kOptimizer:
        add(plan.optimizer_bytes);
        break;
      case TensorKind::kInput:
        add(plan.inputs_bytes);
        break;
      case TensorKind::kActivation:
      case TensorKind::kGradient:
      case TensorKind::kReference:
        break;
    }
  }
  plan.activations_bytes = Lifetimes(graph).peak();
  return plan;
}

}  // namespace tilecast
