#pragma once

#include "importers/onnx/file.h"

namespace tilecast {

/// The domain of operators that stand for a call of PyTorch, and their names.
inline constexpr const char* kTorchDomain = "torch.aten";
inline constexpr const char* kTorchAddcmul = "aten::addcmul";
inline constexpr const char* kTorchWindows = "aten::im2col";

/// Joins the nodes of a call that PyTorch runs as one kernel, and marks those that only pack the
/// weights of recurrent layers. Nodes without PyTorch's notes stay as they are.
void join_torch_calls(OnnxGraph& graph);

}  // namespace tilecast
