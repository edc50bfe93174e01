#pragma once

#include <optional>

#include "graph/graph.h"

namespace tilecast {

/// Rows of the embedding table, and what they are padded to.
struct PaddedVocabulary {
  int64_t rows = 0, padded = 0;
};

/// Pads the vocabulary of a graph of modules to a multiple of `multiple`, as Megatron-LM does
/// before its tensor-parallel ranks divide it (megatron/training/tokenizer,
/// vocab_size_with_padding): the embedding table, the output layer and the logits. nullopt: nothing
/// was padded.
std::optional<PaddedVocabulary> pad_vocabulary(Graph& modules, int64_t multiple);

}  // namespace tilecast
