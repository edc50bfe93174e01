#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "base/expression.h"
#include "base/text.h"
#include "tilecast/error.h"

namespace tilecast {

BoundExpression Expression::bind(
    const std::function<std::optional<size_t>(std::string_view)>& place_of,
    const std::string& where) const {
  using Op = BoundExpression::Op;
  BoundExpression bound;
  const auto function = [](const std::string& name) {
    if (name == "min") return Op::kMin;
    if (name == "max") return Op::kMax;
    if (name == "ceil") return Op::kCeil;
    return name == "floor" ? Op::kFloor : Op::kLog2;
  };
  const auto operation = [](Kind kind) {
    // Both lists have the operators in the same order.
    if (kind <= Kind::kModulo)
      return static_cast<Op>(static_cast<int>(Op::kAdd) + static_cast<int>(kind) -
                             static_cast<int>(Kind::kAdd));
    return static_cast<Op>(static_cast<int>(Op::kLess) + static_cast<int>(kind) -
                           static_cast<int>(Kind::kLess));
  };
  const std::function<void(const Node&)> add = [&](const Node& node) {
    if (node.kind == Kind::kNumber) {
      bound.steps_.push_back({Op::kNumber, node.number, 0});
      return;
    }
    if (node.kind == Kind::kName) {
      const std::optional<size_t> place = place_of(node.name);
      if (!place)
        throw Error(ErrorKind::kInput, fmt::format("{}: '{}': unknown name '{}'", where,
                                                   shown_name(text_), shown_name(node.name)));
      bound.steps_.push_back({Op::kName, 0, *place});
      return;
    }
    for (size_t i = 0; i < node.operands.size(); ++i) {
      add(node.operands[i]);
      if (node.kind == Kind::kCall && i > 0) bound.steps_.push_back({function(node.name), 0, 0});
    }
    if (node.kind != Kind::kCall) bound.steps_.push_back({operation(node.kind), 0, 0});
    if (node.kind == Kind::kCall && node.operands.size() == 1)
      bound.steps_.push_back({function(node.name), 0, 0});
  };
  add(root_);
  return bound;
}

double BoundExpression::evaluate(std::span<const double> values) const {
  // The parser allows 32 levels; of each at most five operators wait for their right side.
  std::array<double, 256> stack;
  size_t top = 0;
  for (const Step& step : steps_) {
    if (step.op == Op::kNumber || step.op == Op::kName) {
      stack[top++] = step.op == Op::kNumber ? step.number : values[step.place];
      continue;
    }
    double& last = stack[top - 1];
    if (step.op == Op::kCeil || step.op == Op::kFloor || step.op == Op::kLog2) {
      last = step.op == Op::kCeil    ? std::ceil(last)
             : step.op == Op::kFloor ? std::floor(last)
                                     : std::log2(last);
      continue;
    }
    const double right = last;
    double& left = stack[--top - 1];
    switch (step.op) {
      case Op::kAdd:
        left += right;
        break;
      case Op::kSubtract:
        left -= right;
        break;
      case Op::kMultiply:
        left *= right;
        break;
      case Op::kDivide:
        left /= right;
        break;
      case Op::kModulo:
        left = std::fmod(left, right);
        break;
      case Op::kMin:
        left = std::min(left, right);
        break;
      case Op::kMax:
        left = std::max(left, right);
        break;
      case Op::kLess:
        left = left < right ? 1 : 0;
        break;
      case Op::kLessEqual:
        left = left <= right ? 1 : 0;
        break;
      case Op::kGreater:
        left = left > right ? 1 : 0;
        break;
      case Op::kGreaterEqual:
        left = left >= right ? 1 : 0;
        break;
      case Op::kEqual:
        left = left == right ? 1 : 0;
        break;
      case Op::kUnequal:
        left = left != right ? 1 : 0;
        break;
      case Op::kAnd:
        left = left != 0 && right != 0 ? 1 : 0;
        break;
      default:
        left = left != 0 || right != 0 ? 1 : 0;
        break;
    }
  }
  return stack[0];
}

}  // namespace tilecast
