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

/// As the file that is replaced; else what the user's mask allows.
void set_permissions(int descriptor, const fs::path& target) {
  struct stat status{};
  if (::stat(target.c_str(), &status) == 0) {
    // Only root may give a file away: for others it stays theirs, which is all that can be done.
    [[maybe_unused]] const int ignored = ::fchown(descriptor, status.st_uid, status.st_gid);
    ::fchmod(descriptor, status.st_mode & 07777);
    return;
  }
  const mode_t mask = ::umask(0);
  ::umask(mask);
  ::fchmod(descriptor, 0666 & ~mask);
}

}  // namespace

void cannot_write(const fs::path& path, int error) {
  throw Error(ErrorKind::kIo,
              fmt::format("{}: cannot write: {}", printable(path.string()), std::strerror(error)));
}

UnfinishedFile::UnfinishedFile(const fs::path& target, const fs::path& shown)
    : target_(target), shown_(shown) {
  // A file that its owner made read-only is not replaced, though the folder would allow it.
  if (::access(target.c_str(), F_OK) == 0 && ::access(target.c_str(), W_OK) != 0)
    cannot_write(shown, errno);
  static std::atomic<int> count{0};
  path_ = target.parent_path() / fmt::format(".tilecast-{}-{}.part", ::getpid(), count++);
  slot_ = take_slot(path_.string());
  descriptor_ = ::open(path_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (descriptor_ < 0) {
    const int error = errno;
    free_slot(slot_);
    cannot_write(shown, error);
  }
  set_permissions(descriptor_, target);
}

UnfinishedFile::~UnfinishedFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
  if (!path_.empty()) ::unlink(path_.c_str());
  free_slot(slot_);
}

void UnfinishedFile::keep() {
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
