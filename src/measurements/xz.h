#pragma once

#include <filesystem>
#include <string>

namespace tilecast {

/// The text of a file, unpacked if it ends in .xz. Throws Error.
std::string read_measurement_text(const std::filesystem::path& path);

/// Whether this build unpacks .xz files.
bool reads_xz();

}  // namespace tilecast
