#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace tilecast {

/// No model, device file, calibration or checkpoint is near this size: the largest published
/// config.json has some 100 kB, and graphs of whole models a few MB.
inline constexpr uint64_t kMaxFileBytes = uint64_t{64} << 20;

/// Whole content of a regular file of at most `most_bytes`. Pipes, devices and sockets are refused
/// without reading from them: they may never end. Throws Error{kNotFound}, Error{kIo}, or
/// Error{kInput} for what is no file, or one that is too large.
std::string read_file(const std::filesystem::path& path, uint64_t most_bytes = kMaxFileBytes);

/// Whether there is something, a regular file or a folder of that name which the question may read
/// (Limits::files).
bool is_there(const std::filesystem::path& path);
bool is_file(const std::filesystem::path& path);
bool is_folder(const std::filesystem::path& path);

/// Whether a name that may stand for a bundled file is the path of a file: it ends in ".json" or
/// has a slash.
bool is_path(std::string_view name_or_path);

/// The first `most_bytes` of a regular file, or all of it if it is shorter. Errors as read_file.
std::string read_file_start(const std::filesystem::path& path, uint64_t most_bytes);

/// A regular file of any size in memory. Its format needs small parts only: `load` reads one, and
/// before that its bytes are 0. The file is not mapped: one that is shortened while it is read
/// would end the process (SIGBUS).
class PartlyReadFile {
 public:
  /// Throws as `read_file` does.
  explicit PartlyReadFile(const std::filesystem::path& path);
  ~PartlyReadFile();
  PartlyReadFile(const PartlyReadFile&) = delete;
  PartlyReadFile& operator=(const PartlyReadFile&) = delete;

  std::string_view content() const { return content_; }
  /// Reads a part of the content, with what is around it. Throws Error{kIo} where the file is
  /// shorter by now.
  void load(std::string_view part);

 private:
  std::filesystem::path path_;
  int descriptor_ = -1;
  std::string_view content_;
  std::vector<bool> loaded_;  ///< pieces of the content
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
