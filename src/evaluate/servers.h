#pragma once

#include <vector>

#include "tilecast/learn.h"

namespace tilecast {

/// Errors of each figure: in all, by software, by GPU, and by software, model, GPU and dtype.
std::vector<ServerErrors> server_errors(const std::vector<ServerPoint>& points);

}  // namespace tilecast
