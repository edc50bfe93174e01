#pragma once

#include "importers/onnx/file.h"
#include "importers/onnx/wire.h"

namespace tilecast {

/// Reads a TensorProto. Throws Error{kInput} for a negative dimension or an unknown type.
OnnxTensor read_onnx_tensor(WireMessage message);

/// The type of a number in a file. Throws Error{kInput} if there is none.
OnnxType onnx_type(const WireMessage& message, int64_t number);

}  // namespace tilecast
