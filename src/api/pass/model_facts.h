#pragma once

// What a forecast of a pass says of its model, from the graph.

#include <string>

#include "api/pass/pass.h"

namespace tilecast {

/// What a title says of one input: the size of an image or a latent, and the length, where it is a
/// choice. `seq`: tokens of a sequence, with those of images.
std::string input_text(const Model& model, const Graph& graph, int64_t seq);

/// Fills in parameters and input, and adds what is assumed of adapters. `modules`: of the whole
/// model.
void describe_modules(Forecast& forecast, const Graph& modules, const PassSetup& setup);

}  // namespace tilecast
