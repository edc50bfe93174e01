#include "graph/software.h"

#include <algorithm>

namespace tilecast {

const std::vector<std::string>& software_names() {
  static const std::vector<std::string> names = {"pytorch", "vllm", "sglang", "trtllm"};
  return names;
}

std::string_view software_name(Software software) {
  return software_names()[static_cast<size_t>(software)];
}

std::optional<Software> find_software(std::string_view name) {
  const std::vector<std::string>& names = software_names();
  const auto found = std::find(names.begin(), names.end(), name);
  if (found == names.end()) return std::nullopt;
  return static_cast<Software>(found - names.begin());
}

}  // namespace tilecast
