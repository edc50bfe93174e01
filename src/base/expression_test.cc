#include "base/expression.h"

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "test_support.h"

namespace tilecast {
namespace {

TEST(Expression, HasTheSameValueBoundAsByName) {
  const std::vector<double> values = {3, 7.5};
  const auto by_name = [&](std::string_view name) {
    return name == "a" ? std::optional<double>(values[0]) : std::optional<double>(values[1]);
  };
  const auto place = [](std::string_view name) {
    return std::optional<size_t>(name == "a" ? 0 : 1);
  };
  for (const char* text :
       {"a - 1 - c / 2 * (3 - c)", "min(a, c, 2) + max(1, a) % 2", "ceil(c / a)",
        "log2(8) + floor(a - c)", "a < c and (c > 8 or a == 3)", "a != 3", "4"}) {
    const Expression expression = Expression::parse_condition(text, "x");
    EXPECT_EQ(expression.evaluate(by_name, "x"), expression.bind(place, "x").evaluate(values))
        << text;
  }
  EXPECT_EQ(Expression::parse("c * a - b", "x").names(), (std::vector<std::string>{"b", "a", "c"}));
}

TEST(Expression, ErrorsNameThePlace) {
  const auto none = [](std::string_view) { return std::optional<double>(); };
  EXPECT_EQ(message_of([&] { Expression::parse("1 / (2 - 2)", "x").evaluate(none, "x"); }),
            "x: '1 / (2 - 2)' divides by zero");
  EXPECT_NE(message_of([&] { Expression::parse("2 +", "x"); }).find("ends where a number"),
            std::string::npos);
  EXPECT_NE(message_of([&] { Expression::parse("f(2)", "x"); }).find("unknown function 'f'"),
            std::string::npos);
  EXPECT_EQ(Expression::parse("2 + 3 * max(4, 1) - 9 % 5", "x").evaluate(none, "x"), 10);
}

}  // namespace
}  // namespace tilecast
