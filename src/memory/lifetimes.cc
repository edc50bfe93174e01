#include "memory/lifetimes.h"

#include <algorithm>
#include <utility>

#include "base/checked.h"
#include "memory/structure.h"

namespace tilecast {
namespace {

constexpr int32_t kFoldedRepeat = 3;

/// One instance of a tensor: each repetition of its segment has its own.
struct Instance {
  int32_t born = -1;
  int32_t last = -1;
  int32_t born_block = -1;  ///< the repetition of a segment that makes it
  int32_t last_block = -1;
  int32_t gradient_from = -1;
  bool carried_only = true;  ///< its readers are its own and the next repetition of its segment
};

struct BlockOfSteps {  // one repetition of a segment
  int32_t segment = 0;
  int32_t last_step = 0;
  Phase phase = Phase::kForward;
};

class Walk {
 public:
  Walk(const Graph& graph, const LifetimeOptions& options)
      : graph_(graph), options_(options), storage_(find_storage(graph)) {
    size_t total = 0;
    offsets_.reserve(graph.tensors.size());
    for (const Tensor& tensor : graph.tensors) {
      offsets_.push_back(total);
      total += static_cast<size_t>(runs_of(tensor.segment));
    }
    instances_.resize(total);
    has_variables_ = std::any_of(graph.tensors.begin(), graph.tensors.end(),
                                 [](const Tensor& tensor) { return tensor.held >= Held::kLayer; });
  }

  Lifetimes run() {
    for (size_t s = 0; s < graph_.segments.size(); ++s) {
      const auto segment = static_cast<int32_t>(s);
      for (int32_t r = 0; r < runs_of(segment); ++r) run_body(segment, r);
    }
    keep_outputs();
    result_.permanent_bytes = permanent_bytes(graph_, options_.zero_grad);
    collect();
    return std::move(result_);
  }

 private:
  int32_t runs_of(int32_t segment) const {
    const int64_t repeat = graph_.repeat_of(segment);
    return static_cast<int32_t>(options_.folded ? std::min<int64_t>(repeat, kFoldedRepeat)
                                                : repeat);
  }

  int32_t current_block() const { return static_cast<int32_t>(blocks_.size()) - 1; }

  /// nullptr if the tensor has no memory.
  Instance* instance(TensorId id, int32_t repetition) {
    const TensorId owner = storage_[static_cast<size_t>(id)];
    if (owner < 0) return nullptr;
    const int32_t runs = runs_of(graph_.tensor(owner).segment);
    return &instances_[offsets_[static_cast<size_t>(owner)] +
                       static_cast<size_t>(std::clamp(repetition, 0, runs - 1))];
  }

  void touch(TensorId id, int32_t repetition, bool carried = false) {
    Instance* const found = instance(id, repetition);
    if (found == nullptr) return;
    found->last = step_;
    found->last_block = current_block();
    if (!carried && found->last_block != found->born_block) found->carried_only = false;
  }

  /// Touches the instance of tensor `id` that the body of `segment` reads in a repetition.
  void read(int32_t index, TensorId id, int32_t repetition) {
    const Segment& segment = graph_.segments[static_cast<size_t>(index)];
    const int32_t home = graph_.tensor(id).segment;
    if (home == index) return touch(id, repetition);
    for (const Carry& carry : segment.carries) {
      if (carry.initial == id && repetition > 0) return touch(carry.next, repetition - 1, true);
    }
    if (segment.reverses) {
      const int32_t mirrored = runs_of(index) - 1 - repetition;
      if (home == *segment.reverses) return touch(id, mirrored);
      for (const Carry& carry : graph_.segments[static_cast<size_t>(*segment.reverses)].carries) {
        if (carry.initial == id && mirrored > 0) return touch(carry.next, mirrored - 1);
      }
    }
    touch(id, runs_of(home) - 1);  // of the last repetition of another segment
  }

  void run_body(int32_t index, int32_t repetition) {
    const Segment& segment = graph_.segments[static_cast<size_t>(index)];
    blocks_.push_back({.segment = index, .last_step = step_});
    const int32_t first_step = step_;
    for (int32_t i = 0; i < segment.node_count; ++i) {
      const int32_t n = segment.first_node + i;
      const Node& node = graph_.nodes[static_cast<size_t>(n)];
      blocks_.back().phase = node.phase;
      if (node.counts == Counts::kTimeOnly) continue;
      if (node.phase != Phase::kForward) end_forward(current_block() - 1);
      result_.steps.push_back({n, index, repetition});
      run_node(node, index, repetition);
      keep_scores(node, index, repetition);
      ++step_;
    }
    blocks_.back().last_step = std::max(step_ - 1, 0);
    if (step_ > first_step) hold_variables(index, repetition, first_step);
  }

