#pragma once

// Arithmetic of architecture descriptions: "2 * ROWS + COLUMNS - 2", "ceil(bytes / 16)".
// Goals: latencies and sizes follow from parameters and from an instruction's attributes.
// Non-goals: assignments, conditions, loops. Anything of that kind would hide a model in the data.

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tilecast::accelerator {

/// A parsed expression: numbers, names, + - * / %, parentheses, and the functions min, max, ceil,
/// floor, log2.
class Expression {
 public:
  using Lookup = std::function<std::optional<double>(std::string_view name)>;

  Expression() = default;
  explicit Expression(double constant);

  /// `where` names the place in messages. Throws Error{kInput} for anything that is no expression,
  /// is longer than 1,000 characters or is nested deeper than 32 levels.
  static Expression parse(std::string_view text, const std::string& where);

  /// The value. Throws Error{kInput} for an unknown name, a division by zero, and a value that is
  /// not finite.
  double evaluate(const Lookup& lookup, const std::string& where) const;

  /// All names that it uses.
  std::vector<std::string> names() const;
  const std::string& text() const { return text_; }

 private:
  friend class ExpressionParser;
  enum class Kind { kNumber, kName, kAdd, kSubtract, kMultiply, kDivide, kModulo, kCall };
  struct Node {
    Kind kind = Kind::kNumber;
    double number = 0;
    std::string name;  ///< of a name or a function
    std::vector<Node> operands;
  };
  double value(const Node& node, const Lookup& lookup, const std::string& where) const;
  double call(const Node& node, const Lookup& lookup, const std::string& where) const;

  Node root_;
  std::string text_ = "0";
};

}  // namespace tilecast::accelerator
