#include "graph/software.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "tilecast/error.h"

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

Software parse_software(std::string_view name, const std::string& where) {
  if (const std::optional<Software> found = find_software(name)) return *found;
  const std::vector<std::string> known = software_names();
  throw Error(ErrorKind::kInput,
              fmt::format("{}: unknown value '{}'{}; known: {}", where, shown_name(name),
                          did_you_mean(name, known), join(known, ", ")));
}

std::vector<std::string> software_names() { return {kWords.begin(), kWords.end()}; }

}  // namespace tilecast
