#pragma once

// Configs of models of several parts: the language model, and what is beside it.

#include <string>

#include "importers/huggingface/family.h"

namespace tilecast {

/// For a multimodal config, the field that holds the language model; "": none.
std::string text_field(const JsonObject& config);

/// The config of the language model in a multimodal config, completed by fields of the outer config
/// that apply to all parts.
Json multimodal_text(const JsonObject& config, const std::string& field);

/// Adds the vision tower to the language model, read from `field`, or a warning that names the
/// parts that are left out.
void add_other_parts(const JsonObject& config, const std::string& field, Model& model);

}  // namespace tilecast
