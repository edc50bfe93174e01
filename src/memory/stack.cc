#include "memory/stack.h"

namespace tilecast {
namespace {

constexpr int64_t kKiB = 1024, kMiB = 1024 * kKiB;

constexpr SoftwareStack kPyTorch = {
    .name = "PyTorch 2, CUDA 12",
    // A guess: nvidia-smi shows 0.3 to 0.6 GiB for such processes before the first tensor. Jobs of
    // older stacks, which load all kernels at once, show up to 1.4 GiB. A measurement of nvidia-smi
    // less memory_reserved settles it.
    .framework_bytes = 450 * kMiB,
    // ":4096:2:16:8", in KiB and pieces
    .workspace_bytes = (2 * 4096 + 8 * 16) * kKiB,
    .workspace_large_bytes = 8 * 4096 * kKiB,
    .source =
        "aten/src/ATen/cuda/CublasHandlePool.cpp (parseChosenWorkspaceSize); framework: a "
        "guess"};

}  // namespace

const SoftwareStack& default_stack() { return kPyTorch; }

int64_t workspace_bytes(const SoftwareStack& stack, bool large, bool training) {
  return (large ? stack.workspace_large_bytes : stack.workspace_bytes) * (training ? 2 : 1);
}

}  // namespace tilecast
