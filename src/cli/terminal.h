#pragma once

#include <string>
#include <vector>

#include "tilecast/report.h"

namespace tilecast {

/// How tables are written to `path`, or to standard output where it is "". Width: COLUMNS, else
/// the terminal's, else 80. Colors: on a terminal; NO_COLOR and CLICOLOR=0 take them away,
/// CLICOLOR_FORCE brings them into pipes. Files have none.
TableStyle output_style(const std::string& path);

/// Writes to the file, or to standard output where the path is "" or "-", then the warnings to
/// standard error, a line each. Throws Error{kIo}. A reader that has gone ("| head") ends the
/// program silently with status 0.
void emit(const std::string& text, const std::string& path,
          const std::vector<std::string>& warnings = {});

/// "tilecast: message" on standard error.
void print_error(const std::string& message);

}  // namespace tilecast
