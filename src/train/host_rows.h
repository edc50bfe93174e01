#pragma once

#include <string>
#include <vector>

#include "train/dataset.h"

namespace tilecast {

/// Times of products that are not the kernel's own but the host's, which launched without a CUDA
/// graph, or of the first call of a layer: they are replaced by a better time of the kernel, get a
/// low weight and count as assumed. `single_call[g]`: rows of group g hold the host's time in any
/// case, and are mended elsewhere. Returns what was done, for the report.
std::vector<std::string> assume_host_rows(TrainingData& data, const std::vector<bool>& single_call);

}  // namespace tilecast
