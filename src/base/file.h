#pragma once

#include <filesystem>
#include <string>
#include <string_view>

namespace tilecast {

/// Whole content of a file. Throws Error{kNotFound} or Error{kIo}.
std::string read_file(const std::filesystem::path& path);

/// Writes `content` to `path`, whole or not at all: a temporary file beside it is renamed at the
/// end. Throws Error{kIo} where the folder is missing, unwritable or full. Devices and pipes, which
/// cannot be renamed over, are written directly.
void write_file(const std::filesystem::path& path, std::string_view content);

}  // namespace tilecast
