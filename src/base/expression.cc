#include "base/expression.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cmath>
#include <utility>

#include "base/text.h"
#include "tilecast/error.h"

namespace tilecast {
namespace {

constexpr size_t kMostCharacters = 1000;
constexpr int kMostLevels = 32;

bool is_name_start(char c) { return std::isalpha(static_cast<unsigned char>(c)) != 0 || c == '_'; }
bool is_name_part(char c) {
  return is_name_start(c) || std::isdigit(static_cast<unsigned char>(c)) != 0;
}

}  // namespace

/// Recursive descent: either → both → comparison → sum → product → factor.
class ExpressionParser {
 public:
  ExpressionParser(std::string_view text, const std::string& where, bool conditions)
      : text_(text), where_(where), conditions_(conditions) {}

  Expression::Node parse() {
    Expression::Node node = conditions_ ? either() : sum();
    skip_spaces();
    if (at_ < text_.size()) fail(fmt::format("unexpected '{}'", text_[at_]));
    return node;
  }

 private:
  using Node = Expression::Node;
  using Kind = Expression::Kind;

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
  static Node binary(Kind kind, Node left, Node right) {
    Node node{.kind = kind};
    node.operands.push_back(std::move(left));
    node.operands.push_back(std::move(right));
    return node;
  }

  /// Takes the word where it is not the start of a longer name.
  bool take_word(std::string_view word) {
    skip_spaces();
    if (!text_.substr(at_).starts_with(word)) return false;
    if (at_ + word.size() < text_.size() && is_name_part(text_[at_ + word.size()])) return false;
    at_ += word.size();
    return true;
  }
  Node either() {
    if (++level_ > kMostLevels) fail("nested too deeply");
    Node left = both();
    while (take_word("or")) left = binary(Kind::kOr, std::move(left), both());
    --level_;
    return left;
  }
  Node both() {
    Node left = comparison();
    while (take_word("and")) left = binary(Kind::kAnd, std::move(left), comparison());
    return left;
  }
  Node comparison() {
    constexpr std::pair<std::string_view, Kind> kSigns[] = {
        {"<=", Kind::kLessEqual}, {">=", Kind::kGreaterEqual}, {"==", Kind::kEqual},
        {"!=", Kind::kUnequal},   {"<", Kind::kLess},          {">", Kind::kGreater}};
    Node left = sum();
    skip_spaces();
    for (const auto& [sign, kind] : kSigns) {
      if (!text_.substr(at_).starts_with(sign)) continue;
      at_ += sign.size();
      return binary(kind, std::move(left), sum());
    }
    return left;
  }

  Node sum() {
    if (++level_ > kMostLevels) fail("nested too deeply");
    Node left = product();
    while (true) {
      if (take('+')) {
        left = binary(Kind::kAdd, std::move(left), product());
      } else if (take('-')) {
        left = binary(Kind::kSubtract, std::move(left), product());
      } else {
        --level_;
        return left;
      }
    }
  }
  Node product() {
    Node left = factor();
    while (true) {
      if (take('*')) {
        left = binary(Kind::kMultiply, std::move(left), factor());
      } else if (take('/')) {
        left = binary(Kind::kDivide, std::move(left), factor());
      } else if (take('%')) {
        left = binary(Kind::kModulo, std::move(left), factor());
      } else {
        return left;
      }
    }
  }
  Node factor() {
    skip_spaces();
    if (take('(')) {
      Node node = conditions_ ? either() : sum();
      if (!take(')')) fail("expected ')'");
      return node;
    }
    if (at_ >= text_.size()) fail("ends where a number or a name was expected");
    return is_name_start(text_[at_]) ? name() : number();
  }
  Node number() {
    Node node;
    const auto [end, error] =
        std::from_chars(text_.data() + at_, text_.data() + text_.size(), node.number);
    if (error != std::errc() || !std::isfinite(node.number))
      fail("expected a number, a name or '('");
    at_ = static_cast<size_t>(end - text_.data());
    return node;
  }
  Node name() {
    const size_t first = at_;
    while (at_ < text_.size() && is_name_part(text_[at_])) ++at_;
    Node node{.kind = Kind::kName, .name = std::string(text_.substr(first, at_ - first))};
    if (!take('(')) return node;
    node.kind = Kind::kCall;
    do node.operands.push_back(sum());
    while (take(','));
    if (!take(')')) fail("expected ')'");
    check_call(node);
    return node;
  }
  void check_call(const Node& node) const {
    const bool of_two = node.name == "min" || node.name == "max";
    const bool of_one = node.name == "ceil" || node.name == "floor" || node.name == "log2";
    if (!of_one && !of_two) fail("unknown function '" + node.name + "'");
    if (of_one && node.operands.size() != 1) fail(node.name + " takes one value");
    if (of_two && node.operands.size() < 2) fail(node.name + " takes two values or more");
  }

