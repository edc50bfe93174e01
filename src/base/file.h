#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

namespace tilecast {

/// No model, device file, calibration or checkpoint is near this size: the largest published
/// config.json has some 100 kB, and graphs of whole models a few MB.
inline constexpr uint64_t kMaxFileBytes = uint64_t{64} << 20;

/// Whole content of a regular file of at most `most_bytes`. Pipes, devices and sockets are refused
/// without reading from them: they may never end. Throws Error{kNotFound}, Error{kIo}, or
/// Error{kInput} for a file that is too large.
std::string read_file(const std::filesystem::path& path, uint64_t most_bytes = kMaxFileBytes);

/// Whether a name that may stand for a bundled file is the path of a file: it ends in ".json" or
/// has a slash.
bool is_path(std::string_view name_or_path);

/// The first `most_bytes` of a regular file, or all of it if it is shorter. Errors as read_file.
std::string read_file_start(const std::filesystem::path& path, uint64_t most_bytes);

/// A regular file in memory; only the pages that are read are loaded. Throws as `read_file` does.
/// The file must not be shortened meanwhile.
class MappedFile {
 public:
  explicit MappedFile(const std::filesystem::path& path);
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;
  std::string_view content() const { return content_; }

 private:
  std::string_view content_;
};

/// Writes `content` to `path`, whole or not at all: a part file beside it is renamed at the end. A
/// link stays a link, its target is replaced; a file that is there keeps its permissions. Devices
/// and pipes, which cannot be renamed over, are written directly. Throws Error{kIo} where the
/// folder is missing, unwritable or full.
void write_file(const std::filesystem::path& path, std::string_view content);

/// From now on SIGINT, SIGTERM, SIGHUP and SIGQUIT remove the part files of unfinished writes
/// before they end the process. For programs: a library leaves the process's signals alone.
void remove_unfinished_files_on_signals();

}  // namespace tilecast
