#pragma once

#include <string>

#include "tilecast/error.h"

namespace tilecast {

/// Throws Error{kInput}: "where: what".
[[noreturn]] inline void fail_input(const std::string& where, const std::string& what) {
  throw Error(ErrorKind::kInput, where + ": " + what);
}

}  // namespace tilecast
