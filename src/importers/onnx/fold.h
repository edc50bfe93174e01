#pragma once

#include "importers/onnx/shapes.h"

namespace tilecast {

/// Makes room for `count` equal values.
void resize(OnnxConstant& constant, size_t count, double value);
/// Writes one value; a whole number that leaves 64 bits becomes the nearest one.
void put(OnnxConstant& constant, size_t i, double value);
/// Copies one value.
void copy(OnnxConstant& to, size_t i, const OnnxConstant& from, size_t j);

/// Whether a tensor of this shape is small enough to be kept.
bool fits_constant(const Shape& shape);

/// Folds functions of single elements. All inputs are constants.
bool fold_elementwise(OnnxCall& call);
/// Folds operators that only move elements: Gather, Slice, Concat and others. All inputs are
/// constants.
bool fold_arrangement(OnnxCall& call);

}  // namespace tilecast