  bool makes_memory(const Node& node) const {
    return std::any_of(node.outputs.begin(), node.outputs.end(),
                       [&](TensorId id) { return storage_[static_cast<size_t>(id)] == id; });
  }

  /// Extends the lives of tensors that Python variables hold: attention's weights to the end of the
  /// layer, inputs of a sublayer (its norm, queries, keys, values) to the residual sum after it,
  /// embeddings to the end of the layers after them.
  void hold_variables(int32_t index, int32_t repetition, int32_t first_step) {
    const Segment& segment = graph_.segments[static_cast<size_t>(index)];
    const std::vector<bool> ends = layer_ends(graph_, segment);
    int32_t step = step_ - 1, residual = step_, layer_end = step_ - 1, next_end = -1;
    std::vector<TensorId> returned;  // of the last layer, held to the end of the next one
    bool computes = false;           // after the sum there is more than variables and views
    for (int32_t i = segment.node_count - 1; i >= 0; --i) {
      const Node& node = graph_.nodes[static_cast<size_t>(segment.first_node + i)];
      if (node.counts == Counts::kTimeOnly) continue;
      if (ends[static_cast<size_t>(i)] && computes) {
        if (has_variables_ && node.phase == Phase::kForward)
          hold(node.outputs[0], repetition, layer_end);
        next_end = layer_end;
        layer_end = step;
      }
      for (const TensorId id : node.outputs) {
        const Held held = graph_.tensor(id).held;
        if (held < Held::kLayer) continue;
        hold(id, repetition, node.attention_core ? layer_end : residual - 1);
        if (held == Held::kNextLayer && next_end >= 0) hold(id, repetition, next_end);
        if (held == Held::kNextLayer && next_end < 0) returned.push_back(id);
        if (index == 0 && segment.repeat == 1) embeddings_.push_back(id);
      }
      if (node.role == Role::kResidual) residual = std::max(step, first_step + 1);
      computes = computes || makes_memory(node);
      --step;
    }
    for (const TensorId id : returned) {
      if (repetition > 0) hold(id, repetition - 1, layer_end, true);
    }
    if (has_variables_) hold_layer_inputs(segment, repetition);
    if (index != 1 || repetition + 1 < runs_of(index)) return;
    if (embeddings_.empty() && has_variables_) {  // not tables but, of images, a convolution
      for (const Carry& carry : segment.carries) embeddings_.push_back(carry.initial);
    }
    for (const TensorId id : embeddings_) hold(id, 0, step_ - 1);
  }

  /// `hidden = layer(hidden)`: the variable of the caller keeps the input until the layer returns.
  /// Where a body has several layers, only the first one's input is known, and not held.
  void hold_layer_inputs(const Segment& segment, int32_t repetition) {
    if (!is_one_layer(graph_, segment)) return;
    --step_;  // the last of the layer
    for (const Carry& carry : segment.carries) {
      if (repetition > 0) {
        touch(carry.next, repetition - 1, true);
      } else {
        touch(carry.initial, runs_of(graph_.tensor(carry.initial).segment) - 1);
      }
    }
    ++step_;
  }

  void hold(TensorId id, int32_t repetition, int32_t until, bool carried = false) {
    Instance* const found = instance(id, repetition);
    if (found == nullptr || found->born < 0 || found->last >= until) return;
    found->last = until;
    found->last_block = current_block();
    if (!carried && found->last_block != found->born_block) found->carried_only = false;
  }

  /// `scores = softmax(scores, dtype=torch.float32).to(dtype)`: the variable keeps the scores while
  /// they are cast, through the softmax and the cast back. `softmax(scores + mask)` keeps those
  /// without the mask too.
  void keep_scores(const Node& node, int32_t index, int32_t repetition) {
    const bool softmax =
        node.attention_core && node.phase == Phase::kForward && node.role == Role::kSoftmax;
    if (!softmax || scores_ < 0) scores_ = softmax ? node.inputs[0] : -1;
    if (softmax) read(index, scores_, repetition);
    for (const TensorId id : node.outputs) {
      if (graph_.tensor(id).held == Held::kSoftmax) unmasked_ = id;
    }
    if (softmax && unmasked_ >= 0) read(index, std::exchange(unmasked_, -1), repetition);
  }

