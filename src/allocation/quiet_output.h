#pragma once

#include <cstdio>

namespace tilecast {

/// While it lives, printf and puts write nothing: Clp writes with them at any level of its log,
/// among the answer that a program writes. C++ streams and file descriptors stay as they are, so
/// that other threads may write with them. For one thread at a time.
class QuietOutput {
 public:
#ifdef __GLIBC__  // whose stdout is a variable
  QuietOutput() : nowhere_(std::fopen("/dev/null", "w")) {
    if (nowhere_ != nullptr) stdout = nowhere_;
  }
  ~QuietOutput() {
    stdout = before_;
    if (nowhere_ != nullptr) std::fclose(nowhere_);
  }
#else
  QuietOutput() = default;
#endif
  QuietOutput(const QuietOutput&) = delete;
  QuietOutput& operator=(const QuietOutput&) = delete;

 private:
#ifdef __GLIBC__
  std::FILE* before_ = stdout;
  std::FILE* nowhere_;
#endif
};

}  // namespace tilecast
