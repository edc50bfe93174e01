#include <gtest/gtest.h>

#include <cmath>

#include "laws/constants.h"
#include "profile/operators.h"

namespace tilecast {
namespace {

TEST(ChangeErrors, GrowWithTheChange) {
  const TraceConstants& constants = bundled_laws().trace;
  EXPECT_EQ(error_share_of_change(1, false, constants), 0);
  const double twice = error_share_of_change(2, false, constants);
  EXPECT_GT(twice, 0);
  EXPECT_NEAR(error_share_of_change(0.5, false, constants), twice, 1e-12);
  EXPECT_GT(error_share_of_change(8, false, constants), twice);
  EXPECT_LT(error_share_of_change(1024, false, constants), 1);
  EXPECT_EQ(error_share_of_change(1, true, constants), 1);
}

TEST(ChangeErrors, BothForecastsCountFarAway) {
  const Interval here{1, 1 / 1.1, 1.2}, there{2, 2 / 1.3, 2 * 1.4};
  Interval carried{4, 3, 5};
  widen_by_change(here, there, 1, true, carried);
  // Too slow there and too fast here, and the other way round.
  EXPECT_NEAR(std::log(carried.high / 4), std::hypot(std::log(1.4), std::log(1.1)), 1e-12);
  EXPECT_NEAR(std::log(4 / carried.low), std::hypot(std::log(1.3), std::log(1.2)), 1e-12);
}

TEST(ChangeErrors, OnAnotherGpuItsForecastCountsWhole) {
  const Interval here{1, 1 / 1.1, 1.1}, there{2, 2 / 1.3, 2 * 1.3};
  Interval carried{4, 3, 5};
  widen_by_change(here, there, 0.5, false, carried);
  EXPECT_NEAR(std::log(carried.high / 4), std::hypot(std::log(1.3), 0.5 * std::log(1.1)), 1e-12);
}

TEST(ChangeErrors, UnknownTimesStay) {
  Interval carried{4, 3, 5};
  widen_by_change({}, {2, 1, 3}, 1, true, carried);
  widen_by_change({2, 1, 3}, {2, 1, 3}, 0, true, carried);
  EXPECT_EQ(carried, (Interval{4, 3, 5}));
}

}  // namespace
}  // namespace tilecast
