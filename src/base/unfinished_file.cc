#include "base/unfinished_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <climits>
#include <csignal>
#include <cstring>
#include <random>

#include "base/file.h"
#include "base/text.h"
#include "tilecast/error.h"

namespace tilecast {
namespace fs = std::filesystem;
namespace {

/// Paths of part files, for the signal handler: it may only read memory that does not move.
/// More files than slots at a time are written all the same, but a signal leaves them behind.
struct Slot {
  std::atomic<bool> taken{false};
  std::atomic<bool> written{false};
  char path[PATH_MAX] = {};
};
std::array<Slot, 64> slots;
constexpr size_t kNoSlot = slots.size();

size_t take_slot(const std::string& path) {
  if (path.size() >= PATH_MAX) return kNoSlot;
  for (size_t i = 0; i < slots.size(); ++i) {
    if (slots[i].taken.exchange(true)) continue;
    std::memcpy(slots[i].path, path.c_str(), path.size() + 1);
    slots[i].written = true;
    return i;
  }
  return kNoSlot;
}

void free_slot(size_t slot) {
  if (slot == kNoSlot) return;
  slots[slot].written = false;
  slots[slot].taken = false;
}

extern "C" void remove_part_files(int signal) {
  for (const Slot& slot : slots) {
    if (slot.written) ::unlink(slot.path);
  }
  // The handler was installed for one call: the signal now does what it does by default.
  ::raise(signal);
}

constexpr mode_t kAnybody = 0666, kOwner = 0600;

/// As the file that is replaced, whose bits for setuid and setgid are not for this content.
void copy_permissions(int descriptor, const struct stat& replaced) {
  // Only root may give a file away: for others it stays theirs, which is all that can be done.
  [[maybe_unused]] const int ignored = ::fchown(descriptor, replaced.st_uid, replaced.st_gid);
  ::fchmod(descriptor, replaced.st_mode & 0777);
}

/// A name that no other run has: the number of a process comes again, in a container always.
fs::path random_name(const fs::path& folder) {
  std::random_device device;
  const uint64_t high = device(), low = device();
  return folder / fmt::format(".tilecast-{:08x}{:08x}.part", high, low);
}

}  // namespace

void cannot_write(const fs::path& path, int error) {
  throw Error(ErrorKind::kIo,
              fmt::format("{}: cannot write: {}", printable(path.string()), std::strerror(error)));
}

void sync(int descriptor, const fs::path& path) {
  // Some file systems have nothing to wait for, and say so.
  if (::fsync(descriptor) != 0 && errno != EINVAL && errno != ENOSYS && errno != ENOTSUP)
    cannot_write(path, errno);
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

UnfinishedFile::UnfinishedFile(const fs::path& target, const fs::path& shown)
    : target_(target), shown_(shown) {
  // A file that its owner made read-only is not replaced, though the folder would allow it.
  if (::access(target.c_str(), F_OK) == 0 && ::access(target.c_str(), W_OK) != 0)
    cannot_write(shown, errno);
  path_ = random_name(target.parent_path());
  slot_ = take_slot(path_.string());
  // A new file gets what the user's mask allows, which only the system can read safely: to ask for
  // it is to change it, for all threads.
  struct stat replaced{};
  const bool replaces = ::stat(target.c_str(), &replaced) == 0;
  descriptor_ =
      ::open(path_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, replaces ? kOwner : kAnybody);
  if (descriptor_ < 0) {
    const int error = errno;
    free_slot(slot_);
    cannot_write(shown, error);
  }
  if (replaces) copy_permissions(descriptor_, replaced);
}

UnfinishedFile::~UnfinishedFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
  if (!path_.empty()) ::unlink(path_.c_str());
  free_slot(slot_);
}

void UnfinishedFile::keep() {
  // Before it has its name: after a loss of power the old content is there, or the whole new one.
  sync(descriptor_, shown_);
  const int descriptor = descriptor_;
  descriptor_ = -1;
  if (::close(descriptor) != 0 || ::rename(path_.c_str(), target_.c_str()) != 0)
    cannot_write(shown_, errno);
  path_.clear();
}

void remove_unfinished_files_on_signals() {
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGQUIT}) {
    struct sigaction before{};
    ::sigaction(signal, nullptr, &before);
    if (before.sa_handler == SIG_IGN) continue;  // as under nohup
    struct sigaction action{};
    action.sa_handler = remove_part_files;
    action.sa_flags = static_cast<int>(SA_RESETHAND | SA_NODEFER);
    ::sigaction(signal, &action, nullptr);
  }
}

}  // namespace tilecast
