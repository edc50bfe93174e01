#include "ops/windows.h"

#include <fmt/format.h>

#include "base/checked.h"

namespace tilecast {

std::vector<AttributeDef> window_attributes() {
  const auto list = [](std::string_view name, std::string_view doc, int64_t min) {
    return AttributeDef{.name = name,
                        .doc = doc,
                        .type = AttributeType::kIntegers,
                        .default_value = Shape{},
                        .min = min};
  };
  return {list("strides", "in each dimension; default: see the operator", 1),
          list("pads", "in each dimension, or all beginnings, then all ends; default: 0", 0),
          list("dilations", "in each dimension; default: 1", 1)};
}

Shape per_dimension(const OpContext& context, std::string_view name, size_t dims,
                    int64_t otherwise) {
  const auto& given = context.attribute<Shape>(name);
  if (given.empty()) return Shape(dims, otherwise);
  if (given.size() != dims)
    context.fail(fmt::format("attribute '{}': expected {} numbers, found {}", name, dims,
                             format_shape(given)));
  return given;
}

Shape total_pads(const OpContext& context, size_t dims) {
  const auto& given = context.attribute<Shape>("pads");
  if (given.empty()) return Shape(dims, 0);
  if (given.size() != dims && given.size() != 2 * dims)
    context.fail(fmt::format("attribute 'pads': expected {} or {} numbers, found {}", dims,
                             2 * dims, format_shape(given)));
  Shape total(dims);
  for (size_t d = 0; d < dims; ++d)
    total[d] = checked_add(given[d], given[given.size() == dims ? d : dims + d]);
  return total;
}

Shape window_positions(const OpContext& context, const Shape& in, const Shape& window,
                       const Shape& strides, bool ceil) {
  const Shape pads = total_pads(context, in.size());
  const auto& given = context.attribute<Shape>("pads");
  const Shape dilations = per_dimension(context, "dilations", in.size(), 1);
  Shape out(in.size());
  for (size_t d = 0; d < in.size(); ++d) {
    const int64_t reach = checked_add(checked_multiply(dilations[d], window[d] - 1), 1);
    const int64_t room = checked_add(in[d], pads[d]) - reach;
    if (room < 0 || window[d] < 1)
      context.fail(fmt::format("a window {} is larger than {} with its padding",
                               format_shape(window), format_shape(in)));
    out[d] = (ceil ? ceil_divide(room, strides[d]) : room / strides[d]) + 1;
    // As PyTorch's pooling_output_shape: the last window begins inside, or in the padding before.
    const int64_t before = given.empty() ? 0 : given[d];
    if (ceil && checked_multiply(out[d] - 1, strides[d]) >= checked_add(in[d], before)) out[d] -= 1;
  }
  return out;
}

}  // namespace tilecast
