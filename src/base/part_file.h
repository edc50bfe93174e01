#pragma once

#include <filesystem>

namespace tilecast {

/// Throws Error{kIo}; `path` is the one in the message, `error` an errno.
[[noreturn]] void cannot_write(const std::filesystem::path& path, int error);

/// Where a file is written until it is whole: a name of its own beside `target`. Removed when the
/// object goes, unless `keep` renamed it, and when the process is ended by a signal that
/// `remove_part_files_on_signals` watches.
class PartFile {
 public:
  /// Creates the file, with the permissions and the owner of `target` where that exists. Throws
  /// Error{kIo}; `shown` is the path in messages.
  PartFile(const std::filesystem::path& target, const std::filesystem::path& shown);
  ~PartFile();
  PartFile(const PartFile&) = delete;
  PartFile& operator=(const PartFile&) = delete;

  int descriptor() const { return descriptor_; }
  /// Closes the file and gives it the target's name. Throws Error{kIo}.
  void keep();

 private:
  std::filesystem::path path_, target_, shown_;
  int descriptor_ = -1;
  size_t slot_ = 0;
};

}  // namespace tilecast
