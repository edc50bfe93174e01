#pragma once

#include <string>

namespace tilecast {

/// Whether a cluster is given by the path of a file, not by the name of a bundled one.
bool is_cluster_file(const std::string& name_or_path);

}  // namespace tilecast
