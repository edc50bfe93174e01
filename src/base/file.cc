#include "base/file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>
#include <utility>

#include "base/budget.h"
#include "base/text.h"
#include "base/unfinished_file.h"
#include "tilecast/error.h"

namespace tilecast {
namespace fs = std::filesystem;
namespace {

constexpr size_t kPiece = 4 << 10;   ///< bytes that PartlyReadFile reads at least
constexpr size_t kPiecesAhead = 15;  ///< that it reads further where parts follow each other

/// A path as a message may show it.
std::string shown(const fs::path& path) { return printable(path.string()); }

[[noreturn]] void cannot_read(const fs::path& path, int error) {
  throw Error(ErrorKind::kIo,
              fmt::format("{}: cannot read: {}", shown(path), std::strerror(error)));
}

[[noreturn]] void too_large(const fs::path& path, uint64_t size, uint64_t most) {
  throw Error(ErrorKind::kInput,
              fmt::format("{}: is too large: {}, expected at most {}; is it the right file?",
                          shown(path), format_bytes(static_cast<int64_t>(size)),
                          format_bytes(static_cast<int64_t>(most))));
}

void check_kind(const fs::path& path, mode_t mode) {
  if (S_ISREG(mode)) return;
  if (S_ISDIR(mode))
    throw Error(ErrorKind::kInput, fmt::format("{}: is a folder, expected a file", shown(path)));
  const char* kind = S_ISFIFO(mode) ? "pipe" : S_ISSOCK(mode) ? "socket" : "device";
  throw Error(ErrorKind::kInput,
              fmt::format("{}: is a {}, expected a file; write its content to a file first",
                          shown(path), kind));
}

/// `size` is what the file system says; files of /proc say 0.
std::string read_all(int descriptor, uint64_t size, uint64_t most, const fs::path& path) {
  std::string content;
  size_t filled = 0;
  content.resize(static_cast<size_t>(std::min(size, most)) + 1);
  while (true) {
    const ssize_t got = ::read(descriptor, content.data() + filled, content.size() - filled);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) cannot_read(path, errno);
    filled += static_cast<size_t>(got);
    if (filled > most) too_large(path, filled, most);
    if (got == 0) break;
    if (filled == content.size()) content.resize(std::max<size_t>(4096, 2 * filled));
  }
  content.resize(filled);
  return content;
}

/// The target of a path once its links are followed, whether that exists or not: a link stays a
/// link when its target is replaced. Throws Error{kIo} for a chain without an end.
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
  explicit OpenFile(int opened) : descriptor(opened) {}
  OpenFile(OpenFile&& other) noexcept : descriptor(std::exchange(other.descriptor, -1)) {}
  OpenFile& operator=(OpenFile&&) = delete;
  ~OpenFile() {
    if (descriptor >= 0) ::close(descriptor);
  }
  int close() { return ::close(std::exchange(descriptor, -1)); }
};

/// Whether the question may read there: what is elsewhere is to it as if it were not there.
bool is_allowed(const fs::path& path) {
  const Budget& budget = Budget::here();
  if (!budget.reads_files()) return false;
  if (budget.folder().empty()) return true;
  std::error_code code;
  const fs::path folder = fs::canonical(budget.folder(), code);
  if (code) return false;
  const fs::path real = fs::canonical(path, code);  // without links
  if (code) return false;
  const auto end = std::mismatch(folder.begin(), folder.end(), real.begin(), real.end()).first;
  return end == folder.end();
}

}  // namespace

/// Opens a regular file for reading; `status` is its state.
static OpenFile open_regular(const fs::path& path, struct stat& status) {
  const bool allowed = is_allowed(path);
  if (!allowed || ::stat(path.c_str(), &status) != 0) {
    if (!allowed || errno == ENOENT || errno == ENOTDIR)
      throw Error(ErrorKind::kNotFound, fmt::format("{}: no such file", shown(path)));
    cannot_read(path, errno);
  }
  check_kind(path, status.st_mode);
  // The file may have been replaced since: opening a pipe must not wait for its writer.
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
  if (descriptor < 0) cannot_read(path, errno);
  OpenFile file{descriptor};
  if (::fstat(descriptor, &status) != 0) cannot_read(path, errno);
  check_kind(path, status.st_mode);
  return file;
}

