#pragma once

// Where the elements of a tensor are in memory, by PyTorch's rules: which views exist without a
// copy, and in which order kernels lay out their results.

#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "graph/graph.h"

namespace tilecast {

/// A tensor's shape with its distances in memory, in elements, by dimension.
struct Layout {
  Shape shape;
  Shape strides;
};

/// Rows follow each other.
Layout row_major(Shape shape);
bool is_row_major(const Layout& layout);

/// [b, c, h, w] with the channels next to each other; what is both is not
/// (c10/core/MemoryFormat.h, is_channels_last_strides_2d).
bool is_channels_last(const Layout& layout);
Layout channels_last(Shape shape);

/// The same memory in another shape; nullopt: it takes a copy
/// (aten/src/ATen/TensorUtils.cpp, computeStride).
std::optional<Layout> viewed(const Layout& from, const Shape& shape);

Layout transposed(const Layout& from, const Shape& order);
/// Dimensions of 1, and new ones in front, are repeated.
Layout expanded(const Layout& from, const Shape& shape);

/// Whether `matmul` can use the layout as [batch, rows, columns].
bool is_batch_of_matrices(const Layout& layout);
/// Whether all dimensions but the last are one (ATen/native/LinearAlgebra.cpp, should_fold).
bool has_foldable_rows(const Layout& layout);

/// The layout of the result of a pointwise kernel, which keeps the order of its operands
/// (aten/src/ATen/TensorIterator.cpp, reorder_dimensions).
Layout pointwise_layout(const Shape& shape, std::span<const Layout> operands);

}  // namespace tilecast
