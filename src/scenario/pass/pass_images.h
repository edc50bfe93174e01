#pragma once

// The vision tower of a multimodal model in one pass or training step.

#include <string>
#include <vector>

#include "graph/graph.h"
#include "importers/model.h"
#include "tilecast/request.h"

namespace tilecast {

/// Tokens that the images of each sequence add to it; 0 without images. Throws Error{kUnsupported}
/// if the request has images and the model no tower that is forecast.
int64_t image_tokens(const Model& model, const Request& request);

/// The graph of modules of language model and tower together, from `text`, that of the language
/// model with the tokens of the images among its own. Without images nothing runs through the
/// tower: its weights are in memory, without gradients and optimizer states (PyTorch's optimizers
/// leave out parameters without gradients).
Graph with_tower(Graph text, const Model& model, const Request& request, DType dtype);

/// Remark of a pass's forecast about the tower; empty if the model has none.
std::vector<std::string> tower_remarks(const Model& model, const Request& request);

}  // namespace tilecast
