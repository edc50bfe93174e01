// The commit of programs whose output tests compare.
#include "cli/version.h"

namespace tilecast {

std::string_view built_commit() { return ""; }

}  // namespace tilecast
