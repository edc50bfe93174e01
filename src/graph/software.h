#pragma once

#include <optional>
#include <string_view>

#include "tilecast/choices.h"

namespace tilecast {

/// The word for it in choices.h.
std::string_view software_name(Software software);
/// nullopt where no software has that name.
std::optional<Software> find_software(std::string_view name);

}  // namespace tilecast
