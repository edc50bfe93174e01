#pragma once

// The shapes that operators ask for, whether their input is a constant or a tensor.

#include <optional>

#include "importers/onnx/call.h"

namespace tilecast {

/// One dimension of Slice, within the tensor.
struct OnnxSlice {
  size_t axis = 0;
  int64_t start = 0, count = 0, step = 1;
};
std::vector<OnnxSlice> slices_of(const OnnxCall& call);

/// The order of Transpose; default: reversed.
Shape order_of(const OnnxCall& call, size_t rank);

Shape reshaped(const OnnxCall& call);
Shape unsqueezed(const OnnxCall& call);
Shape squeezed(const OnnxCall& call);
Shape flattened(const OnnxCall& call);

/// The shape that both shapes broadcast to (numpy's rule); nullopt if there is none.
std::optional<Shape> broadcast(const Shape& a, const Shape& b);
/// Throws Error{kInput} if the shapes contradict each other.
Shape broadcast_shapes(const OnnxCall& call, const Shape& a, const Shape& b);

}  // namespace tilecast
