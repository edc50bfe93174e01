#include "scenario/fit.h"

#include <gtest/gtest.h>

#include <cmath>

namespace tilecast {
namespace {

/// The last batch within the limit, one by one.
int64_t by_counting(int64_t limit, const std::function<int64_t(int64_t)>& bytes_of) {
  int64_t batch = 0;
  while (bytes_of(batch + 1) <= limit) ++batch;
  return batch;
}

TEST(LargestWithin, IsTheLastOfAnyGrowth) {
  const std::function<int64_t(int64_t)> growths[] = {
      [](int64_t b) { return 100 + 7 * b; },
      [](int64_t b) { return 100 + (b < 40 ? 3 : 11) * b; },
      [](int64_t b) { return b < 25 ? 200 : 200 + (b - 25) * 9; },
      [](int64_t b) { return b * b; },
      [](int64_t b) { return static_cast<int64_t>(50 * std::sqrt(static_cast<double>(b))); },
      [](int64_t b) { return b < 500 ? b : 1'000'000; }};
  for (const auto& bytes_of : growths) {
    for (int64_t limit : {0, 50, 106, 107, 114, 120, 240, 600, 1000}) {
      const int64_t expected = by_counting(limit, bytes_of);
      EXPECT_EQ(largest_within(limit, bytes_of), expected) << limit;
      for (int64_t more : {1, 2, 10, 5000}) {
        const BatchBytes too_many{expected + more, bytes_of(expected + more)};
        EXPECT_EQ(largest_within(limit, bytes_of, too_many), expected) << limit;
      }
    }
  }
}

TEST(LargestWithin, FollowsALineInAFewCalls) {
  int calls = 0;
  const auto line = [&](int64_t b) {
    ++calls;
    return 1'000'000 + 1234 * b;
  };
  EXPECT_EQ(largest_within(100'000'000, line), 80226);
  EXPECT_LE(calls, 5);
}

TEST(LargestWithin, EndsWhereNothingGrows) {
  EXPECT_EQ(largest_within(10, [](int64_t) { return int64_t{1}; }), (int64_t{1} << 31) - 1);
}

}  // namespace
}  // namespace tilecast