  std::string_view text_;
  const std::string& where_;
  bool conditions_;
  size_t at_ = 0;
  int level_ = 0;
};

Expression::Expression(double constant) : text_(fmt::format("{}", constant)) {
  root_.number = constant;
}

Expression Expression::parse(std::string_view text, const std::string& where) {
  if (text.size() > kMostCharacters)
    throw Error(ErrorKind::kInput, fmt::format("{}: an expression of {} characters; at most {}",
                                               where, text.size(), kMostCharacters));
  Expression expression;
  expression.root_ = ExpressionParser(text, where, false).parse();
  expression.text_ = text;
  return expression;
}

Expression Expression::parse_condition(std::string_view text, const std::string& where) {
  if (text.size() > kMostCharacters)
    throw Error(ErrorKind::kInput, fmt::format("{}: a condition of {} characters; at most {}",
                                               where, text.size(), kMostCharacters));
  Expression expression;
  expression.root_ = ExpressionParser(text, where, true).parse();
  expression.text_ = text;
  return expression;
}

double Expression::combine(Kind kind, double left, double right) {
  switch (kind) {
    case Kind::kAdd:
      return left + right;
    case Kind::kSubtract:
      return left - right;
    case Kind::kMultiply:
      return left * right;
    case Kind::kDivide:
      return left / right;
    case Kind::kModulo:
      return std::fmod(left, right);
    case Kind::kLess:
      return left < right ? 1 : 0;
    case Kind::kLessEqual:
      return left <= right ? 1 : 0;
    case Kind::kGreater:
      return left > right ? 1 : 0;
    case Kind::kGreaterEqual:
      return left >= right ? 1 : 0;
    case Kind::kEqual:
      return left == right ? 1 : 0;
    case Kind::kUnequal:
      return left != right ? 1 : 0;
    case Kind::kAnd:
      return left != 0 && right != 0 ? 1 : 0;
    default:
      return left != 0 || right != 0 ? 1 : 0;
  }
}

double Expression::call(const Node& node, const Lookup& lookup, const std::string& where) const {
  double result = value(node.operands.front(), lookup, where);
  if (node.name == "ceil") return std::ceil(result);
  if (node.name == "floor") return std::floor(result);
  if (node.name == "log2") {
    if (result > 0) return std::log2(result);
    throw Error(ErrorKind::kInput, fmt::format("{}: '{}': log2 of {}; expected a number above 0",
                                               where, shown_name(text_), result));
  }
  for (size_t i = 1; i < node.operands.size(); ++i) {
    const double other = value(node.operands[i], lookup, where);
    result = node.name == "min" ? std::min(result, other) : std::max(result, other);
  }
  return result;
}

double Expression::value(const Node& node, const Lookup& lookup, const std::string& where) const {
  if (node.kind == Kind::kNumber) return node.number;
  if (node.kind == Kind::kCall) return call(node, lookup, where);
  if (node.kind == Kind::kName) {
    if (const std::optional<double> found = lookup(node.name)) return *found;
    throw Error(ErrorKind::kInput, fmt::format("{}: '{}': unknown name '{}'", where,
                                               shown_name(text_), shown_name(node.name)));
  }
  const double left = value(node.operands[0], lookup, where);
  const double right = value(node.operands[1], lookup, where);
  if ((node.kind == Kind::kDivide || node.kind == Kind::kModulo) && right == 0)
    throw Error(ErrorKind::kInput,
                fmt::format("{}: '{}' divides by zero", where, shown_name(text_)));
  return combine(node.kind, left, right);
}

double Expression::evaluate(const Lookup& lookup, const std::string& where) const {
  const double result = value(root_, lookup, where);
  if (std::isfinite(result)) return result;
  throw Error(ErrorKind::kInput, fmt::format("{}: '{}' is not finite", where, shown_name(text_)));
}

std::vector<std::string> Expression::names() const {
  std::vector<std::string> found;
  std::vector<const Node*> open = {&root_};
  while (!open.empty()) {
    const Node* node = open.back();
    open.pop_back();
    if (node->kind == Kind::kName) found.push_back(node->name);
    for (const Node& operand : node->operands) open.push_back(&operand);
  }
  return found;
}

}  // namespace tilecast