  void run_node(const Node& node, int32_t index, int32_t repetition) {
    if (!node.inputs.empty() && graph_.tensor(node.inputs[0]).kind == TensorKind::kGradient)
      return accumulate(node, index, repetition);
    for (const TensorId id : node.inputs) read(index, id, repetition);
    for (const TensorId id : node.outputs) {
      Instance* const made = instance(id, repetition);
      if (made == nullptr) continue;
      if (storage_[static_cast<size_t>(id)] == id) {
        made->born = step_;
        made->born_block = current_block();
      }
      made->last = std::max(made->last, step_);
      made->last_block = std::max(made->last_block, current_block());
    }
  }

  /// Adds to a parameter's gradient.
  struct Accumulation {
    TensorId total_id;
    Instance* total;
    Instance* added;  ///< nullptr: none of the graph's activations
    int64_t total_bytes, added_bytes;
    int32_t step, block;
  };

  /// Whether a segment computes the tensor, or the forward pass that it belongs to, once (gradients
  /// that a fused loss computes).
  bool is_made_by(const Tensor& tensor, int32_t index) const {
    const Segment& segment = graph_.segments[static_cast<size_t>(index)];
    const bool before = segment.reverses == tensor.segment && segment.repeat == 1;
    return tensor.kind == TensorKind::kActivation && (tensor.segment == index || before);
  }

  void accumulate(const Node& node, int32_t index, int32_t repetition) {
    const TensorId total = node.inputs[0], added = node.inputs[1];
    const Segment& segment = graph_.segments[static_cast<size_t>(index)];
    const int32_t mirrored = segment.reverses ? runs_of(index) - 1 - repetition : repetition;
    read(index, added, repetition);
    const TensorId owner = storage_[static_cast<size_t>(added)];
    const bool own = owner >= 0 && is_made_by(graph_.tensor(owner), index);
    accumulations_.push_back(
        {total, instance(total, mirrored), own ? instance(added, repetition) : nullptr,
         memory_bytes(graph_.tensor(total)), own ? memory_bytes(graph_.tensor(owner)) : 0, step_,
         current_block()});
  }

  /// The first gradient of a parameter becomes the stored one if nothing else reads it.
  void settle_gradients() {
    for (const Accumulation& a : accumulations_) {
      // autograd adds the gradients of a weight that is used twice to a new tensor.
      if (a.total->born >= 0)
        result_.lifetimes.push_back(
            {a.total_id, block_bytes(a.total_bytes), MemoryUse::kTemporaries, a.step, a.step});
      if (options_.zero_grad == ZeroGrad::kZeros || a.total->born >= 0) continue;
      a.total->born = a.step;
      a.total->born_block = a.block;
      a.total->last = step_ - 1;
      a.total->last_block = current_block();
      a.total->carried_only = false;
      if (a.added == nullptr || a.added->last != a.step || a.added->gradient_from >= 0 ||
          a.added_bytes != a.total_bytes)
        continue;
      a.added->gradient_from = a.step;
      a.added->last = a.total->last;
      a.added->last_block = a.total->last_block;
      a.added->carried_only = false;
      a.total->last = -1;  // no memory of its own
    }
  }

  /// Autocast keeps its copies of weights until the forward pass ends.
  void end_forward(int32_t last_block) {
    if (forward_ended_) return;
    forward_ended_ = true;
    for (size_t t = 0; t < graph_.tensors.size(); ++t) {
      if (!graph_.tensors[t].cached) continue;
      for (int32_t r = 0; r < runs_of(graph_.tensors[t].segment); ++r) {
        Instance& copy = instances_[offsets_[t] + static_cast<size_t>(r)];
        if (copy.born < 0) continue;
        copy.last = std::max(copy.last, step_ - 1);
        copy.last_block = std::max(copy.last_block, last_block);
        copy.carried_only = false;
      }
    }
  }

