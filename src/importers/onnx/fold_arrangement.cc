// Constants in another arrangement.

#include <algorithm>
#include <numeric>

#include "base/checked.h"
#include "importers/onnx/fold.h"

namespace tilecast {
namespace {

/// A tensor of another shape whose elements come from given places.
OnnxConstant arranged(const OnnxConstant& x, Shape shape, const std::vector<size_t>& places) {
  OnnxConstant result{x.type, std::move(shape), {}, {}};
  resize(result, places.size(), 0);
  for (size_t i = 0; i < places.size(); ++i) copy(result, i, x, places[i]);
  return result;
}

std::vector<size_t> in_order(size_t count) {
  std::vector<size_t> places(count);
  std::iota(places.begin(), places.end(), size_t{0});
  return places;
}

/// Elements before and after a dimension.
struct Around {
  size_t outer = 1, size = 1, inner = 1;
};

Around around(const Shape& shape, size_t axis) {
  Around a{.size = static_cast<size_t>(shape[axis])};
  for (size_t d = 0; d < axis; ++d) a.outer *= static_cast<size_t>(shape[d]);
  for (size_t d = axis + 1; d < shape.size(); ++d) a.inner *= static_cast<size_t>(shape[d]);
  return a;
}

/// Takes some places of a dimension.
std::vector<size_t> taken(const Shape& shape, size_t axis, const std::vector<size_t>& wanted) {
  const Around a = around(shape, axis);
  std::vector<size_t> places;
  if (wanted.empty() || a.inner == 0) return places;  // others may be of any size
  for (size_t o = 0; o < a.outer; ++o) {
    for (const size_t w : wanted) {
      for (size_t i = 0; i < a.inner; ++i) places.push_back((o * a.size + w) * a.inner + i);
    }
  }
  return places;
}

bool fold_gather(OnnxCall& call) {
  const OnnxConstant &x = call.known(0), &index = call.known(1);
  if (index.is_float() || x.shape.empty()) return false;
  const size_t axis = call.axis(call.integer("axis", 0), x.shape.size());
  std::vector<size_t> wanted;
  for (int64_t at : index.integers) {
    if (at < 0) at += x.shape[axis];
    if (at < 0 || at >= x.shape[axis]) call.fail("an index is outside of the tensor");
    wanted.push_back(static_cast<size_t>(at));
  }
  Shape shape(x.shape.begin(), x.shape.begin() + static_cast<std::ptrdiff_t>(axis));
  shape.insert(shape.end(), index.shape.begin(), index.shape.end());
  shape.insert(shape.end(), x.shape.begin() + static_cast<std::ptrdiff_t>(axis) + 1, x.shape.end());
  if (element_count(shape) > static_cast<int64_t>(kMostConstants)) return false;
  call.set(0, arranged(x, shape, taken(x.shape, axis, wanted)));
  return true;
}

bool fold_slice(OnnxCall& call) {
  OnnxConstant x = call.known(0);
  for (const OnnxSlice& part : slices_of(call)) {
    std::vector<size_t> wanted;
    for (int64_t i = 0; i < part.count; ++i)
      wanted.push_back(static_cast<size_t>(part.start + i * part.step));
    Shape shape = x.shape;
    shape[part.axis] = part.count;
    x = arranged(x, shape, taken(x.shape, part.axis, wanted));
  }
  call.set(0, std::move(x));
  return true;
}

bool fold_concat(OnnxCall& call) {
  const OnnxConstant& first = call.known(0);
  if (first.shape.empty()) return false;
  const size_t axis = call.axis(call.integer("axis", 0), first.shape.size());
  OnnxConstant result{first.type, first.shape, {}, {}};
  result.shape[axis] = 0;
  for (size_t i = 0; i < call.input_count(); ++i) {
    const OnnxConstant& x = call.known(i);
    if (x.shape.size() != first.shape.size()) return false;
    result.shape[axis] = checked_add(result.shape[axis], x.shape[axis]);
  }
  const auto count = static_cast<size_t>(element_count(result.shape));
  if (count > kMostConstants) return false;
  resize(result, count, 0);
  size_t before = 0;
  for (size_t i = 0; i < call.input_count(); ++i) {
    const OnnxConstant& x = call.known(i);
    const Around a = around(x.shape, axis);
    const size_t width = a.size * a.inner;
    const size_t whole = static_cast<size_t>(result.shape[axis]) * a.inner;
    if (a.outer * width != x.size() || a.outer * whole != count) return false;
    for (size_t at = 0; at < x.size(); ++at)
      copy(result, at / width * whole + before + at % width, x, at);
    before += width;
  }
  call.set(0, std::move(result));
  return true;
}

bool fold_transpose(OnnxCall& call) {
  const OnnxConstant& x = call.known(0);
  const Shape order = order_of(call, x.shape.size());
  Shape shape, strides(x.shape.size(), 1);
  for (size_t d = x.shape.size(); x.size() > 0 && d-- > 1;)
    strides[d - 1] = strides[d] * x.shape[d];
  for (const int64_t d : order) shape.push_back(x.shape[static_cast<size_t>(d)]);
  std::vector<size_t> places;
  for (size_t i = 0; i < x.size(); ++i) {
    size_t at = i, place = 0;
    for (size_t d = shape.size(); d-- > 0;) {
      const auto size = static_cast<size_t>(shape[d]);
      place += at % size * static_cast<size_t>(strides[static_cast<size_t>(order[d])]);
      at /= size;
    }
    places.push_back(place);
  }
  call.set(0, arranged(x, shape, places));
  return true;
}

bool fold_cumsum(OnnxCall& call) {
  OnnxConstant x = call.known(0);
  if (x.shape.size() != 1 || call.integer("exclusive", 0) != 0 || call.integer("reverse", 0) != 0)
    return false;
  for (size_t i = 1; i < x.size(); ++i) put(x, i, x.number(i - 1) + x.number(i));
  call.set(0, std::move(x));
  return true;
}

bool fold_tile(OnnxCall& call) {
  const OnnxConstant& x = call.known(0);
  if (x.shape.size() != 1 || call.known(1).is_float()) return false;
  const int64_t repeats = call.one_integer(1, "the repeats");
  if (repeats < 0 || repeats > static_cast<int64_t>(kMostConstants / std::max<size_t>(1, x.size())))
    return false;
  std::vector<size_t> places;
  for (int64_t r = 0; r < repeats; ++r) {
    for (size_t i = 0; i < x.size(); ++i) places.push_back(i);
  }
  const auto count = static_cast<int64_t>(places.size());
  call.set(0, arranged(x, {count}, places));
  return true;
}

}  // namespace

bool fold_arrangement(OnnxCall& call) {
  const std::string& op = call.node().op;
  const OnnxConstant& x = call.known(0);
  const bool two = call.input_count() > 1 && call.constant(1) != nullptr;
  if (op == "Gather") return two && fold_gather(call);
  if (op == "Slice") return fold_slice(call);
  if (op == "Concat") return fold_concat(call);
  if (op == "Transpose") return fold_transpose(call);
  if (op == "CumSum") return fold_cumsum(call);
  if (op == "Tile") return two && fold_tile(call);
  if (op == "Identity") {
    call.set(0, x);
    return true;
  }
  std::optional<Shape> shape;
  if (op == "Reshape" && two) shape = reshaped(call);
  if (op == "Unsqueeze") shape = unsqueezed(call);
  if (op == "Squeeze") shape = squeezed(call);
  if (op == "Flatten") shape = flattened(call);
  if (!shape) return false;
  call.set(0, arranged(x, *shape, in_order(x.size())));
  return true;
}

}  // namespace tilecast
