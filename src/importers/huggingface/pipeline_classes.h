#pragma once

// The classes of pipelines of diffusers, and what they take by default.

#include <cstdint>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "importers/huggingface/denoiser.h"

namespace tilecast {

struct EncoderUse {
  const char* component;
  int64_t tokens;  ///< of a prompt, filled up
  /// The field of the denoiser that is as wide as this encoder's result, or as the results of all
  /// encoders with the same field side by side.
  int64_t DenoiserConfig::* width;
};

/// A pipeline's class: what `__call__` of diffusers takes by default.
struct PipelineDef {
  std::string_view class_name;
  std::string_view doc;
  std::vector<EncoderUse> encoders;
  std::vector<int64_t> text_tokens;  ///< that the denoiser reads
  int64_t steps = 0, height = 0, width = 0, frames = 1;
  double guidance = 0, fps = 0;
  bool distilled = false;   ///< the scale of guidance is an input of the denoiser
  bool two_passes = false;  ///< of guidance, one after the other; else one of twice the batch
};
const std::vector<PipelineDef>& pipeline_classes();

/// Throws Error{kUnsupported} for a network that the class does not run, of which the forecast
/// would be silent: Wan 2.2's second denoiser. Safety checkers are left out of all forecasts.
void refuse_other_networks(const PipelineDef& def, const JsonObject& config);

}  // namespace tilecast
