// Functions of single constants, which are broadcast.

#include <algorithm>
#include <cmath>
#include <optional>

#include "importers/onnx/fold.h"
#include "importers/onnx/shapes.h"

namespace tilecast {
namespace {

using Function = double (*)(double, double);

struct Elementwise {
  std::string_view op;
  Function apply;
  bool gives_bool = false;
};

double divide(double a, double b) { return a / b; }

constexpr Elementwise kElementwise[] = {
    {"Add", [](double a, double b) { return a + b; }},
    {"Sub", [](double a, double b) { return a - b; }},
    {"Mul", [](double a, double b) { return a * b; }},
    {"Div", divide},
    {"Mod", [](double a, double b) { return b == 0 ? 0 : a - b * std::floor(a / b); }},
    {"Pow", [](double a, double b) { return std::pow(a, b); }},
    {"Min", [](double a, double b) { return std::min(a, b); }},
    {"Max", [](double a, double b) { return std::max(a, b); }},
    {"Equal", [](double a, double b) { return a == b ? 1.0 : 0.0; }, true},
    {"Less", [](double a, double b) { return a < b ? 1.0 : 0.0; }, true},
    {"LessOrEqual", [](double a, double b) { return a <= b ? 1.0 : 0.0; }, true},
    {"Greater", [](double a, double b) { return a > b ? 1.0 : 0.0; }, true},
    {"GreaterOrEqual", [](double a, double b) { return a >= b ? 1.0 : 0.0; }, true},
    {"And", [](double a, double b) { return a != 0 && b != 0 ? 1.0 : 0.0; }, true},
    {"Or", [](double a, double b) { return a != 0 || b != 0 ? 1.0 : 0.0; }, true},
    {"Xor", [](double a, double b) { return (a != 0) != (b != 0) ? 1.0 : 0.0; }, true},
    {"Not", [](double a, double) { return a == 0 ? 1.0 : 0.0; }, true},
    {"Neg", [](double a, double) { return -a; }},
    {"Abs", [](double a, double) { return std::abs(a); }},
    {"Floor", [](double a, double) { return std::floor(a); }},
    {"Ceil", [](double a, double) { return std::ceil(a); }},
    {"Round", [](double a, double) { return std::nearbyint(a); }},
    {"Sqrt", [](double a, double) { return std::sqrt(a); }},
    {"Reciprocal", [](double a, double) { return 1 / a; }},
    {"Exp", [](double a, double) { return std::exp(a); }},
    {"Log", [](double a, double) { return std::log(a); }},
    {"Sign", [](double a, double) { return a > 0   ? 1.0
                                           : a < 0 ? -1.0
                                                   : 0.0; }},
};

/// The position in a tensor of `from` of the element at `at` of a tensor of `to`, to which it is
/// broadcast.
size_t source(size_t at, const Shape& to, const Shape& from) {
  size_t position = 0, stride = 1;
  for (size_t d = 0; d < to.size(); ++d) {
    const auto size = static_cast<size_t>(to[to.size() - 1 - d]);
    const size_t index = at % size;
    at /= size;
    if (d >= from.size()) continue;
    const auto own = static_cast<size_t>(from[from.size() - 1 - d]);
    if (own != 1) position += index * stride;
    stride *= own;
  }
  return position;
}

bool fold_function(OnnxCall& call, const Elementwise& function) {
  const OnnxConstant& a = call.known(0);
  const OnnxConstant& b = call.known(call.input_count() > 1 ? 1 : 0);
  if (call.input_count() > 2) return false;
  const std::optional<Shape> shape = broadcast(a.shape, b.shape);
  if (!shape || !fits_constant(*shape)) return false;
  OnnxConstant result{function.gives_bool ? OnnxType::kBool : a.type, *shape, {}, {}};
  resize(result, static_cast<size_t>(element_count(*shape)), 0);
  for (size_t i = 0; i < result.size(); ++i) {
    const size_t left = source(i, *shape, a.shape), right = source(i, *shape, b.shape);
    // Whole numbers divide to whole numbers.
    if (function.apply == divide && !a.is_float() && !b.is_float()) {
      if (b.integers[right] == 0 || b.integers[right] == -1) return false;
      result.integers[i] = a.integers[left] / b.integers[right];
    } else {
      put(result, i, function.apply(a.number(left), b.number(right)));
    }
  }
  call.set(0, std::move(result));
  return true;
}

bool fold_where(OnnxCall& call) {
  const OnnxConstant &mask = call.known(0), &x = call.known(1), &y = call.known(2);
  const std::optional<Shape> inner = broadcast(x.shape, y.shape);
  const std::optional<Shape> shape = inner ? broadcast(mask.shape, *inner) : std::nullopt;
  if (!shape || !fits_constant(*shape)) return false;
  OnnxConstant result{x.type, *shape, {}, {}};
  resize(result, static_cast<size_t>(element_count(*shape)), 0);
  for (size_t i = 0; i < result.size(); ++i) {
    const OnnxConstant& from = mask.number(source(i, *shape, mask.shape)) != 0 ? x : y;
    copy(result, i, from, source(i, *shape, from.shape));
  }
  call.set(0, std::move(result));
  return true;
}

bool fold_expand(OnnxCall& call) {
  const OnnxConstant& x = call.known(0);
  if (call.known(1).is_float()) return false;
  const std::optional<Shape> shape = broadcast(x.shape, call.known(1).integers);
  if (!shape || !fits_constant(*shape)) return false;
  OnnxConstant result{x.type, *shape, {}, {}};
  resize(result, static_cast<size_t>(element_count(*shape)), 0);
  for (size_t i = 0; i < result.size(); ++i) copy(result, i, x, source(i, *shape, x.shape));
  call.set(0, std::move(result));
  return true;
}

}  // namespace

bool fold_elementwise(OnnxCall& call) {
  const std::string& op = call.node().op;
  for (const Elementwise& function : kElementwise) {
    if (function.op == op) return fold_function(call, function);
  }
  const bool two = call.input_count() > 1 && call.constant(1) != nullptr;
  if (op == "Where") return two && call.constant(2) != nullptr && fold_where(call);
  return op == "Expand" && two && fold_expand(call);
}

}  // namespace tilecast
