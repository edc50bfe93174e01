#pragma once

#include <string>
#include <string_view>

namespace tilecast {

/// The line of python/tilecast/_core.pyi after which the classes of results stand.
inline constexpr std::string_view kStubsMarker =
    "# Results: made by tools/generate.sh, do not edit.\n";

/// The classes of all results for type checkers. A class `_Name` in `head`, the part of the file
/// before them, is the base of `Name`.
std::string result_stubs(std::string_view head);

/// docs/reference/results.md: all results with their fields.
std::string result_reference();

}  // namespace tilecast
