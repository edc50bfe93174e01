#pragma once

#include <filesystem>
#include <string>
#include <string_view>

namespace tilecast {

/// Whole content of a file. Throws Error{kNotFound} or Error{kIo}.
std::string read_file(const std::filesystem::path& path);

/// Writes `content` to `path`, whole or not at all: a part file beside it is renamed at the end. A
/// link stays a link, its target is replaced; a file that is there keeps its permissions. Devices
/// and pipes, which cannot be renamed over, are written directly. Throws Error{kIo} where the
/// folder is missing, unwritable or full.
void write_file(const std::filesystem::path& path, std::string_view content);

/// From now on SIGINT, SIGTERM, SIGHUP and SIGQUIT remove the part files of unfinished writes
/// before they end the process. For programs: a library leaves the process's signals alone.
void remove_part_files_on_signals();

}  // namespace tilecast
