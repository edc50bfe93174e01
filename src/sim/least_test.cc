#include "sim/least.h"

#include <gtest/gtest.h>

#include "base/rng.h"

namespace tilecast {
namespace {

/// Few different values, so that many are equal.
TEST(Least, IsThatOfAllValuesInTurn) {
  Rng rng(17);
  for (const size_t count : {size_t{1}, size_t{2}, size_t{3}, size_t{8}, size_t{13}, size_t{100}}) {
    std::vector<double> values(count, 3);
    Least<double> least(count, 3);
    for (int change = 0; change < 300; ++change) {
      const size_t at = rng.below(count);
      values[at] = rng.below(9) == 0 ? std::numeric_limits<double>::infinity()
                                     : static_cast<double>(rng.below(5));
      least.set(at, values[at]);
      const auto first = std::min_element(values.begin(), values.end());
      EXPECT_EQ(least.value(), *first);
      EXPECT_EQ(least.index(), static_cast<size_t>(first - values.begin()));
      const size_t from = rng.below(count), without = rng.below(count);
      size_t in_turn = from;
      double others = std::numeric_limits<double>::infinity();
      for (size_t i = 0; i < count; ++i) {
        if (values[(from + i) % count] < values[in_turn]) in_turn = (from + i) % count;
        if (i != without) others = std::min(others, values[i]);
      }
      EXPECT_EQ(least.index_from(from), in_turn);
      EXPECT_EQ(least.value_without(without), others);
    }
  }
}

}  // namespace
}  // namespace tilecast
