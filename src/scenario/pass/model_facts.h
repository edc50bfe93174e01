#pragma once

// Facts about a model in the forecast of a pass, from the graph.

#include <cstdint>
#include <optional>
#include <string>

#include "scenario/pass/pass.h"

namespace tilecast {

/// One input's part of a title: the size of an image or a latent, and the length, where it is a
/// choice. `seq`: tokens of a sequence, images included; `decoder_seq`: where the decoder's has its
/// own length.
std::string input_text(const Model& model, const Graph& graph, int64_t seq,
                       std::optional<int64_t> decoder_seq);

/// Fills in parameters and input, and adds what is assumed of adapters. `modules`: of the whole
/// model.
void describe_modules(Forecast& forecast, const Graph& modules, const PassSetup& setup);

}  // namespace tilecast
