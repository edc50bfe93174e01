#include "ops/strides.h"

#include <algorithm>
#include <numeric>

namespace tilecast {

Layout row_major(Shape shape) {
  Layout layout{.shape = std::move(shape), .strides = {}};
  layout.strides.resize(layout.shape.size());
  int64_t step = 1;
  for (size_t d = layout.shape.size(); d-- > 0;) {
    layout.strides[d] = step;
    step *= std::max<int64_t>(1, layout.shape[d]);
  }
  return layout;
}

bool is_row_major(const Layout& layout) {
  int64_t step = 1;
  for (size_t d = layout.shape.size(); d-- > 0;) {
    if (layout.shape[d] != 1 && layout.strides[d] != step) return false;
    step *= layout.shape[d];
  }
  return true;
}

bool is_channels_last(const Layout& layout) {
  if (layout.shape.size() != 4 || layout.strides[1] == 0) return false;
  int64_t least = 0;
  for (const size_t d : {1, 3, 2, 0}) {
    if (layout.shape[d] == 0 || layout.strides[d] < least) return false;
    if (d == 0 && least == layout.strides[1]) return false;
    least = layout.strides[d];
    if (layout.shape[d] > 1) least *= layout.shape[d];
  }
  return true;
}

Layout channels_last(Shape shape) {
  const Shape by_rows = {shape[0], shape[2], shape[3], shape[1]};
  return transposed(row_major(by_rows), {0, 3, 1, 2});
}

std::optional<Layout> viewed(const Layout& from, const Shape& shape) {
  if (from.shape.empty() || element_count(from.shape) == 0) return row_major(shape);
  Layout to{.shape = shape, .strides = Shape(shape.size(), 1)};
  auto d = static_cast<int64_t>(shape.size()) - 1;
  int64_t base = from.strides.back();
  int64_t old_elements = 1, new_elements = 1;
  for (size_t i = from.shape.size(); i-- > 0;) {
    old_elements *= from.shape[i];
    // The end of dimensions that are one piece of memory.
    if (i > 0 && (from.shape[i - 1] == 1 || from.strides[i - 1] == old_elements * base)) continue;
    while (d >= 0 && (new_elements < old_elements || shape[static_cast<size_t>(d)] == 1)) {
      to.strides[static_cast<size_t>(d)] = new_elements * base;
      new_elements *= shape[static_cast<size_t>(d)];
      --d;
    }
    if (new_elements != old_elements) return std::nullopt;
    if (i > 0) {
      base = from.strides[i - 1];
      old_elements = new_elements = 1;
    }
  }
  return d == -1 ? std::optional(std::move(to)) : std::nullopt;
}

Layout transposed(const Layout& from, const Shape& order) {
  Layout to;
  for (const int64_t d : order) {
    to.shape.push_back(from.shape[static_cast<size_t>(d)]);
    to.strides.push_back(from.strides[static_cast<size_t>(d)]);
  }
  return to;
}

Layout expanded(const Layout& from, const Shape& shape) {
  Layout to{.shape = shape, .strides = Shape(shape.size(), 0)};
  const size_t added = shape.size() - from.shape.size();
  for (size_t d = 0; d < from.shape.size(); ++d) {
    if (from.shape[d] == shape[added + d]) to.strides[added + d] = from.strides[d];
  }
  return to;
}

bool is_batch_of_matrices(const Layout& layout) {
  const size_t rank = layout.shape.size();
  if (rank < 4) return true;
  const Shape leading(layout.shape.begin(), layout.shape.end() - 2);
  return viewed(layout, {element_count(leading), layout.shape[rank - 2], layout.shape[rank - 1]})
      .has_value();
}

bool has_foldable_rows(const Layout& layout) {
  for (size_t d = 0; d + 2 < layout.shape.size(); ++d) {
    if (layout.strides[d] != layout.strides[d + 1] * layout.shape[d + 1]) return false;
  }
  return true;
}

namespace {

/// Whether dimension `a` is outside of `b` in memory: 1; inside: -1; 0: the operands do not say.
int compare_dims(const Shape& shape, std::span<const Layout> operands, size_t a, size_t b) {
  for (const Layout& operand : operands) {
    const int64_t x = operand.strides[a], y = operand.strides[b];
    if (x == 0 || y == 0) continue;  // repeated along a dimension
    if (x < y) return -1;
    if (x > y || shape[a] > shape[b]) return 1;
  }
  return 0;
}

}  // namespace

Layout pointwise_layout(const Shape& shape, std::span<const Layout> operands) {
  std::vector<Layout> wide;
  for (const Layout& operand : operands) wide.push_back(expanded(operand, shape));
  // Dimensions from the inside to the outside: an insertion sort, since comparisons may be unknown.
  std::vector<size_t> order(shape.size());
  std::iota(order.rbegin(), order.rend(), size_t{0});
  for (size_t i = 1; i < order.size(); ++i) {
    size_t at = i;
    for (size_t before = i; before-- > 0;) {
      const int compared = compare_dims(shape, wide, order[before], order[at]);
      if (compared < 0) break;
      if (compared == 0) continue;
      std::swap(order[before], order[at]);
      at = before;
    }
  }
  Layout result{.shape = shape, .strides = Shape(shape.size(), 1)};
  int64_t step = 1;
  for (const size_t d : order) {
    result.strides[d] = step;
    step *= std::max<int64_t>(1, shape[d]);
  }
  return result;
}

}  // namespace tilecast
