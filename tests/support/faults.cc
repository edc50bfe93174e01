// Preloaded into the program (tests/faults_test.py): the FAULT_AT-th call that changes a file fails
// as FAULT says, in the middle of what it writes. Files are those below the folder FAULT_FOLDER;
// what the process prints is not counted.
//   FAULT=kill              ends the process at once, as `kill -9` does
//   FAULT=<number>          this call and all later ones fail with that errno, as on a full disk

#include <dlfcn.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace {

std::atomic<int> calls{0};

const char* setting(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr ? value : "";
}

bool is_below(const char* path) {
  const char* folder = setting("FAULT_FOLDER");
  return *folder != '\0' && std::strncmp(path, folder, std::strlen(folder)) == 0;
}

bool is_ours(int descriptor) {
  char link[64], path[4096];
  std::snprintf(link, sizeof(link), "/proc/self/fd/%d", descriptor);
  const ssize_t length = readlink(link, path, sizeof(path) - 1);
  if (length <= 0) return false;
  path[length] = '\0';
  return is_below(path);
}

bool kills() { return std::strcmp(setting("FAULT"), "kill") == 0; }

/// Whether this call is the one that fails or, of a disk that stays full, one after it.
bool fails() {
  const int number = ++calls, at = std::atoi(setting("FAULT_AT"));
  return at > 0 && (number == at || (number > at && !kills()));
}

/// -1, as a call that failed.
int failure() {
  if (kills()) kill(getpid(), SIGKILL);
  errno = std::atoi(setting("FAULT"));
  return -1;
}

template <typename Function>
Function* next(const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}

int opened(const char* name, int folder, const char* path, int flags, mode_t mode) {
  // Paths are relative to the folder that the process runs in, which is the one.
  const bool writes = (flags & O_ACCMODE) != O_RDONLY && (path[0] != '/' || is_below(path));
  if (writes && fails()) return failure();
  return next<int(int, const char*, int, ...)>(name)(folder, path, flags, mode);
}

}  // namespace

extern "C" {

ssize_t write(int descriptor, const void* data, size_t size) {
  static auto* const real = next<ssize_t(int, const void*, size_t)>("write");
  if (!is_ours(descriptor) || !fails()) return real(descriptor, data, size);
  // Half of it is in the file; of a disk that is full, the call after this one says so.
  if (size > 1) {
    const ssize_t half = real(descriptor, data, size / 2);
    if (!kills()) return half;
  }
  return failure();
}

int open(const char* path, int flags, ...) {
  va_list more;
  va_start(more, flags);
  const mode_t mode = (flags & O_CREAT) != 0 ? va_arg(more, mode_t) : 0;
  va_end(more);
  return opened("openat", AT_FDCWD, path, flags, mode);
}

int open64(const char* path, int flags, ...) {
  va_list more;
  va_start(more, flags);
  const mode_t mode = (flags & O_CREAT) != 0 ? va_arg(more, mode_t) : 0;
  va_end(more);
  return opened("openat64", AT_FDCWD, path, flags, mode);
}

int fsync(int descriptor) {
  static auto* const real = next<int(int)>("fsync");
  return is_ours(descriptor) && fails() ? failure() : real(descriptor);
}

int rename(const char* from, const char* to) {
  static auto* const real = next<int(const char*, const char*)>("rename");
  return fails() ? failure() : real(from, to);
}

int mkdir(const char* path, mode_t mode) {
  static auto* const real = next<int(const char*, mode_t)>("mkdir");
  return fails() ? failure() : real(path, mode);
}

}  // extern "C"
