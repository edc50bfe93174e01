#include "memory/stack.h"

namespace tilecast {
namespace {

constexpr int64_t kKibi = 1024, kMebi = 1024 * kKibi;

constexpr SoftwareStack kPyTorch = {
    .name = "PyTorch 2.11, CUDA 13.0",
    // Measured on one H100 (driver 580) by research/memory/measure_memory.py. The rest that the
    // first step of a process loads was 8 MiB in inference, 64 MiB in FP32 training and 80 MiB in
    // BF16 training (context_bytes of data/measurements/nvidia-h100-sxm5-80gb/models.3.csv).
    .context_bytes = 552402944,
    .modules_bytes = 98566144,
    .libraries_bytes = 69206016,
    .inference_bytes = 8 * kMebi,
    .training_bytes = 64 * kMebi,
    // ":4096:2:16:8", in KiB and pieces
    .workspace_bytes = (2 * 4096 + 8 * 16) * kKibi,
    .workspace_large_bytes = 8 * 4096 * kKibi,
    .source =
        "measured by Tilecast on one H100; workspaces: aten/src/ATen/cuda/CublasHandlePool.cpp "
        "(parseChosenWorkspaceSize), seen in the same measurement"};

}  // namespace

const SoftwareStack& default_stack() { return kPyTorch; }

int64_t framework_bytes(const SoftwareStack& stack, bool training) {
  return stack.context_bytes + stack.modules_bytes + stack.libraries_bytes +
         (training ? stack.training_bytes : stack.inference_bytes);
}

int64_t workspace_bytes(const SoftwareStack& stack, bool large, bool training) {
  return (large ? stack.workspace_large_bytes : stack.workspace_bytes) * (training ? 2 : 1);
}

int64_t serving_framework_bytes() { return framework_bytes(kPyTorch, false); }

int64_t serving_workspace_bytes(bool large) { return workspace_bytes(kPyTorch, large, false); }

int64_t serving_libraries_bytes() { return serving_framework_bytes() - kPyTorch.context_bytes; }

}  // namespace tilecast
