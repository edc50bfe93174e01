#pragma once

// GGUF files in several parts, as llama-gguf-split writes them: "name-00002-of-00005.gguf". The
// first part has the metadata of the model, each part the list of its own tensors, and all have
// split.no (from 0), split.count and split.tensors.count. Source: llama.cpp,
// tools/gguf-split/gguf-split.cpp, src/llama-model-loader.cpp.

#include <string>
#include <vector>

#include "importers/gguf/header.h"
#include "importers/model.h"

namespace tilecast {

/// Another file of a model in several.
struct GgufSplit {
  std::string content;
  std::string where;
};

/// The names of the other parts of the file; empty if it is whole. Throws Error{kInput} if its name
/// does not say which part it is.
std::vector<std::string> other_gguf_splits(const ModelText& text);

/// "…/llama-00002-of-00005.gguf": "llama".
std::string gguf_name(const std::string& path);

/// The header of all parts together. Throws Error{kInput} for parts that are missing or do not
/// belong together.
GgufHeader read_gguf_splits(const ModelText& text, const std::vector<GgufSplit>& parts);

/// The model of a file and its other parts. Throws as `import_model`.
Model import_gguf_splits(const ModelText& text, const std::vector<GgufSplit>& parts);

}  // namespace tilecast
