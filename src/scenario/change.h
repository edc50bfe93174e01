#pragma once

// Changes of options that could make a request fit: what searches for remedies have in common.

#include <optional>
#include <string>
#include <vector>

#include "tilecast/error.h"
#include "tilecast/request.h"

namespace tilecast {

/// New values of options that are changed together.
using Change = std::vector<GivenOption>;

Request changed(Request request, const Change& change);

/// Both changes; nullopt if both set an option.
std::optional<Change> joined(const Change& a, const Change& b);

/// All pairs of changes that can be joined, the values of `a` in the outer loop.
std::vector<Change> pairs_of(const std::vector<Change>& a, const std::vector<Change>& b);

/// "--tp 2 --dtype fp8", with what separates the options.
std::string flags_of(const Change& change, const std::string& separator = " ");

/// What `result` returns; nullopt where the device or the model cannot do what is asked: a dtype
/// that the device does not support, ranks that do not divide the heads, …
template <typename Result>
auto if_possible(const Result& result) -> std::optional<decltype(result())> {
  try {
    return result();
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::kInternal) throw;
    return std::nullopt;
  }
}

/// The first change with which `fits` is true; nullptr: none.
template <typename Fits>
const Change* first_that_fits(const std::vector<Change>& changes, const Fits& fits) {
  for (const Change& change : changes) {
    if (if_possible([&] { return fits(change); }).value_or(false)) return &change;
  }
  return nullptr;
}

}  // namespace tilecast
