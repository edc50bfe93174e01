#include "base/file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <sstream>

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
      const int error = errno;
      ::close(descriptor);
      cannot_write(path, error);
    }
    content.remove_prefix(static_cast<size_t>(written));
  }
}

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
  const bool in_place = ::stat(path.c_str(), &status) == 0 && !S_ISREG(status.st_mode);
  const fs::path target =
      in_place ? path : fs::path(path.string() + ".part" + std::to_string(::getpid()));
  const int descriptor = ::open(target.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (descriptor < 0) cannot_write(path, errno);
  try {
    write_all(descriptor, content, path);
  } catch (...) {
    if (!in_place) ::unlink(target.c_str());
    throw;
  }
  if (::close(descriptor) != 0 || (!in_place && ::rename(target.c_str(), path.c_str()) != 0)) {
    const int error = errno;
    if (!in_place) ::unlink(target.c_str());
    cannot_write(path, error);
  }
}

}  // namespace tilecast
