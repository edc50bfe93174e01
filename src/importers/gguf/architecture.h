#pragma once

// Names of GGUF's metadata and tensors ↔ names of Hugging Face.

#include <string>
#include <vector>

#include "base/json.h"
#include "importers/gguf/header.h"

namespace tilecast {

/// The config.json of the model in a GGUF file, without dtypes. Throws Error{kUnsupported} for an
/// unknown architecture, or for sizes that differ from layer to layer; Error{kInput} for values
/// that are missing or of a wrong type.
Json gguf_config(const GgufHeader& header, const std::string& where);

/// The modules whose linear layers or experts a tensor is the weight of, named as in checkpoints
/// ("model.layers.3.self_attn.q_proj"). None for norms, biases, routers, embeddings and the output
/// layer. A layer of experts is named by its up projection, which has most of its weights.
std::vector<std::string> gguf_modules(const std::string& tensor);

}  // namespace tilecast
