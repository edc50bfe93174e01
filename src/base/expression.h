#pragma once

// Arithmetic of data files: "2 * ROWS + COLUMNS - 2", "ceil(bytes / 16)" of architecture
// descriptions, "k_mult % e == 0 and k_mult <= 32" of tuning rules.
// Goals: latencies and sizes follow from parameters and from an instruction's attributes; a rule is
// an inequality over parameters.
// Non-goals: assignments, choices between values, loops. Anything of that kind would hide a model
// in the data.

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tilecast {

/// What an expression does: tokens in reverse Polish notation.
struct ExpressionToken {
  enum class Op : uint8_t {
    kNumber,
    kName,
    kAdd,
    kSubtract,
    kMultiply,
    kDivide,
    kModulo,
    kMin,
    kMax,
    kCeil,
    kFloor,
    kLog2,
    kLess,
    kLessEqual,
    kGreater,
    kGreaterEqual,
    kEqual,
    kUnequal,
    kAnd,
    kOr
  };
  Op op = Op::kNumber;
  double number = 0;
  size_t place = 0;  ///< of a name
};

/// An expression whose names are places of a list of numbers: evaluated in a few nanoseconds.
class BoundExpression {
 public:
  /// The value; not a number where a division by zero or a logarithm has none. Conditions are 1 or
  /// 0, and 0 where either side is not a number.
  double evaluate(std::span<const double> values) const;

 private:
  friend class Expression;
  std::vector<ExpressionToken> tokens_ = {ExpressionToken{}};
};

/// A parsed expression: numbers, names, + - * / %, parentheses, and the functions min, max, ceil,
/// floor, log2. A condition also has < <= > >= == != and the words `and`, `or`.
class Expression {
 public:
  using Lookup = std::function<std::optional<double>(std::string_view name)>;

  Expression() = default;
  explicit Expression(double constant);

  /// `where` names the place in messages. Throws Error{kInput} for anything that is no expression,
  /// is longer than 1,000 characters or is nested deeper than 32 levels.
  static Expression parse(std::string_view text, const std::string& where);
  /// The same for a condition.
  static Expression parse_condition(std::string_view text, const std::string& where);

  /// Throws Error{kInput} for a name that has no place.
  BoundExpression bind(const std::function<std::optional<size_t>(std::string_view)>& place_of,
                       const std::string& where) const;

  /// The value. Throws Error{kInput} for an unknown name, a division by zero, and a value that is
  /// not finite.
  double evaluate(const Lookup& lookup, const std::string& where) const;

  /// All names that it uses, the last one first.
  std::vector<std::string> names() const;
  const std::string& text() const { return text_; }

 private:
  friend class ExpressionParser;
  std::vector<ExpressionToken> tokens_ = {ExpressionToken{}};
  std::vector<std::string> names_;  ///< by place, in the order of the text
  std::string text_ = "0";
};

}  // namespace tilecast
