#include "scenario/change.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "request/access.h"

namespace tilecast {

Request changed(Request request, const Change& change) {
  for (const GivenOption& one : change)
    set_option(request, *find_option(one.name, request.kind), one.text);
  return request;
}

std::optional<Change> joined(const Change& a, const Change& b) {
  const auto sets = [&](const GivenOption& option) {
    return std::any_of(a.begin(), a.end(),
                       [&](const GivenOption& own) { return own.name == option.name; });
  };
  if (std::any_of(b.begin(), b.end(), sets)) return std::nullopt;
  Change both = a;
  both.insert(both.end(), b.begin(), b.end());
  return both;
}

std::vector<Change> pairs_of(const std::vector<Change>& a, const std::vector<Change>& b) {
  std::vector<Change> pairs;
  for (const Change& first : a) {
    for (const Change& second : b) {
      if (std::optional<Change> both = joined(first, second)) pairs.push_back(*std::move(both));
    }
  }
  return pairs;
}

std::string flags_of(const Change& change, const std::string& separator) {
  std::vector<std::string> flags;
  for (const GivenOption& option : change)
    flags.push_back(fmt::format("--{} {}", option.name, option.text));
  return join(flags, separator);
}

}  // namespace tilecast
