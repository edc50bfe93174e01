#pragma once

#include <string_view>
#include <vector>

namespace tilecast {

/// A file of data/ that the build put into the program.
struct EmbeddedFile {
  std::string_view path;  ///< relative to data/, e.g. "devices/nvidia-t4.json"
  std::string_view content;
};

/// Embedded files whose path starts with `prefix`, in order of path.
std::vector<EmbeddedFile> embedded_files(std::string_view prefix);

/// The same of web/, the page of the service: "page.js".
std::vector<EmbeddedFile> page_files(std::string_view prefix);

}  // namespace tilecast
