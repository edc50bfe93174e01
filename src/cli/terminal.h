#pragma once

#include <string>
#include <vector>

#include "tilecast/view.h"

namespace tilecast {

/// The style of tables written to `path`, or to standard output if it is "". Width: COLUMNS, else
/// the terminal's, else 80. Colors: on terminals; NO_COLOR and CLICOLOR=0 turn them off,
/// CLICOLOR_FORCE turns them on for pipes. Never in files. It has the command line that was kept.
TableStyle output_style(const std::string& path);

/// Keeps the command line, which reports show. Words are quoted as a shell needs it.
void keep_command_line(int argc, char** argv);

/// Writes to the file, or to standard output if the path is "" or "-", then the warnings to
/// standard error, one per line. Throws Error{kIo}. If the reader of a pipe has exited ("| head"),
/// the program ends silently with status 0.
void emit(const std::string& text, const std::string& path,
          const std::vector<std::string>& warnings = {});

/// Writes "tilecast: message" to standard error.
void print_error(const std::string& message);

}  // namespace tilecast