  /// Outputs and losses live to the end of the backward pass, or of inference.
  void keep_outputs() {
    end_forward(current_block());
    int32_t end = step_ - 1;
    result_.optimizer_from = step_;
    for (size_t i = 0; i < result_.steps.size(); ++i) {
      const Node& node = graph_.nodes[static_cast<size_t>(result_.steps[i].node)];
      if (node.phase == Phase::kOptimizer) {
        end = std::max<int32_t>(static_cast<int32_t>(i) - 1, 0);
        result_.optimizer_from = static_cast<int32_t>(i);
        break;
      }
    }
    const std::vector<TensorId> sent;
    for (const auto* ids : {options_.outputs_sent ? &sent : &graph_.outputs, &graph_.losses}) {
      for (const TensorId id : *ids) {
        const TensorId owner = storage_[static_cast<size_t>(id)];
        if (owner < 0) continue;
        Instance* const kept = instance(id, runs_of(graph_.tensor(owner).segment) - 1);
        if (kept->born < 0) continue;
        kept->last = std::max(kept->last, end);
        kept->carried_only = false;
      }
    }
    settle_gradients();
  }

  MemoryUse use_of(TensorId id, int32_t repetition, const Instance& made) const {
    const Tensor& tensor = graph_.tensor(id);
    if (tensor.kind == TensorKind::kGradient) return MemoryUse::kGradients;
    if (is_output_[static_cast<size_t>(id)] && repetition == runs_of(tensor.segment) - 1)
      return MemoryUse::kLoss;
    if (!graph_.losses.empty()) {
      const int32_t loss = graph_.tensor(graph_.losses.front()).segment;
      const Segment& segment = graph_.segments[static_cast<size_t>(tensor.segment)];
      if (tensor.segment == loss || segment.reverses == loss) return MemoryUse::kLoss;
    }
    const auto phase = [&](int32_t block) { return blocks_[static_cast<size_t>(block)].phase; };
    const bool saved =
        phase(made.born_block) == Phase::kForward && phase(made.last_block) != Phase::kForward;
    return saved ? MemoryUse::kActivations : MemoryUse::kTemporaries;
  }

  void collect() {
    is_output_.assign(graph_.tensors.size(), false);
    for (const TensorId id : graph_.outputs) {
      const TensorId owner = storage_[static_cast<size_t>(id)];
      if (owner >= 0) is_output_[static_cast<size_t>(owner)] = true;
    }
    for (size_t t = 0; t < graph_.tensors.size(); ++t) {
      const Tensor& tensor = graph_.tensors[t];
      const bool made =
          tensor.kind == TensorKind::kActivation || tensor.kind == TensorKind::kGradient;
      if (!made || static_cast<size_t>(storage_[t]) != t) continue;
      const int64_t bytes = block_bytes(memory_bytes(tensor));
      for (int32_t r = 0; r < runs_of(tensor.segment); ++r)
        add(static_cast<TensorId>(t), r, bytes, instances_[offsets_[t] + static_cast<size_t>(r)]);
    }
  }

  void add(TensorId id, int32_t repetition, int64_t bytes, const Instance& made) {
    if (made.born < 0 || made.last < made.born || bytes == 0) return;
    Lifetime life{.tensor = id,
                  .bytes = bytes,
                  .use = use_of(id, repetition, made),
                  .born = made.born,
                  .last = made.last,
                  .gradient_from = made.gradient_from};
    const int64_t hidden = graph_.repeat_of(graph_.tensor(id).segment) - kFoldedRepeat;
    if (options_.folded && repetition == 1 && hidden > 0 && !made.carried_only) {
      life.more = hidden;
      life.more_born = blocks_[static_cast<size_t>(made.born_block)].last_step + 1;
      life.more_last = blocks_[static_cast<size_t>(made.last_block)].last_step;
    }
    result_.lifetimes.push_back(life);
  }

  const Graph& graph_;
  const LifetimeOptions options_;
  const std::vector<TensorId> storage_;
  std::vector<size_t> offsets_;  ///< by tensor: its first instance
  std::vector<Instance> instances_;
  std::vector<BlockOfSteps> blocks_;
  std::vector<Accumulation> accumulations_;
  std::vector<bool> is_output_;
  std::vector<TensorId> embeddings_;  ///< that variables hold
  Lifetimes result_;
  TensorId scores_ = -1;    ///< of attention, while their softmax is computed; -1: none
  TensorId unmasked_ = -1;  ///< scores that are held through the softmax; -1: none
  int32_t step_ = 0;
  bool forward_ended_ = false;
  bool has_variables_ = false;  ///< of PyTorch's code, not of serving software
};

}  // namespace

Lifetimes find_lifetimes(const Graph& graph, const LifetimeOptions& options) {
  return Walk(graph, options).run();
}

}  // namespace tilecast
