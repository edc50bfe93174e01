#pragma once

#include <sstream>

#include "tilecast/error.h"

namespace tilecast::internal {

/// Collects the message of a failed TILECAST_CHECK and throws when it goes out of scope.
class CheckFailure {
 public:
  CheckFailure(const char* file, int line, const char* condition) {
    stream_ << file << ":" << line << ": this is a bug in Tilecast: " << condition << " ";
  }
  [[noreturn]] ~CheckFailure() noexcept(false) { throw Error(ErrorKind::kInternal, stream_.str()); }
  template <typename T>
  CheckFailure& operator<<(const T& value) {
    stream_ << value;
    return *this;
  }

 private:
  std::ostringstream stream_;
};

}  // namespace tilecast::internal

/// For mistakes of the programmer only; user input must never reach one. On in release builds too;
/// throws instead of aborting because Python lives in the same process.
#define TILECAST_CHECK(condition) \
  if (condition) {                \
  } else                          \
    ::tilecast::internal::CheckFailure(__FILE__, __LINE__, #condition)
