#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tilecast/choices.h"

namespace tilecast {

/// The word for it in choices.h.
std::string_view software_name(Software software);
/// nullopt where no software has that name.
std::optional<Software> find_software(std::string_view name);
/// Throws Error{kInput} with the known names.
Software parse_software(std::string_view name, const std::string& where);
/// All, in the order of the values.
std::vector<std::string> software_names();

}  // namespace tilecast
