#include "memory/by_purpose.h"

#include "base/checked.h"

namespace tilecast {

int64_t block_bytes(int64_t bytes) {
  constexpr int64_t kBlock = 512;
  return checked_multiply(ceil_divide(bytes, kBlock), kBlock);
}

std::optional<MemoryUse> permanent_use(const Tensor& tensor, ZeroGrad zero_grad) {
  switch (tensor.kind) {
    case TensorKind::kWeight:
    case TensorKind::kBuffer:
      return MemoryUse::kWeights;
    case TensorKind::kCache:
      return MemoryUse::kCache;
    case TensorKind::kOptimizer:
      return MemoryUse::kOptimizer;
    case TensorKind::kInput:
      return MemoryUse::kInputs;
    case TensorKind::kGradient:
      if (zero_grad == ZeroGrad::kZeros) return MemoryUse::kGradients;
      break;
    case TensorKind::kActivation:
    case TensorKind::kReference:
    case TensorKind::kHost:
      break;
  }
  return std::nullopt;
}

BytesByUse permanent_bytes(const Graph& graph, ZeroGrad zero_grad) {
  BytesByUse bytes{};
  for (const Tensor& tensor : graph.tensors) {
    const std::optional<MemoryUse> use = permanent_use(tensor, zero_grad);
    if (!use) continue;
    int64_t& total = bytes[static_cast<size_t>(*use)];
    total = checked_add(total, checked_multiply(block_bytes(memory_bytes(tensor)),
                                                graph.repeat_of(tensor.segment)));
  }
  return bytes;
}

MemoryByPurpose memory_by_purpose(const Graph& graph, const LifetimeOptions& options) {
  MemoryByPurpose memory;
  for (const Tensor& tensor : graph.tensors) {
    const int64_t bytes = checked_multiply(memory_bytes(tensor), graph.repeat_of(tensor.segment));
    const auto add = [&](int64_t& total) { total = checked_add(total, bytes); };
    switch (tensor.kind) {
      case TensorKind::kWeight:
      case TensorKind::kBuffer:
        add(memory.weights_bytes);
        break;
      case TensorKind::kGradient:
        add(memory.gradients_bytes);
        break;
      case TensorKind::kCache:
        add(memory.cache_bytes);
        break;
      case TensorKind::kOptimizer:
        add(memory.optimizer_bytes);
        break;
      case TensorKind::kInput:
        add(memory.inputs_bytes);
        break;
      case TensorKind::kHost:
        add(memory.host_bytes);
        break;
      case TensorKind::kActivation:
      case TensorKind::kReference:
        break;
    }
  }
  const Lifetimes lifetimes = find_lifetimes(graph, options);
  memory.peak = find_peak(lifetimes);
  memory.activations_bytes = memory.peak.computed_bytes;
  memory.optimizer_temporaries_bytes = memory.peak.optimizer_computed_bytes;
  if (static_cast<size_t>(memory.peak.step) < lifetimes.steps.size())
    memory.peak_node = lifetimes.steps[static_cast<size_t>(memory.peak.step)].node;
  return memory;
}

}  // namespace tilecast
