#include "base/file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <sstream>
#include <utility>

#include "base/part_file.h"
#include "tilecast/error.h"

namespace tilecast {
namespace fs = std::filesystem;
namespace {

[[noreturn]] void cannot_write(const fs::path& path, int error) {
  throw Error(ErrorKind::kIo,
              fmt::format("{}: cannot write: {}", path.string(), std::strerror(error)));
}

void write_all(int descriptor, std::string_view content, const fs::path& path) {
  while (!content.empty()) {
    const ssize_t written = ::write(descriptor, content.data(), content.size());
    if (written < 0) {
      if (errno == EINTR) continue;
      cannot_write(path, errno);
    }
    content.remove_prefix(static_cast<size_t>(written));
  }
}

/// What a path names once its links are followed, whether that exists or not: a link stays a link
/// when its target is replaced. Throws Error{kIo} for a chain without an end.
fs::path follow_links(const fs::path& path) {
  constexpr int kLongestChain = 40;  // as Linux has it (path_resolution(7))
  fs::path target = path;
  std::error_code code;
  for (int i = 0; fs::is_symlink(target, code); ++i) {
    if (i == kLongestChain) cannot_write(path, ELOOP);
    const fs::path next = fs::read_symlink(target, code);
    if (code) cannot_write(path, code.value());
    target = next.is_absolute() ? next : target.parent_path() / next;
  }
  return target;
}

/// Closes a descriptor at the end of its scope; where an error counts, `close` tells it.
struct OpenFile {
  int descriptor;
  ~OpenFile() {
    if (descriptor >= 0) ::close(descriptor);
  }
  int close() { return ::close(std::exchange(descriptor, -1)); }
};

}  // namespace

std::string read_file(const fs::path& path) {
  std::error_code code;
  if (!fs::exists(path, code))
    throw Error(ErrorKind::kNotFound, fmt::format("{}: no such file", path.string()));
  if (fs::is_directory(path, code))
    throw Error(ErrorKind::kIo, fmt::format("{}: is a folder, expected a file", path.string()));
  std::ifstream stream(path, std::ios::binary);
  std::ostringstream content;
  content << stream.rdbuf();
  if (!stream || (content.fail() && fs::file_size(path, code) > 0))
    throw Error(ErrorKind::kIo,
                fmt::format("{}: cannot read: {}", path.string(), std::strerror(errno)));
  return std::move(content).str();
}

void write_file(const fs::path& path, std::string_view content) {
  struct stat status{};
  if (::stat(path.c_str(), &status) == 0 && !S_ISREG(status.st_mode)) {
    OpenFile file{::open(path.c_str(), O_WRONLY | O_CLOEXEC)};
    if (file.descriptor < 0) cannot_write(path, errno);
    write_all(file.descriptor, content, path);
    if (file.close() != 0) cannot_write(path, errno);
    return;
  }
  PartFile part(follow_links(path), path);
  write_all(part.descriptor(), content, path);
  part.keep();
}

}  // namespace tilecast
