#pragma once

#include "importers/onnx/file.h"

namespace tilecast {

/// The domain of operators that stand for a call of PyTorch, and their names.
inline constexpr const char* kTorchDomain = "torch.aten";
inline constexpr const char* kTorchAddcmul = "aten::addcmul";
inline constexpr const char* kTorchWindows = "aten::im2col";
inline constexpr const char* kTorchEmbeddingBag = "aten::embedding_bag";

/// Whether a call of this name sums, averages or takes the largest of rows in bags.
inline bool is_embedding_bag(std::string_view aten) {
  return aten == "embedding_bag" || aten == "_embedding_bag" ||
         aten == "_embedding_bag_forward_only";
}

/// Joins the nodes of a call that PyTorch runs as one kernel, and marks those that only pack the
/// weights of recurrent layers. Nodes without PyTorch's notes stay as they are.
void join_torch_calls(OnnxGraph& graph);

}  // namespace tilecast
