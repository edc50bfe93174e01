#pragma once

// Bundled models, apart from files of the same name.

#include <optional>
#include <string>

#include "importers/model.h"

namespace tilecast {

/// The name of the bundled model that `load_model` would load; nullopt if there is a file or folder
/// of that name, or no such model.
std::optional<std::string> find_bundled_model(const std::string& name_or_path);

/// A bundled model by its name; throws Error{kNotFound} with the nearest names.
Model load_bundled_model(const std::string& name);

}  // namespace tilecast
