#pragma once

#include <string>

#include "base/commit.h"  // built_commit() is a part of the version

namespace tilecast {

/// "tilecast 1.2.3 (commit 0123456789ab, weights 0123456789abcdef)": the weights are those of
/// kernels, by their checksum.
std::string version_text();

}  // namespace tilecast
