#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tilecast {

/// Whose kernels run the operators.
enum class Software : uint8_t { kPyTorch, kVllm, kSglang, kTensorRtLlm };

/// "pytorch", "vllm", "sglang", "trtllm".
const std::vector<std::string>& software_names();
std::string_view software_name(Software software);
std::optional<Software> find_software(std::string_view name);

/// Where a kernel's operands lie when it starts.
enum class Caches : uint8_t {
  kCold,  ///< in DRAM, as in a model, where other layers come in between
  kWarm,  ///< in L2 as far as they fit, as when a benchmark replays a kernel
};

/// What a kernel's time depends on beside its work and the device.
struct Conditions {
  Software software = Software::kPyTorch;
  Caches caches = Caches::kCold;
  bool operator==(const Conditions&) const = default;
};

}  // namespace tilecast
