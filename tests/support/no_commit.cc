// The commit of programs whose output tests compare.
#include "base/commit.h"

namespace tilecast {

std::string_view built_commit() { return ""; }

}  // namespace tilecast
