#pragma once

#include <optional>
#include <string>
#include <vector>

#include "lower/program.h"
#include "predict/predictor.h"
#include "tilecast/result.h"

namespace tilecast {

/// A warning about `subject` if quantized layers of experts take longer than the same layers in
/// `dtype` would: some low-precision kernels were measured to be slower than those in 16 bits.
/// Layers whose time is extrapolated in either precision are skipped. nullopt if none is slower.
std::optional<Warning> slower_experts(const std::string& subject, const Graph& graph,
                                      const Program& program, const std::vector<KernelTime>& times,
                                      const Predictor& predictor, const Device& device,
                                      const Conditions& conditions);

/// A backend of experts that the model or the device does not have; nullopt: it has it.
std::optional<Warning> idle_backend(const Request& request, const Device& device,
                                    const GenerationForecast& forecast);

}  // namespace tilecast
