#pragma once

// Options with a fixed set of values, with the words that the command line, JSON and files use for
// them, in the order of the values.

#include <array>
#include <cstdint>
#include <string_view>

namespace tilecast {

enum class Mode : uint8_t { kInference, kTraining };
constexpr auto choice_words(Mode) {
  return std::array<std::string_view, 2>{"inference", "training"};
}

enum class Optimizer : uint8_t { kNone, kSgd, kAdam, kAdamW };
constexpr auto choice_words(Optimizer) {
  return std::array<std::string_view, 4>{"none", "sgd", "adam", "adamw"};
}

/// Eager: one kernel for each step of attention. Flash: one fused kernel.
enum class AttentionKind : uint8_t { kEager, kFlash };
constexpr auto choice_words(AttentionKind) {
  return std::array<std::string_view, 2>{"eager", "flash"};
}

/// Whether a chain of pointwise operators is fused into one kernel.
enum class Fusion : uint8_t { kNone, kPointwise };
constexpr auto choice_words(Fusion) { return std::array<std::string_view, 2>{"none", "pointwise"}; }

/// The software whose kernels run the operators. The last two are libraries of matrix products
/// whose kernels were measured alone: models are forecast with the others only.
enum class Software : uint8_t { kPyTorch, kVllm, kSglang, kTensorRtLlm, kRocBlas, kPipeWeave };
constexpr auto choice_words(Software) {
  return std::array<std::string_view, 6>{"pytorch", "vllm",    "sglang",
                                         "trtllm",  "rocblas", "pipeweave"};
}
constexpr bool runs_models(Software software) { return software < Software::kRocBlas; }

/// Predictors learned from measurements, or a roofline from the data sheet alone.
enum class PredictorKind : uint8_t { kLearned, kRoofline };
constexpr auto choice_words(PredictorKind) {
  return std::array<std::string_view, 2>{"learned", "roofline"};
}

}  // namespace tilecast
