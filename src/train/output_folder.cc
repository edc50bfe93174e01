#include "train/output_folder.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string>

#include "base/text.h"
#include "tilecast/error.h"

namespace tilecast {
namespace fs = std::filesystem;
namespace {

constexpr const char* kLockName = "lock";

/// The process whose number the lock file holds.
std::string holder(int descriptor) {
  char text[32] = {};
  const ssize_t size = ::pread(descriptor, text, sizeof text - 1, 0);
  const std::string number(text, static_cast<size_t>(std::max<ssize_t>(0, size)));
  const bool digits = !number.empty() && std::all_of(number.begin(), number.end(),
                                                     [](char c) { return c >= '0' && c <= '9'; });
  return digits ? "process " + number : "another process";
}

/// Whether `path` still names the file that is open: the run that held the lock removes it.
bool is_same_file(int descriptor, const fs::path& path) {
  struct stat open_file{}, named{};
  return ::fstat(descriptor, &open_file) == 0 && ::stat(path.c_str(), &named) == 0 &&
         open_file.st_ino == named.st_ino && open_file.st_dev == named.st_dev;
}

}  // namespace

OutputFolder::OutputFolder(fs::path folder) : folder_(std::move(folder)) {
  try {
    make_folders();
    lock();
  } catch (...) {
    remove_empty_folders();
    throw;
  }
}

OutputFolder::~OutputFolder() {
  std::error_code code;
  // Another run may have made a lock of its own where this one's file was removed meanwhile.
  if (is_same_file(lock_, checkpoints() / kLockName)) fs::remove(checkpoints() / kLockName, code);
  ::close(lock_);
  remove_empty_folders();
}

void OutputFolder::remove_checkpoints() const {
  std::error_code code;
  for (const auto& entry : fs::directory_iterator(checkpoints(), code)) {
    if (entry.path().filename() != kLockName) fs::remove_all(entry.path(), code);
  }
  if (is_same_file(lock_, checkpoints() / kLockName)) fs::remove(checkpoints() / kLockName, code);
  fs::remove(checkpoints(), code);
}

void OutputFolder::make_folders() {
  std::error_code code;
  std::vector<fs::path> missing;
  for (fs::path path = checkpoints(); !path.empty() && !fs::exists(path, code);
       path = path.parent_path()) {
    missing.push_back(path);
    if (path == path.parent_path()) break;
  }
  std::reverse(missing.begin(), missing.end());
  for (const fs::path& path : missing) {
    // Another run may make it at the same time: then it is theirs.
    const bool made = fs::create_directory(path, code);
    if (code)
      throw Error(ErrorKind::kIo, fmt::format("{}: cannot make the folder: {}",
                                              printable(folder_.string()), code.message()));
    if (made) made_.push_back(path);
  }
}

void OutputFolder::remove_empty_folders() const {
  std::error_code code;
  for (auto path = made_.rbegin(); path != made_.rend(); ++path) fs::remove(*path, code);
}

void OutputFolder::lock() {
  const fs::path path = checkpoints() / kLockName;
  do {
    if (lock_ >= 0) ::close(lock_);
    lock_ = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
    if (lock_ >= 0 && ::flock(lock_, LOCK_EX | LOCK_NB) == 0) continue;
    const int error = errno;
    const std::string who = lock_ >= 0 ? holder(lock_) : "";
    if (lock_ >= 0) ::close(lock_);
    lock_ = -1;
    if (error == EWOULDBLOCK)
      throw Error(ErrorKind::kIo,
                  fmt::format("{}: {} trains into this folder; wait for it to end, or give another "
                              "folder with -o",
                              printable(folder_.string()), who));
    throw Error(ErrorKind::kIo, fmt::format("{}: cannot lock the folder: {}",
                                            printable(folder_.string()), std::strerror(error)));
  } while (!is_same_file(lock_, path));
  const std::string number = std::to_string(::getpid());
  if (::ftruncate(lock_, 0) != 0 ||
      ::pwrite(lock_, number.data(), number.size(), 0) != static_cast<ssize_t>(number.size()))
    throw Error(ErrorKind::kIo, fmt::format("{}: cannot write: {}", printable(path.string()),
                                            std::strerror(errno)));
}

}  // namespace tilecast
