#pragma once

#include <optional>
#include <string>
#include <vector>

#include "lower/program.h"
#include "predict/predictor.h"
#include "tilecast/warning.h"

namespace tilecast {

/// A warning about `subject` where layers of experts in few bits take longer than the same layers
/// in `dtype` would: some kernels for few bits were measured slower than those in 16 bits. Layers
/// whose time is extrapolated in one of both are passed over. nullopt where none is slower.
std::optional<Warning> slower_experts(const std::string& subject, const Graph& graph,
                                      const Program& program, const std::vector<KernelTime>& times,
                                      const Predictor& predictor, const Device& device,
                                      const Conditions& conditions);

}  // namespace tilecast
