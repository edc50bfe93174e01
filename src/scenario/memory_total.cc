#include "scenario/memory_total.h"

#include "base/checked.h"
#include "memory/stack.h"

namespace tilecast {
namespace {

/// Whether cuBLAS gets the larger workspace: compute capability 9.0 and 10.0.
bool has_large_workspace(const Device& device) {
  const Gpu* const gpu = device.as_gpu();
  if (gpu == nullptr) return false;
  // Consumer cards of Blackwell, without HBM, have compute capability 12.
  const bool hbm = gpu->memory_type >= MemoryType::kHbm2 && gpu->memory_type <= MemoryType::kHbm4;
  return gpu->architecture == Architecture::kHopper ||
         (gpu->architecture == Architecture::kBlackwell && hbm);
}

}  // namespace

int64_t visible_bytes(const Device& device) {
  // PyTorch's messages show "total capacity of" 79.1 GiB of 80 on H100 and A100, 31.7 of 32 on
  // V100, 23.6 of 24 on RTX 4090, 47.5 of 48 on RTX A6000; 44.4 of 48 on L40S, 22.0 of 24 on L4 and
  // A10, 14.6 of 16 on T4, which give a sixteenth to error correction.
  constexpr double kWhole = 0.988, kCorrected = 0.922;
  const Gpu* const gpu = device.as_gpu();
  const bool corrected = gpu != nullptr && gpu->inline_ecc == InlineEcc::kOn;
  return static_cast<int64_t>((corrected ? kCorrected : kWhole) *
                              static_cast<double>(device.memory_bytes));
}

int64_t workspace_bytes(const Device& device, const SoftwareStack& stack, Mode mode) {
  return workspace_bytes(stack, has_large_workspace(device), mode == Mode::kTraining);
}

Memory bare_rank(const Device& device, const SoftwareStack& stack, Mode mode) {
  return {.workspace_bytes = workspace_bytes(device, stack, mode),
          .framework_bytes = framework_bytes(stack, mode == Mode::kTraining),
          .device_bytes = visible_bytes(device),
          .usable_bytes = visible_bytes(device)};
}

void set_peak(Memory& memory, int64_t tensors_bytes) {
  memory.peak_bytes = checked_add(tensors_bytes, memory.overhead_bytes());
  memory.fits = memory.margin_bytes() >= 0;
}

void set_peak(PassMemory& memory) {
  int64_t tensors_bytes = 0;
  for (const NamedPart& part : kMemoryParts)
    tensors_bytes = checked_add(tensors_bytes, memory.at_peak.*part.bytes);
  set_peak(memory, tensors_bytes);
}

}  // namespace tilecast
