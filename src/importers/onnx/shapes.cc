#include "importers/onnx/shapes.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "base/checked.h"

namespace tilecast {

std::vector<OnnxSlice> slices_of(const OnnxCall& call) {
  const Shape shape = call.shape(0);
  const Shape starts = call.integers(1, "starts"), ends = call.integers(2, "ends");
  Shape axes, steps(starts.size(), 1);
  if (call.has(3)) {
    axes = call.integers(3, "axes");
  } else {
    axes.resize(starts.size());
    std::iota(axes.begin(), axes.end(), int64_t{0});
  }
  if (call.has(4)) steps = call.integers(4, "steps");
  if (ends.size() != starts.size() || axes.size() != starts.size() || steps.size() != starts.size())
    call.fail("starts, ends, axes and steps have different lengths");
  std::vector<OnnxSlice> all;
  for (size_t i = 0; i < starts.size(); ++i) {
    OnnxSlice part{.axis = call.axis(axes[i], shape.size()), .step = steps[i]};
    const int64_t size = shape[part.axis];
    if (part.step == 0) call.fail("a step of 0");
    // Positions beyond either end mean the end.
    const auto limit = [&](int64_t at, int64_t low, int64_t high) {
      if (at < 0) at = at < -size ? low : at + size;
      return std::clamp(at, low, high);
    };
    const bool forward = part.step > 0;
    part.start = limit(starts[i], 0, forward ? size : std::max<int64_t>(0, size - 1));
    const int64_t end = limit(ends[i], forward ? 0 : -1, size);
    const int64_t reach = forward ? end - part.start : part.start - end;
    // Steps may be as large as 64 bits allow.
    const int64_t step = forward ? part.step : part.step == INT64_MIN ? INT64_MAX : -part.step;
    part.count = reach <= 0 ? 0 : (reach - 1) / step + 1;
    if (part.count <= 1) part.step = 1;
    all.push_back(part);
  }
  return all;
}

Shape order_of(const OnnxCall& call, size_t rank) {
  Shape order = call.list("perm");
  if (order.empty()) {
    order.resize(rank);
    std::iota(order.rbegin(), order.rend(), int64_t{0});
  }
  Shape sorted = order;
  std::sort(sorted.begin(), sorted.end());
  bool valid = order.size() == rank;
  for (size_t d = 0; valid && d < rank; ++d) valid = sorted[d] == static_cast<int64_t>(d);
  if (!valid)
    call.fail(fmt::format("perm {} is no order of {} dimensions", format_shape(order), rank));
  return order;
}

Shape reshaped(const OnnxCall& call) {
  const Shape from = call.shape(0);
  Shape to = call.integers(1, "the shape");
  const bool zero_is_zero = call.integer("allowzero", 0) != 0;
  int64_t known = 1;
  std::optional<size_t> open;
  for (size_t d = 0; d < to.size(); ++d) {
    if (to[d] == 0 && !zero_is_zero) {
      if (d >= from.size()) call.fail(fmt::format("no dimension {} to keep", d));
      to[d] = from[d];
    }
    if (to[d] == -1 && !open) {
      open = d;
    } else if (to[d] < 0) {
      call.fail(fmt::format("the shape {} has a negative dimension", format_shape(to)));
    } else {
      known = checked_multiply(known, to[d]);
    }
  }
  const int64_t count = element_count(from);
  if (open) to[*open] = known == 0 ? 0 : count / known;
  if (element_count(to) != count)
    call.fail(fmt::format("cannot reshape {} to {}: the number of elements differs",
                          format_shape(from), format_shape(to)));
  return to;
}

Shape unsqueezed(const OnnxCall& call) {
  Shape shape = call.shape(0);
  Shape added = call.list("axes");
  if (added.empty() && call.has(1)) added = call.integers(1, "axes");
  constexpr size_t kMostDims = 64;
  const size_t rank = shape.size() + added.size();
  if (rank > kMostDims) call.fail("too many dimensions");
  for (int64_t& axis : added) axis = static_cast<int64_t>(call.axis(axis, rank));
  std::sort(added.begin(), added.end());
  for (const int64_t axis : added) {
    if (axis > static_cast<int64_t>(shape.size())) call.fail("an axis is given twice");
    shape.insert(shape.begin() + axis, 1);
  }
  return shape;
}

Shape squeezed(const OnnxCall& call) {
  const Shape shape = call.shape(0);
  const std::optional<Shape> axes = call.axes(1, shape.size());
  Shape left;
  for (size_t d = 0; d < shape.size(); ++d) {
    const bool named =
        axes && std::find(axes->begin(), axes->end(), static_cast<int64_t>(d)) != axes->end();
    if (named && shape[d] != 1)
      call.fail(fmt::format("cannot remove dimension {} of {}", d, format_shape(shape)));
    if (axes ? !named : shape[d] != 1) left.push_back(shape[d]);
  }
  return left;
}

Shape flattened(const OnnxCall& call) {
  const Shape shape = call.shape(0);
  int64_t axis = call.integer("axis", 1);
  const auto rank = static_cast<int64_t>(shape.size());
  if (axis < 0) axis += rank;
  if (axis < 0 || axis > rank)
    call.fail(fmt::format("no axis {} in {}", axis, format_shape(shape)));
  return {element_count(Shape(shape.begin(), shape.begin() + axis)),
          element_count(Shape(shape.begin() + axis, shape.end()))};
}

std::optional<Shape> broadcast(const Shape& a, const Shape& b) {
  Shape result(std::max(a.size(), b.size()), 1);
  for (const Shape* shape : {&a, &b}) {
    const size_t offset = result.size() - shape->size();
    for (size_t d = 0; d < shape->size(); ++d) {
      int64_t& have = result[offset + d];
      if (have == 1) {
        have = (*shape)[d];
      } else if ((*shape)[d] != 1 && (*shape)[d] != have) {
        return std::nullopt;
      }
    }
  }
  return result;
}

Shape broadcast_shapes(const OnnxCall& call, const Shape& a, const Shape& b) {
  const std::optional<Shape> result = broadcast(a, b);
  if (!result)
    call.fail(fmt::format("shapes do not broadcast: {} and {}", format_shape(a), format_shape(b)));
  return *result;
}

}  // namespace tilecast
