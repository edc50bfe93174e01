#pragma once

// What a request to a diffusion pipeline asks for, with the pipeline's defaults.

#include <optional>
#include <string>

#include "devices/device.h"
#include "importers/model.h"
#include "tilecast/request.h"
#include "tilecast/result.h"

namespace tilecast {

/// Fills in the defaults of the pipeline. Throws Error{kInput} for sizes and degrees that it does
/// not take, each with what it takes.
DiffusionPipeline::Batch complete_batch(const Model& model, Request& request);

/// Sets the dtype that pipelines are published for, bf16, or where the device has no unit for it
/// fp16, else fp32. Returns a warning if it is not bf16.
std::optional<Warning> choose_dtype(const Device& device, Request& request);

/// For titles: "1024 x 1024 pixels, 50 steps".
std::string describe_batch(const DiffusionPipeline::Batch& batch, const DiffusionPipeline& pipeline,
                           const DiffusionTerms& terms);

}  // namespace tilecast
