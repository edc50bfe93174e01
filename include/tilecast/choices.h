#pragma once

// Closed lists of values, which the command line and JSON name in words (request.h).

#include <cstdint>

namespace tilecast {

enum class Mode : uint8_t { kInference, kTraining };

enum class Optimizer : uint8_t { kNone, kSgd, kAdam, kAdamW };

/// Each step of attention launched by itself, or all as one fused kernel.
enum class AttentionKind : uint8_t { kEager, kFlash };

/// Whether chains of pointwise operators become one kernel.
enum class Fusion : uint8_t { kNone, kPointwise };

/// Whose kernels run the operators.
enum class Software : uint8_t { kPyTorch, kVllm, kSglang, kTensorRtLlm };

/// Learned from measurements, or the data sheet alone.
enum class PredictorKind : uint8_t { kLearned, kRoofline };

}  // namespace tilecast
