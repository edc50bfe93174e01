#pragma once

#include <filesystem>
#include <string_view>

namespace tilecast {

/// Throws Error{kIo}; `path` is the one in the message, `error` an errno.
[[noreturn]] void cannot_write(const std::filesystem::path& path, int error);

/// Writes all of it, however many calls that takes. Throws Error{kIo}.
void write_all(int descriptor, std::string_view content, const std::filesystem::path& path);

/// Waits until what was written is on the disk: a quota or a full disk may show only then. Throws
/// Error{kIo}.
void sync(int descriptor, const std::filesystem::path& path);

/// Where a file is written until it is whole: a random name beside `target`. Removed when the
/// object goes, unless `keep` renamed it, and when the process is ended by a signal that
/// `remove_unfinished_files_on_signals` watches.
class UnfinishedFile {
 public:
  /// Creates the file, with the permissions and the owner of `target` where that exists. Throws
  /// Error{kIo}; `shown` is the path in messages.
  UnfinishedFile(const std::filesystem::path& target, const std::filesystem::path& shown);
  ~UnfinishedFile();
  UnfinishedFile(const UnfinishedFile&) = delete;
  UnfinishedFile& operator=(const UnfinishedFile&) = delete;

  int descriptor() const { return descriptor_; }
  /// Gives the file the target's name once its content is on the disk. Throws Error{kIo}.
  void keep();

 private:
  std::filesystem::path path_, target_, shown_;
  int descriptor_ = -1;
  size_t slot_ = 0;
};

}  // namespace tilecast
