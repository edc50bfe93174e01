#include "memory/replay.h"

#include "memory/allocator.h"

namespace tilecast {
namespace {

class Replay {
 public:
  Replay(const Graph& graph, const Lifetimes& lifetimes)
      : graph_(graph), lifetimes_(lifetimes), held_(lifetimes.lifetimes.size()) {
    const size_t steps = lifetimes.steps.size();
    born_.resize(steps);
    dead_.resize(steps);
    for (size_t i = 0; i < lifetimes.lifetimes.size(); ++i) {
      born_[static_cast<size_t>(lifetimes.lifetimes[i].born)].push_back(i);
      dead_[static_cast<size_t>(lifetimes.lifetimes[i].last)].push_back(i);
    }
  }

  void allocate_permanent(ZeroGrad zero_grad, int64_t workspace_bytes) {
    for (const Tensor& tensor : graph_.tensors) {
      if (!permanent_use(tensor, zero_grad)) continue;
      for (int64_t r = 0; r < graph_.repeat_of(tensor.segment); ++r) {
        for (const int64_t bytes : pieces(tensor)) allocator_.allocate(bytes);
      }
    }
    if (workspace_bytes > 0) allocator_.allocate(workspace_bytes);
  }

  void run_pass() {
    for (size_t step = 0; step < born_.size(); ++step) {
      for (const size_t i : born_[step]) {
        for (const int64_t bytes : pieces(graph_.tensor(lifetimes_.lifetimes[i].tensor)))
          held_[i].push_back(allocator_.allocate(bytes));
      }
      for (const size_t i : dead_[step]) {
        for (const CachingAllocator::BlockId block : held_[i]) allocator_.free(block);
        held_[i].clear();
      }
    }
  }

  AllocatorResult result() const {
    return {allocator_.max_allocated_bytes(), allocator_.reserved_bytes()};
  }

 private:
  /// The tensors that a flat tensor of the optimizer stands for: one of each parameter of its
  /// dtype, if their elements agree.
  std::vector<int64_t> pieces(const Tensor& flat) const {
    if (flat.kind != TensorKind::kOptimizer && !is_of_step(flat.segment))
      return {tensor_bytes(flat)};
    std::vector<int64_t> bytes;
    int64_t elements = 0;
    for (const Tensor& tensor : graph_.tensors) {
      if (tensor.kind != TensorKind::kWeight || tensor.frozen || tensor.dtype != flat.dtype)
        continue;
      const int64_t repeat = graph_.repeat_of(tensor.segment);
      elements += element_count(tensor.shape) * repeat;
      bytes.insert(bytes.end(), static_cast<size_t>(repeat), tensor_bytes(tensor));
    }
    if (elements != element_count(flat.shape)) return {tensor_bytes(flat)};
    return bytes;
  }

  /// Whether the segment is part of the optimizer's step.
  bool is_of_step(int32_t index) const {
    if (index < 0) return false;
    const Segment& segment = graph_.segments[static_cast<size_t>(index)];
    return segment.node_count > 0 &&
           graph_.nodes[static_cast<size_t>(segment.first_node)].phase == Phase::kOptimizer;
  }

  const Graph& graph_;
  const Lifetimes& lifetimes_;
  CachingAllocator allocator_;
  std::vector<std::vector<size_t>> born_, dead_;  // lifetimes by step
  std::vector<std::vector<CachingAllocator::BlockId>> held_;
};

}  // namespace

AllocatorResult replay_allocations(const Graph& graph, const Lifetimes& lifetimes,
                                   ZeroGrad zero_grad, int64_t workspace_bytes) {
  Replay replay(graph, lifetimes);
  replay.allocate_permanent(zero_grad, workspace_bytes);
  constexpr int kPasses = 2;
  for (int i = 0; i < kPasses; ++i) replay.run_pass();
  return replay.result();
}

}  // namespace tilecast
