#include "scenario/memory_total.h"

#include "base/checked.h"
#include "devices/vendor.h"
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
  if (device.is_slice) return device.memory_bytes;
  const Gpu* const gpu = device.as_gpu();
  auto memory = static_cast<double>(device.memory_bytes);
  // Error correction within the memory takes a sixteenth: nvidia-smi shows 23,034 MiB of an L4's
  // 24,576.
  constexpr double kLeftByCorrection = 15.0 / 16;
  if (gpu != nullptr && gpu->inline_ecc == InlineEcc::kOn) memory *= kLeftByCorrection;
  // NVIDIA's driver keeps an image for the processor of the GPU (GSP, from Turing on) and a share
  // for its tables. Two cards' exact totals give both numbers: 25,250,627,584 bytes of an RTX 4090,
  // and 79.19 GiB of an H100 (0.95 of it is 75.23 GiB in vLLM's log). PyTorch's "total capacity of"
  // agrees: 39.4 GiB of an A100's 40, 139.8 of an H200's 141, 22.0 of an L4 and 44.4 of an L40S.
  constexpr double kFirmware = 352.0 * (1 << 20), kTables = 0.0058;
  // The same messages of older cards: 31.7 GiB of a V100's 32, 15.9 of a P100's 16.
  constexpr double kOlder = 0.01;
  // Of other vendors: a guess. No exact total of an AMD GPU was at hand.
  constexpr double kOthers = 0.012;
  if (gpu == nullptr || is_amd(gpu->architecture) || is_systolic(gpu->architecture))
    return static_cast<int64_t>(memory * (1 - kOthers));
  if (gpu->architecture < Architecture::kTuring) return static_cast<int64_t>(memory * (1 - kOlder));
  return static_cast<int64_t>(memory * (1 - kTables) - kFirmware);
}

int64_t workspace_bytes(const Device& device, const SoftwareStack& stack, Mode mode) {
  const int64_t cublas =
      workspace_bytes(stack, has_large_workspace(device), mode == Mode::kTraining);
  return checked_add(cublas, extension_workspace_bytes(device, stack));
}

int64_t extension_workspace_bytes(const Device& device, const SoftwareStack& stack) {
  return has_large_workspace(device) ? stack.extension_workspace_large_bytes
                                     : stack.extension_workspace_bytes;
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
