#pragma once

// Memory of the software under the model: CUDA context, libraries, workspaces. The numbers are
// those of data/software.

#include <cstdint>

#include "software/software.h"

namespace tilecast {

/// All but the workspaces. vLLM, SGLang and TensorRT-LLM are processes of PyTorch, so their files
/// take over what was measured of it. Their own kernels add to it: how much was not measured.
int64_t framework_bytes(const SoftwareStack& stack, bool training);
/// The part that a process takes after its CUDA context is there: modules and libraries.
int64_t libraries_bytes(const SoftwareStack& stack, bool training);

/// The stack that forecasts assume where no software is asked for: eager PyTorch with lazily loaded
/// CUDA modules.
const SoftwareStack& default_stack();

/// Workspaces of a pass. `large`: of compute capability 9.0 and 10.0. Training has two handles:
/// one of the main thread and one of autograd's thread (aten/src/ATen/cuda/CublasHandlePool.cpp
/// keeps a pool of handles for each thread).
int64_t workspace_bytes(const SoftwareStack& stack, bool large, bool training);

}  // namespace tilecast
