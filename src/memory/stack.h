#pragma once

// Memory of the software under the model: CUDA context, libraries, workspaces.

#include <cstdint>
#include <string_view>

namespace tilecast {

/// A software stack. To put in measured numbers, edit the table in stack.cc; it is the only place.
struct SoftwareStack {
  std::string_view name;
  /// What a process adds to the memory in use on the card, less torch.cuda.memory_reserved.
  int64_t context_bytes = 0;    ///< CUDA context
  int64_t modules_bytes = 0;    ///< at the first tensor
  int64_t libraries_bytes = 0;  ///< cuBLAS, at the first product
  /// Modules of further kernels, which CUDA loads at their first launch.
  int64_t inference_bytes = 0, training_bytes = 0;
  /// cuBLAS workspace of one handle and stream, which PyTorch allocates like a tensor.
  int64_t workspace_bytes = 0;
  /// The same on GPUs of compute capability 9.0 and 10.0.
  int64_t workspace_large_bytes = 0;
  std::string_view source;
};

/// All but the workspaces.
int64_t framework_bytes(const SoftwareStack& stack, bool training);

/// The stack that forecasts assume: eager PyTorch with lazily loaded CUDA modules.
const SoftwareStack& default_stack();

/// Workspaces of a pass. Training has two handles: those
/// of the main thread and of autograd's thread (aten/src/ATen/cuda/CublasHandlePool.cpp keeps a
/// pool of handles for each thread).
int64_t workspace_bytes(const SoftwareStack& stack, bool large, bool training);

/// vLLM, SGLang and TensorRT-LLM are processes of PyTorch, so text generation assumes what was
/// measured of inference in PyTorch, with one handle. Their own kernels add to it: how much was not
/// measured.
int64_t serving_framework_bytes();
int64_t serving_workspace_bytes(bool large);
/// Of the framework, what a process takes after its CUDA context is there: modules and libraries.
int64_t serving_libraries_bytes();

}  // namespace tilecast
