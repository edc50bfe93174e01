// Computations on constants: shapes, axes, scalars, masks of fixed size. Only what exporters use to
// compute shapes; anything else becomes operators of the graph.

#include "importers/onnx/fold.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include "base/checked.h"
#include "base/text.h"
#include "importers/onnx/call.h"
#include "tilecast/error.h"

namespace tilecast {
namespace {

OnnxConstant integers_of(Shape shape, std::vector<int64_t> values) {
  return {OnnxType::kInt64, std::move(shape), std::move(values), {}};
}

/// Shape [..] of an input: all of it, or the part from `start` to `end`.
bool fold_shape(OnnxCall& call) {
  const Shape shape = call.shape(0);
  const auto rank = static_cast<int64_t>(shape.size());
  const auto limit = [&](int64_t at) {
    return std::clamp<int64_t>(at < 0 ? at + rank : at, 0, rank);
  };
  const int64_t start = limit(call.integer("start", 0)), end = limit(call.integer("end", rank));
  Shape part;
  for (int64_t d = start; d < end; ++d) part.push_back(shape[static_cast<size_t>(d)]);
  call.set(0, integers_of({static_cast<int64_t>(part.size())}, part));
  return true;
}

bool fold_size(OnnxCall& call) {
  call.set(0, integers_of({}, {element_count(call.shape(0))}));
  return true;
}

bool fold_constant(OnnxCall& call) {
  const auto number = [&](double value) { return OnnxConstant{OnnxType::kFloat, {}, {}, {value}}; };
  if (const OnnxAttribute* tensor = call.attribute("value"); tensor != nullptr && tensor->tensor) {
    // The attribute lives as long as the file.
    call.set(0, OnnxValue{.constant = tensor->tensor->values, .initializer = tensor->tensor.get()});
    return true;
  }
  if (const OnnxAttribute* a = call.attribute("value_int"); a != nullptr && a->integer) {
    call.set(0, integers_of({}, {*a->integer}));
  } else if (const OnnxAttribute* b = call.attribute("value_ints"); b != nullptr) {
    call.set(0, integers_of({static_cast<int64_t>(b->integers.size())}, b->integers));
  } else if (const OnnxAttribute* c = call.attribute("value_float"); c != nullptr && c->number) {
    call.set(0, number(*c->number));
  } else if (const OnnxAttribute* d = call.attribute("value_floats"); d != nullptr) {
    call.set(0, OnnxConstant{
                    OnnxType::kFloat, {static_cast<int64_t>(d->numbers.size())}, {}, d->numbers});
  } else {
    throw Error(ErrorKind::kUnsupported, "a constant without a numeric value");
  }
  return true;
}

bool fold_constant_of_shape(OnnxCall& call) {
  const OnnxConstant* shape = call.constant(0);
  if (shape == nullptr || shape->is_float() || !fits_constant(shape->integers)) return false;
  OnnxConstant result{OnnxType::kFloat, shape->integers, {}, {}};
  double value = 0;
  if (const OnnxAttribute* given = call.attribute("value"); given != nullptr && given->tensor) {
    result.type = given->tensor->type;
    if (given->tensor->values != nullptr && given->tensor->values->size() == 1)
      value = given->tensor->values->number(0);
  }
  resize(result, static_cast<size_t>(element_count(result.shape)), value);
  call.set(0, std::move(result));
  return true;
}

bool fold_range(OnnxCall& call) {
  const OnnxConstant &start = call.known(0), &limit = call.known(1), &step = call.known(2);
  if (start.size() != 1 || limit.size() != 1 || step.size() != 1 || step.number(0) == 0)
    return false;
  const double count = std::ceil((limit.number(0) - start.number(0)) / step.number(0));
  if (!(count <= static_cast<double>(kMostConstants))) return false;
  OnnxConstant result{start.type, {static_cast<int64_t>(std::max(0.0, count))}, {}, {}};
  resize(result, static_cast<size_t>(result.shape[0]), 0);
  for (size_t i = 0; i < result.size(); ++i)
    put(result, i, start.number(0) + static_cast<double>(i) * step.number(0));
  call.set(0, std::move(result));
  return true;
}

/// The type that CastLike gives: that of its second input, which need not be a constant. nullopt:
/// constants are not kept in it.
std::optional<OnnxType> type_like(const OnnxCall& call) {
  if (const OnnxConstant* like = call.constant(1)) return like->type;
  switch (call.dtype(1)) {
    case DType::kFp32:
      return OnnxType::kFloat;
    case DType::kFp16:
      return OnnxType::kFloat16;
    case DType::kBf16:
      return OnnxType::kBfloat16;
    case DType::kInt64:
      return OnnxType::kInt64;
    default:
      return std::nullopt;
  }
}

bool fold_cast(OnnxCall& call) {
  const OnnxConstant& x = call.known(0);
  OnnxConstant result{static_cast<OnnxType>(call.integer("to", 1)), x.shape, {}, {}};
  if (call.node().op == "CastLike") {
    const std::optional<OnnxType> type = type_like(call);
    if (!type) return false;
    result.type = *type;
  }
  resize(result, x.size(), 0);
  for (size_t i = 0; i < x.size(); ++i) {
    if (result.type == OnnxType::kBool) {
      put(result, i, x.number(i) != 0 ? 1 : 0);
    } else {
      copy(result, i, x, i);
    }
  }
  call.set(0, std::move(result));
  return true;
}

bool fold_reduce(OnnxCall& call) {
  const OnnxConstant& x = call.known(0);
  const std::optional<Shape> axes = call.axes(1, x.shape.size());
  if (axes && axes->size() != x.shape.size()) return false;  // only over everything
  if (x.size() == 0) return false;
  double value = x.number(0);
  const std::string& op = call.node().op;
  for (size_t i = 1; i < x.size(); ++i) {
    const double next = x.number(i);
    value = op == "ReduceProd"  ? value * next
            : op == "ReduceSum" ? value + next
            : op == "ReduceMin" ? std::min(value, next)
                                : std::max(value, next);
  }
  const bool keep = call.integer("keepdims", 1) != 0;
  OnnxConstant result{x.type, keep ? Shape(x.shape.size(), 1) : Shape{}, {}, {}};
  resize(result, 1, value);
  if (!x.is_float()) put(result, 0, value);
  call.set(0, std::move(result));
  return true;
}

/// Positions of elements that are not 0, [rank, count].
bool fold_nonzero(OnnxCall& call) {
  const OnnxConstant& x = call.known(0);
  std::vector<size_t> found;
  for (size_t i = 0; i < x.size(); ++i) {
    if (x.number(i) != 0) found.push_back(i);
  }
  const size_t rank = std::max<size_t>(1, x.shape.size());
  OnnxConstant result =
      integers_of({static_cast<int64_t>(rank), static_cast<int64_t>(found.size())}, {});
  result.integers.resize(rank * found.size());
  for (size_t i = 0; i < found.size(); ++i) {
    size_t at = found[i];
    for (size_t d = x.shape.size(); d-- > 0;) {
      const auto size = static_cast<size_t>(x.shape[d]);
      result.integers[d * found.size() + i] = static_cast<int64_t>(at % size);
      at /= size;
    }
  }
  call.set(0, std::move(result));
  return true;
}

}  // namespace

bool fits_constant(const Shape& shape) {
  int64_t count = 1;
  for (const int64_t d : shape) {
    if (d < 0 || d > static_cast<int64_t>(kMostConstants)) return false;
    count *= d;
    if (count > static_cast<int64_t>(kMostConstants)) return false;
  }
  return true;
}

/// Values beyond 64 bits occur as "to the end".
static int64_t whole_number(double value) {
  constexpr double kLimit = 9.2e18;
  if (std::isnan(value)) return 0;
  if (value >= kLimit) return std::numeric_limits<int64_t>::max();
  if (value <= -kLimit) return std::numeric_limits<int64_t>::min();
  return static_cast<int64_t>(value);
}

void resize(OnnxConstant& constant, size_t count, double value) {
  if (constant.is_float()) {
    constant.numbers.assign(count, value);
  } else {
    constant.integers.assign(count, whole_number(value));
  }
}

void put(OnnxConstant& constant, size_t i, double value) {
  if (constant.is_float()) {
    constant.numbers[i] = value;
    return;
  }
  constant.integers[i] = whole_number(value);
}

void copy(OnnxConstant& to, size_t i, const OnnxConstant& from, size_t j) {
  if (!to.is_float() && !from.is_float()) {
    to.integers[i] = from.integers[j];
  } else {
    put(to, i, from.number(j));
  }
}

bool fold_constants(OnnxCall& call) {
  const std::string& op = call.node().op;
  if (op == "Constant") return fold_constant(call);
  if (op == "Shape") return fold_shape(call);
  if (op == "Size") return fold_size(call);
  if (op == "ConstantOfShape") return fold_constant_of_shape(call);
  if (call.input_count() == 0 || call.output_count() == 0) return false;
  if (op == "CastLike" && call.input_count() > 1 && call.constant(0) != nullptr)
    return fold_cast(call);
  for (size_t i = 0; i < call.input_count(); ++i) {
    if (call.has(i) && call.constant(i) == nullptr) return false;
  }
  if (call.constant(0) == nullptr) return false;
  if (fold_elementwise(call)) return true;
  const auto all = [&](size_t count) {
    if (call.input_count() < count) return false;
    for (size_t i = 0; i < count; ++i) {
      if (call.constant(i) == nullptr) return false;
    }
    return true;
  };
  if (op == "Range") return all(3) && fold_range(call);
  if (op == "Cast") return fold_cast(call);
  if (op == "NonZero") return fold_nonzero(call);
  if (op == "ReduceProd" || op == "ReduceSum" || op == "ReduceMax" || op == "ReduceMin")
    return fold_reduce(call);
  return fold_arrangement(call);
}

}  // namespace tilecast
