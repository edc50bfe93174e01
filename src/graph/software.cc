#include "graph/software.h"

#include <algorithm>

namespace tilecast {
namespace {

constexpr auto kWords = choice_words(Software{});

}  // namespace

std::string_view software_name(Software software) { return kWords[static_cast<size_t>(software)]; }

std::optional<Software> find_software(std::string_view name) {
  const auto* const found = std::find(kWords.begin(), kWords.end(), name);
  if (found == kWords.end()) return std::nullopt;
  return static_cast<Software>(found - kWords.begin());
}

}  // namespace tilecast
