#pragma once

#include <string>

#include "tilecast/error.h"

namespace tilecast {

/// The error of a build without one of its components. `option`: of CMake, which was OFF.
[[noreturn]] inline void fail_left_out(const std::string& component, const std::string& option) {
  throw Error(ErrorKind::kUnsupported,
              "this build of Tilecast has no " + component + "; build it with -D" + option + "=ON");
}

}  // namespace tilecast
