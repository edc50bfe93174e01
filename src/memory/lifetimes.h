#pragma once

// When each tensor of a training step or an inference pass is in memory.

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "graph/graph.h"
#include "tilecast/choices.h"

namespace tilecast {

/// Purpose of a block of memory.
enum class MemoryUse : uint8_t {
  kWeights,      ///< parameters and buffers
  kGradients,    ///< of parameters, once they are accumulated
  kOptimizer,    ///< optimizer states
  kActivations,  ///< what the forward pass computes and the backward pass reads
  kTemporaries,  ///< other tensors that nodes compute
  kLoss,         ///< the model's outputs, the loss and its gradient
  kInputs,       ///< inputs of the model, labels
  kCache,        ///< keys and values of earlier tokens
};
inline constexpr size_t kMemoryUseCount = 8;
using BytesByUse = std::array<int64_t, kMemoryUseCount>;

/// The use of a tensor that is in memory all the time; nullopt: it comes and goes, or has no
/// memory.
std::optional<MemoryUse> permanent_use(const Tensor& tensor, ZeroGrad zero_grad);

/// PyTorch's allocator rounds each block up to 512 bytes (c10/cuda/CUDACachingAllocator.cpp,
/// kMinBlockSize). Throws Error{kInput} on overflow.
int64_t block_bytes(int64_t bytes);

/// The run of one node. Where repetitions are folded, repetition 1 stands for all between the first
/// and the last.
struct NodeRun {
  int32_t node = 0;
  int32_t segment = 0;
  int32_t repetition = 0;
};

/// A tensor's memory from step `born` to step `last`, both included.
struct Lifetime {
  TensorId tensor = -1;
  int64_t bytes = 0;  ///< of one copy, rounded
  MemoryUse use = MemoryUse::kTemporaries;
  int32_t born = 0;
  int32_t last = 0;
  /// From this step on, the memory is the gradient of a parameter; -1: never. autograd keeps the
  /// first gradient of a parameter without a copy (torch/csrc/autograd/functions/
  /// accumulate_grad.h).
  int32_t gradient_from = -1;
  /// Where repetitions are folded, further copies of the repetitions that are not run. They are in
  /// memory from step `more_born` to step `more_last`.
  int64_t more = 0;
  int32_t more_born = 0;
  int32_t more_last = 0;
};

/// How memory is counted.
struct LifetimeOptions {
  /// Segments with more than three repetitions run three: the first, the last, and one for all
  /// between them. Memory changes by the same amount in each of those, so the peak is at one of the
  /// three. False: every repetition is a step of its own.
  bool folded = true;
  ZeroGrad zero_grad = ZeroGrad::kSetToNone;
  /// The outputs go to another pipeline stage and are freed, unless the backward pass reads them
  /// (Megatron-LM's deallocate_pipeline_outputs; Llama 3, section 3.3.2).
  bool outputs_sent = false;
};

struct Lifetimes {
  std::vector<NodeRun> steps;       ///< in order of execution
  std::vector<Lifetime> lifetimes;  ///< of tensors that nodes compute, in order of birth
  BytesByUse permanent_bytes{};     ///< in memory all the time
  int32_t optimizer_from = 0;       ///< its first step is of the optimizer; their number: none is
};

/// Bytes that are in memory all the time. Throws Error{kInput} if bytes overflow 64 bits.
BytesByUse permanent_bytes(const Graph& graph, ZeroGrad zero_grad);

/// A tensor lives from the node that computes it to the last node that reads it; tensors that the
/// backward pass reads are those that autograd saves. Views keep their memory alive, autocast's
/// copies of weights live to the end of the forward pass, the model's outputs and the loss to the
/// end of the backward pass. Throws Error{kInput} if bytes overflow 64 bits.
Lifetimes find_lifetimes(const Graph& graph, const LifetimeOptions& options);

}  // namespace tilecast