bool is_there(const fs::path& path) {
  std::error_code code;
  return is_allowed(path) && fs::exists(path, code);
}

bool is_file(const fs::path& path) {
  std::error_code code;
  return is_allowed(path) && fs::is_regular_file(path, code);
}

bool is_folder(const fs::path& path) {
  std::error_code code;
  return is_allowed(path) && fs::is_directory(path, code);
}

std::string read_file(const fs::path& path, uint64_t most_bytes) {
  struct stat status{};
  const OpenFile file = open_regular(path, status);
  if (static_cast<uint64_t>(status.st_size) > most_bytes)
    too_large(path, static_cast<uint64_t>(status.st_size), most_bytes);
  try {
    return read_all(file.descriptor, static_cast<uint64_t>(status.st_size), most_bytes, path);
  } catch (const AllocationRefused&) {
    throw;  // the limit of the question, not of the machine
  } catch (const std::bad_alloc&) {
    throw Error(ErrorKind::kIo, fmt::format("{}: out of memory while reading {}", shown(path),
                                            format_bytes(status.st_size)));
  }
}

bool is_path(std::string_view name_or_path) {
  return name_or_path.ends_with(".json") || name_or_path.find('/') != std::string_view::npos;
}

std::string read_file_start(const fs::path& path, uint64_t most_bytes) {
  struct stat status{};
  const OpenFile file = open_regular(path, status);
  std::string content(std::min(most_bytes, static_cast<uint64_t>(status.st_size)), '\0');
  size_t filled = 0;
  while (filled < content.size()) {
    const ssize_t got = ::read(file.descriptor, content.data() + filled, content.size() - filled);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) cannot_read(path, errno);
    if (got == 0) break;
    filled += static_cast<size_t>(got);
  }
  content.resize(filled);
  return content;
}

PartlyReadFile::PartlyReadFile(const fs::path& path) : path_(path) {
  struct stat status{};
  OpenFile file = open_regular(path, status);
  const auto size = static_cast<size_t>(status.st_size);
  if (size > 0) {
    void* start = ::mmap(nullptr, size, PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (start == MAP_FAILED) cannot_read(path, errno);
    ::madvise(start, size, MADV_NOHUGEPAGE);  // 2 MiB for a few bytes; old kernels know no such
    content_ = {static_cast<const char*>(start), size};
    loaded_.resize((size - 1) / kPiece + 1);
  }
  descriptor_ = std::exchange(file.descriptor, -1);
}

PartlyReadFile::~PartlyReadFile() {
  ::close(descriptor_);
  if (!content_.empty()) ::munmap(const_cast<char*>(content_.data()), content_.size());
}

void PartlyReadFile::load(std::string_view part) {
  if (part.empty()) return;
  const auto first = static_cast<size_t>(part.data() - content_.data());
  const size_t last = first + part.size() - 1;
  for (size_t piece = first / kPiece; piece <= last / kPiece; ++piece) {
    if (loaded_[piece]) continue;
    size_t wanted = last / kPiece + 1;
    if (piece > 0 && loaded_[piece - 1])
      wanted = std::min(loaded_.size(), std::max(wanted, piece + 1 + kPiecesAhead));
    size_t end = piece + 1;  // of the pieces that are read at once
    while (end < wanted && !loaded_[end]) ++end;
    size_t at = piece * kPiece;
    const size_t stop = std::min(content_.size(), end * kPiece);
    while (at < stop) {
      char* to = const_cast<char*>(content_.data()) + at;
      const ssize_t got = ::pread(descriptor_, to, stop - at, static_cast<off_t>(at));
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) cannot_read(path_, errno);
      if (got == 0)
        throw Error(ErrorKind::kIo,
                    fmt::format("{}: was shortened while it was read", shown(path_)));
      at += static_cast<size_t>(got);
    }
    std::fill(loaded_.begin() + static_cast<std::ptrdiff_t>(piece),
              loaded_.begin() + static_cast<std::ptrdiff_t>(end), true);
  }
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
  UnfinishedFile part(follow_links(path), path);
  write_all(part.descriptor(), content, path);
  part.keep();
}

}  // namespace tilecast
