#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>

namespace tilecast {

/// The text of a file or of memory, piece by piece; gzip is unpacked. Only the pieces that are
/// asked for are in memory, so that a small file that unpacks to much takes time but no memory.
class TextSource {
 public:
  virtual ~TextSource() = default;
  /// Appends the next piece to `text`; false at the end. Throws Error{kIo}, Error{kInput} for
  /// damaged gzip, Error{kUnsupported} for more text than a trace may have (kTraceBytes).
  virtual bool append_to(std::string& text) = 0;
};

/// A regular file, plain or gzip by its first bytes. Throws Error{kNotFound}, Error{kInput} for
/// what is no file, Error{kUnsupported} for gzip where this build has no zlib.
std::unique_ptr<TextSource> open_text(const std::filesystem::path& path);
/// The content of such a file, which must outlive the result. `name` is for messages.
std::unique_ptr<TextSource> text_of_memory(std::string_view content, std::string name);

/// Whether this build unpacks .gz files.
bool reads_gzip();

}  // namespace tilecast
