#include "cli/version.h"

#include <fmt/format.h>

#include <cstdint>
#include <string>
#include <string_view>

#include "base/checksum.h"
#include "base/embedded.h"
#include "base/weights_container.h"

namespace tilecast {
namespace {

std::string checksum_of_kernels() {
  for (const EmbeddedFile& file : embedded_files("weights/kernels.weights")) {
    const Json header =
        read_container(file.content, std::string(file.path), Checksum::kTrust).header;
    return fmt::format("{:016x}", header.value("checksum", uint64_t{0}));
  }
  return "none";
}

}  // namespace

std::string version_text() {
  const std::string_view commit = built_commit();
  return fmt::format("tilecast {} (commit {}, weights {})", TILECAST_VERSION,
                     commit.empty() ? "unknown" : commit, checksum_of_kernels());
}

}  // namespace tilecast
