#pragma once

// What a report runs and how it looks: made of web/ by cmake/web.cmake.

#include <string_view>

namespace tilecast {

std::string_view report_script();
std::string_view report_style();

/// As a Content-Security-Policy names them: "sha256-…".
std::string_view report_script_hash();
std::string_view report_style_hash();

}  // namespace tilecast
