#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tilecast/choices.h"

namespace tilecast {

/// "pytorch", "vllm", "sglang", "trtllm".
const std::vector<std::string>& software_names();
std::string_view software_name(Software software);
std::optional<Software> find_software(std::string_view name);

}  // namespace tilecast
