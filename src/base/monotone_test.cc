#include "base/monotone.h"

#include <gtest/gtest.h>

namespace tilecast {
namespace {

TEST(Narrow, EndsWhereThePropertyEnds) {
  for (int64_t end = 3; end < 40; ++end) {
    const auto holds = [&](int64_t n) { return n <= end; };
    const Bracket found = narrow({3, 40}, holds);
    EXPECT_EQ(found.holds, end);
    EXPECT_EQ(found.fails, end + 1);
    // Whatever the guess is, also outside of the bracket.
    for (const int64_t guess : {-5, 3, 7, 39, 100})
      EXPECT_EQ(narrow({3, 40}, holds, [&](const Bracket&) { return guess; }).holds, end);
  }
}

TEST(Narrow, AsksForNoIntegerThatIsKnown) {
  const auto never = [](int64_t n) -> bool { throw n; };
  EXPECT_EQ(narrow({7, 8}, never).holds, 7);
}

TEST(Narrow, EndsEarlyWhereThatIsCloseEnough) {
  int calls = 0;
  const auto holds = [&](int64_t n) { return ++calls, n < 1000; };
  const Bracket found = narrow(
      {1, 4096}, holds, [](const Bracket& b) { return b.middle(); },
      [](const Bracket& b) { return b.fails - b.holds <= b.holds / 10; });
  EXPECT_LT(found.holds, 1000);
  EXPECT_GE(found.fails, 1000);
  EXPECT_LE(found.fails - found.holds, found.holds / 10);
  EXPECT_LE(calls, 8);
}

}  // namespace
}  // namespace tilecast
