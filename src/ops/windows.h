#pragma once

// Windows that slide over any number of dimensions: convolutions and pooling.

#include "ops/op_def.h"

namespace tilecast {

/// The attributes of a window: `strides`, `pads` and `dilations`, a number for each dimension that
/// it slides over; pads may also be given for the beginning and the end (twice as many).
std::vector<AttributeDef> window_attributes();

/// The numbers of a node's attribute for `dims` dimensions; `otherwise` where it is left out.
Shape per_dimension(const OpContext& context, std::string_view name, size_t dims,
                    int64_t otherwise);

/// Pads at both ends together, for each of `dims` dimensions.
Shape total_pads(const OpContext& context, size_t dims);

/// How many windows of each size fit into `in`, by the node's attributes; `ceil` also counts a last
/// window that begins inside but ends outside. Throws Error{kInput} if one does not fit.
Shape window_positions(const OpContext& context, const Shape& in, const Shape& window,
                       const Shape& strides, bool ceil);

}  // namespace tilecast
