#include "base/expression.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <iterator>
#include <utility>

#include "base/ascii.h"
#include "base/text.h"
#include "tilecast/error.h"

namespace tilecast {
namespace {

using Op = ExpressionToken::Op;

constexpr size_t kMostCharacters = 1000;
constexpr int kMostLevels = 32;

bool is_name_start(char c) { return is_letter(c) || c == '_'; }
bool is_name_part(char c) { return is_name_start(c) || is_digit(c); }

}  // namespace

/// Recursive descent: either → both → comparison → sum → product → factor. Each writes the tokens
/// for what it read.
class ExpressionParser {
 public:
  ExpressionParser(std::string_view text, const std::string& where, bool conditions)
      : text_(text), where_(where), conditions_(conditions) {}

  Expression parse() {
    conditions_ ? either() : sum();
    skip_spaces();
    if (at_ < text_.size()) fail(fmt::format("unexpected '{}'", text_[at_]));
    Expression expression;
    expression.tokens_ = std::move(tokens_);
    expression.names_ = std::move(names_);
    expression.text_ = text_;
    return expression;
  }

 private:
  [[noreturn]] void fail(const std::string& why) const {
    throw Error(ErrorKind::kInput,
                fmt::format("{}: '{}': {} at character {}; an expression has numbers, names, "
                            "+ - * / %, parentheses, min, max, ceil, floor and log2{}",
                            where_, shown_name(text_), shown_name(why), at_ + 1,
                            conditions_ ? "; a condition also < <= > >= == !=, and, or" : ""));
  }
  void skip_spaces() {
    while (at_ < text_.size() && text_[at_] == ' ') ++at_;
  }
  bool take(char c) {
    skip_spaces();
    if (at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  void emit(Op op) { tokens_.push_back({.op = op}); }

  /// Takes the word where it is not the start of a longer name.
  bool take_word(std::string_view word) {
    skip_spaces();
    if (!text_.substr(at_).starts_with(word)) return false;
    if (at_ + word.size() < text_.size() && is_name_part(text_[at_ + word.size()])) return false;
    at_ += word.size();
    return true;
  }
  void either() {
    if (++level_ > kMostLevels) fail("nested too deeply");
    both();
    while (take_word("or")) both(), emit(Op::kOr);
    --level_;
  }
  void both() {
    comparison();
    while (take_word("and")) comparison(), emit(Op::kAnd);
  }
  void comparison() {
    constexpr std::pair<std::string_view, Op> kSigns[] = {
        {"<=", Op::kLessEqual}, {">=", Op::kGreaterEqual}, {"==", Op::kEqual},
        {"!=", Op::kUnequal},   {"<", Op::kLess},          {">", Op::kGreater}};
    sum();
    skip_spaces();
    for (const auto& [sign, op] : kSigns) {
      if (!text_.substr(at_).starts_with(sign)) continue;
      at_ += sign.size();
      sum();
      return emit(op);
    }
  }

  void sum() {
    if (++level_ > kMostLevels) fail("nested too deeply");
    product();
    while (true) {
      if (take('+')) {
        product(), emit(Op::kAdd);
      } else if (take('-')) {
        product(), emit(Op::kSubtract);
      } else {
        --level_;
        return;
      }
    }
  }
  void product() {
    factor();
    while (true) {
      if (take('*')) {
        factor(), emit(Op::kMultiply);
      } else if (take('/')) {
        factor(), emit(Op::kDivide);
      } else if (take('%')) {
        factor(), emit(Op::kModulo);
      } else {
        return;
      }
    }
  }
  void factor() {
    skip_spaces();
    if (take('(')) {
      conditions_ ? either() : sum();
      if (!take(')')) fail("expected ')'");
      return;
    }
    if (at_ >= text_.size()) fail("ends where a number or a name was expected");
    is_name_start(text_[at_]) ? name() : number();
  }
  void number() {
    double value = 0;
    const auto [end, error] =
        std::from_chars(text_.data() + at_, text_.data() + text_.size(), value);
    if (error != std::errc() || !std::isfinite(value)) fail("expected a number, a name or '('");
    at_ = static_cast<size_t>(end - text_.data());
    tokens_.push_back({.op = Op::kNumber, .number = value});
  }
  void name() {
    const size_t first = at_;
    while (at_ < text_.size() && is_name_part(text_[at_])) ++at_;
    std::string name(text_.substr(first, at_ - first));
    if (take('(')) return call(name);
    tokens_.push_back({.op = Op::kName, .place = names_.size()});
    names_.push_back(std::move(name));
  }
  void call(const std::string& name) {
    constexpr std::pair<std::string_view, Op> kFunctions[] = {{"min", Op::kMin},
                                                              {"max", Op::kMax},
                                                              {"ceil", Op::kCeil},
                                                              {"floor", Op::kFloor},
                                                              {"log2", Op::kLog2}};
    const auto* function = std::find_if(std::begin(kFunctions), std::end(kFunctions),
                                        [&](const auto& known) { return known.first == name; });
    const bool is_known = function != std::end(kFunctions);
    const bool of_two = name == "min" || name == "max";
    size_t operands = 0;
    do {
      sum();
      if (++operands > 1 && of_two) emit(function->second);
    } while (take(','));
    if (!take(')')) fail("expected ')'");
    if (!is_known) fail("unknown function '" + name + "'");
    if (!of_two && operands != 1) fail(name + " takes one value");
    if (of_two && operands < 2) fail(name + " takes two values or more");
    if (!of_two) emit(function->second);
  }

  std::string_view text_;
  const std::string& where_;
  bool conditions_;
  size_t at_ = 0;
  int level_ = 0;
  std::vector<ExpressionToken> tokens_;
  std::vector<std::string> names_;
};

namespace {

double combined(Op op, double left, double right) {
  switch (op) {
    case Op::kAdd:
      return left + right;
    case Op::kSubtract:
      return left - right;
    case Op::kMultiply:
      return left * right;
    case Op::kDivide:
      return left / right;
    case Op::kModulo:
      return std::fmod(left, right);
    case Op::kMin:
      return std::min(left, right);
    case Op::kMax:
      return std::max(left, right);
    case Op::kLess:
      return left < right ? 1 : 0;
    case Op::kLessEqual:
      return left <= right ? 1 : 0;
    case Op::kGreater:
      return left > right ? 1 : 0;
    case Op::kGreaterEqual:
      return left >= right ? 1 : 0;
    case Op::kEqual:
      return left == right ? 1 : 0;
    case Op::kUnequal:
      return left != right ? 1 : 0;
    case Op::kAnd:
      return left != 0 && right != 0 ? 1 : 0;
    default:
      return left != 0 || right != 0 ? 1 : 0;
  }
}

/// The value of an expression. `value_of` gives the number of a place; `check` sees an operation
/// and its right or only operand before it is done.
template <typename ValueOf, typename Check>
double run(std::span<const ExpressionToken> tokens, const ValueOf& value_of, const Check& check) {
  // The parser allows 32 levels; of each at most five operators wait for their right side.
  std::array<double, 256> stack;
  size_t top = 0;
  for (const ExpressionToken& token : tokens) {
    if (token.op == Op::kNumber || token.op == Op::kName) {
      stack[top++] = token.op == Op::kNumber ? token.number : value_of(token.place);
      continue;
    }
    double& last = stack[top - 1];
    check(token.op, last);
    if (token.op == Op::kCeil || token.op == Op::kFloor || token.op == Op::kLog2) {
      last = token.op == Op::kCeil    ? std::ceil(last)
             : token.op == Op::kFloor ? std::floor(last)
                                      : std::log2(last);
      continue;
    }
    --top;
    stack[top - 1] = combined(token.op, stack[top - 1], last);
  }
  return stack[0];
}

[[noreturn]] void fail_unknown(const std::string& where, const std::string& text,
                               const std::string& name) {
  throw Error(ErrorKind::kInput, fmt::format("{}: '{}': unknown name '{}'", where, shown_name(text),
                                             shown_name(name)));
}

}  // namespace

Expression::Expression(double constant)
    : tokens_{{.op = Op::kNumber, .number = constant}}, text_(fmt::format("{}", constant)) {}

Expression Expression::parse(std::string_view text, const std::string& where) {
  if (text.size() > kMostCharacters)
    throw Error(ErrorKind::kInput, fmt::format("{}: an expression of {} characters; at most {}",
                                               where, text.size(), kMostCharacters));
  return ExpressionParser(text, where, false).parse();
}

Expression Expression::parse_condition(std::string_view text, const std::string& where) {
  if (text.size() > kMostCharacters)
    throw Error(ErrorKind::kInput, fmt::format("{}: a condition of {} characters; at most {}",
                                               where, text.size(), kMostCharacters));
  return ExpressionParser(text, where, true).parse();
}

BoundExpression Expression::bind(
    const std::function<std::optional<size_t>(std::string_view)>& place_of,
    const std::string& where) const {
  BoundExpression bound;
  bound.tokens_ = tokens_;
  for (ExpressionToken& token : bound.tokens_) {
    if (token.op != Op::kName) continue;
    const std::string& name = names_[token.place];
    const std::optional<size_t> place = place_of(name);
    if (!place) fail_unknown(where, text_, name);
    token.place = *place;
  }
  return bound;
}

double BoundExpression::evaluate(std::span<const double> values) const {
  return run(tokens_, [&](size_t place) { return values[place]; }, [](Op, double) {});
}

double Expression::evaluate(const Lookup& lookup, const std::string& where) const {
  const auto value_of = [&](size_t place) {
    const std::optional<double> found = lookup(names_[place]);
    if (!found) fail_unknown(where, text_, names_[place]);
    return *found;
  };
  const auto check = [&](Op op, double operand) {
    if (op == Op::kLog2 && !(operand > 0))
      throw Error(ErrorKind::kInput, fmt::format("{}: '{}': log2 of {}; expected a number above 0",
                                                 where, shown_name(text_), operand));
    if ((op == Op::kDivide || op == Op::kModulo) && operand == 0)
      throw Error(ErrorKind::kInput,
                  fmt::format("{}: '{}' divides by zero", where, shown_name(text_)));
  };
  const double result = run(tokens_, value_of, check);
  if (std::isfinite(result)) return result;
  throw Error(ErrorKind::kInput, fmt::format("{}: '{}' is not finite", where, shown_name(text_)));
}

std::vector<std::string> Expression::names() const { return {names_.rbegin(), names_.rend()}; }

}  // namespace tilecast
