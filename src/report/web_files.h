#pragma once

// What reports are made of: modules and styles of web/, which the build puts into the program
// (cmake/web.cmake).

#include <string_view>

namespace tilecast {

/// All modules of a report as one script, and its style, with their hashes as a
/// Content-Security-Policy names them: "sha256-…".
std::string_view report_script();
std::string_view report_script_hash();
std::string_view report_style();
std::string_view report_style_hash();

}  // namespace tilecast
