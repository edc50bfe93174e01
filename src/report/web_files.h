#pragma once

// The files of web/, which the build puts into the program (cmake/web.cmake).

#include <span>
#include <string_view>

namespace tilecast {

struct WebFile {
  std::string_view name;  ///< "charts.js"
  std::string_view content;
};

/// Each file as it is, for a page whose modules import each other.
std::span<const WebFile> web_files();

/// All modules of a report as one script, and its style, with their hashes as a
/// Content-Security-Policy names them: "sha256-…".
std::string_view report_script();
std::string_view report_script_hash();
std::string_view report_style();
std::string_view report_style_hash();

}  // namespace tilecast
