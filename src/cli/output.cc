#include <cerrno>
#include <cstdio>
#include <cstring>

#include "base/file.h"
#include "cli/commands.h"
#include "tilecast/error.h"

namespace tilecast {

void emit(const std::string& text, const std::string& path) {
  if (!path.empty()) return write_file(path, text);
  const bool written = std::fwrite(text.data(), 1, text.size(), stdout) == text.size();
  if (!written || std::fflush(stdout) != 0)
    throw Error(ErrorKind::kIo,
                std::string("standard output: cannot write: ") + std::strerror(errno));
}

}  // namespace tilecast
