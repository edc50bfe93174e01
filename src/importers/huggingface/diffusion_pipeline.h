#pragma once

// Pipelines of diffusers: text encoders, a denoiser and the decoder of an autoencoder.

#include <filesystem>
#include <vector>

#include "base/json.h"
#include "importers/huggingface/family.h"

namespace tilecast {

/// The classes of pipelines, denoisers and autoencoders.
std::vector<FamilyDef> diffusion_families();

/// The file beside the folders of a pipeline's components.
inline constexpr const char* kPipelineFile = "model_index.json";
/// The pipeline of a folder as one object: the components' configs by their names. Throws
/// Error{kNotFound} if a component's config is missing.
Json read_pipeline_folder(const std::filesystem::path& folder);

}  // namespace tilecast
