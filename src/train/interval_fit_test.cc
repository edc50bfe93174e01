#include "train/interval_fit.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "devices/registry.h"

namespace tilecast {
namespace {

const Combination kBf16 = {.software = software_of("vllm"), .dtype = DType::kBf16};
const Combination kFp8 = {
    .software = software_of("vllm"), .dtype = DType::kFp8, .kv_dtype = DType::kFp8};

/// Rows of a device whose errors are even between -width and width around a mean.
Spread rows_of(size_t device, double mean, double width, const Combination& combination = kBf16) {
  constexpr int kRows = 400;
  Spread rows;
  for (int i = 0; i < kRows; ++i)
    rows.push_back({.value = mean + width * (2.0 * i / (kRows - 1) - 1),
                    .weight = 1,
                    .device = device,
                    .size = 5,
                    .combination = combination});
  return rows;
}

Spread joined(std::initializer_list<Spread> parts) {
  Spread all;
  for (const Spread& part : parts) all.insert(all.end(), part.begin(), part.end());
  return all;
}

double mean_inside(const UnseenFit& fit) {
  double sum = 0;
  for (const UnseenCell& cell : fit.cells) sum += cell.inside;
  return sum / static_cast<double>(fit.cells.size());
}

class FamiliesTest : public testing::Test {
 protected:
  const std::vector<Device> devices_ = {find_device("V100"), find_device("A100"),
                                        find_device("H100"), find_device("H200")};
};

TEST_F(FamiliesTest, AlikeOnesNeedLittleMoreThanTheirOwnInterval) {
  const Spread rows = joined({rows_of(0, 0, 0.2), rows_of(1, 0, 0.2), rows_of(2, 0, 0.2)});
  const UnseenFit fit = fit_families(rows, rows, devices_);
  // 80 % of even errors are within 0.8 of their width.
  EXPECT_NEAR(fit.factor, kUnseenCoverage / 0.80, 0.02);
  EXPECT_EQ(fit.cells.size(), 3u);
  EXPECT_NEAR(mean_inside(fit), kUnseenCoverage, 0.01);
}

TEST_F(FamiliesTest, OnesWithErrorsOfTheirOwnNeedWiderIntervals) {
  // No other architecture says what the next one's mean is.
  const Spread rows = joined({rows_of(0, 0.1, 0.1), rows_of(1, -0.1, 0.1), rows_of(2, 0, 0.1)});
  const UnseenFit fit = fit_families(rows, rows, devices_);
  EXPECT_GT(fit.factor, 1.2);
  EXPECT_NEAR(mean_inside(fit), kUnseenCoverage, 0.02);
}

TEST_F(FamiliesTest, TheOthersKnowNothingOfTheArchitectureThatIsLeftOut) {
  // With H200's rows, H100's interval would be narrow.
  const Spread rows =
      joined({rows_of(0, 0, 0.05), rows_of(1, 0, 0.05), rows_of(2, 0, 0.5), rows_of(3, 0, 0.5)});
  const UnseenFit fit = fit_families(rows, rows, devices_);
  EXPECT_GT(fit.factor, 3) << "the interval of V100 and A100 is a tenth as wide";
}

TEST_F(FamiliesTest, AnArchitectureIsJudgedByWhatTheOthersSay) {
  // Two that are alike say that a third needs no more; the third scatters four times as far.
  const Spread rows = joined({rows_of(0, 0, 0.1), rows_of(1, 0, 0.1), rows_of(2, 0, 0.4)});
  const UnseenFit fit = fit_families(rows, rows, devices_);
  for (const UnseenCell& cell : fit.cells) {
    if (cell.device == 2) {
      EXPECT_NEAR(cell.nested_inside, kUnseenCoverage / 4, 0.02);
      EXPECT_GT(cell.inside, 2 * cell.nested_inside) << "its own rows widened it";
      // Each side is as much of what the others scatter as they hold.
      EXPECT_NEAR(cell.width, 2 * 0.1 * kUnseenCoverage, 0.01);
    }
    EXPECT_GE(cell.score, cell.width);
  }
}

TEST_F(FamiliesTest, APrecisionThatNoOtherHasIsDoubledAlready) {
  const Spread others = joined({rows_of(0, 0, 0.2), rows_of(1, 0, 0.2)});
  const double known =
      fit_families(rows_of(2, 0, 0.4), joined({others, rows_of(2, 0, 0.4)}), devices_).factor;
  const Spread fp8 = rows_of(2, 0, 0.4, kFp8);
  EXPECT_NEAR(known / fit_families(fp8, joined({others, fp8}), devices_).factor, 2, 0.01);
}

TEST_F(FamiliesTest, SiblingsAreJudgedByTheirClassAndNeverNarrowed) {
  const Spread wide = joined({rows_of(0, 0, 5), rows_of(2, 0, 0.1), rows_of(3, 0, 0.2)});
  const UnseenFit fit = fit_siblings(wide, devices_);
  EXPECT_EQ(fit.cells.size(), 2u) << "V100 is alone in its class";
  EXPECT_GT(fit.factor, 1.1);
  const Spread alike = joined({rows_of(2, 0, 0.0), rows_of(3, 0, 0.0)});
  EXPECT_EQ(fit_siblings(alike, devices_).factor, 1);
  EXPECT_EQ(fit_siblings({}, devices_).factor, 1) << "nothing was left out";
}

TEST_F(FamiliesTest, SiblingsThatSayNothingOfEachOtherAreSeen) {
  const Spread apart = joined({rows_of(2, 0, 0.01), rows_of(3, 1, 0.01)});
  EXPECT_FALSE(fit_siblings(apart, devices_).enough);
  const Spread classes = joined({rows_of(0, 1, 0.1), rows_of(1, -1, 0.1)});
  const UnseenFit fit = siblings_by_classes(apart, classes, 1.1, devices_);
  EXPECT_EQ(fit.factor, 1.1);
  EXPECT_EQ(mean_inside(fit), 1);
}

TEST_F(FamiliesTest, APrecisionThatIsFarOffWidensTheIntervalOfAll) {
  // One of 46 cells is off: 84 % on average are held without it.
  Spread rows;
  const auto add = [&](const Spread& more) { rows.insert(rows.end(), more.begin(), more.end()); };
  for (const size_t device : {0u, 1u, 2u, 3u}) {
    for (const Software software : {software_of("pytorch"), software_of("vllm"),
                                    software_of("sglang"), software_of("trtllm")}) {
      for (const QuantScheme scheme :
           {QuantScheme::kNone, QuantScheme::kFp8, QuantScheme::kFp8Block}) {
        const bool is_off = device == 1 && scheme == QuantScheme::kFp8Block;
        if (is_off && software != software_of("vllm")) continue;
        add(rows_of(device, is_off ? 0.176 : 0, is_off ? 0.001 : 0.2,
                    {.software = software, .dtype = DType::kBf16, .scheme = scheme}));
      }
    }
  }
  const UnseenFit fit = fit_families(rows, rows, devices_);
  double least = 1;
  for (const UnseenCell& cell : fit.cells) least = std::min(least, cell.inside);
  EXPECT_GE(least, kLeastUnseenCoverage - 0.01);
  // The limit is on precisions; all software of one counts together.
  EXPECT_LT(mean_inside(fit), kMostUnseenCoverage + 0.03);
}

TEST_F(FamiliesTest, APrecisionThatScattersMoreOnOthersIsWider) {
  Spread rows;
  const auto add = [&](const Spread& more) { rows.insert(rows.end(), more.begin(), more.end()); };
  for (const size_t device : {0u, 1u, 2u}) {
    add(rows_of(device, 0, 0.1));
    add(rows_of(device, 0, 0.4, kFp8));
  }
  const UnseenFit fit = fit_families(rows, rows, devices_);
  ASSERT_EQ(fit.widths.size(), 2u);
  const double narrow = width_of(&fit.widths, kBf16), wide = width_of(&fit.widths, kFp8);
  EXPECT_LT(narrow, 1);
  EXPECT_GT(wide, 1.1);
  // Three architectures say it: three quarters of the ratio's logarithm count.
  EXPECT_NEAR(std::log(wide / narrow), 0.75 * std::log(4), 0.05);
  EXPECT_EQ(fit.vendor_widths.at("nvidia"), fit.widths);
  Combination int8 = kBf16;
  int8.scheme = QuantScheme::kInt8;
  EXPECT_EQ(width_of(&fit.widths, int8), 1) << "nobody measured it";
}

TEST_F(FamiliesTest, WidthsThatHoldTheLeftOutNoBetterAreNone) {
  // FP8 scatters more on one architecture and less on another: that says nothing of the third.
  Spread rows = joined({rows_of(0, 0, 0.1, kFp8), rows_of(1, 0, 0.4, kFp8)});
  for (const size_t device : {0u, 1u, 2u}) {
    const Spread more = rows_of(device, 0, 0.2);
    rows.insert(rows.end(), more.begin(), more.end());
  }
  const UnseenFit fit = fit_families(rows, rows, devices_);
  EXPECT_TRUE(fit.widths.empty());
  EXPECT_TRUE(fit.vendor_widths.empty());
  EXPECT_EQ(fit.cells.size(), 5u);
}

TEST(WidthsOfRows, HoldFourFifthsOfEachPrecision) {
  const Spread rows = joined({rows_of(0, 0, 0.1), rows_of(0, 0, 0.4, kFp8)});
  const IntervalLaw interval = interval_of(rows, 1);
  const PrecisionWidths widths = widths_of_rows(rows, interval);
  ASSERT_EQ(widths.size(), 2u);
  const double high = interval.at(5).high;
  EXPECT_NEAR(width_of(&widths, kBf16) * high, 0.08, 0.005);
  EXPECT_NEAR(width_of(&widths, kFp8) * high, 0.32, 0.02);
  EXPECT_TRUE(widths_of_rows({}, interval).empty());
}

TEST(BothWays, NoSideIsLessThanHalfOfTheOther) {
  const IntervalLaw interval{.low_log = {-0.01, -0.3, -0.2}, .high_log = {0.4, 0.1, 0.2}};
  const IntervalLaw wide = both_ways(interval);
  EXPECT_EQ(wide.low_log, (std::array<double, 3>{-0.2, -0.3, -0.2}));
  EXPECT_EQ(wide.high_log, (std::array<double, 3>{0.4, 0.15, 0.2}));
}

TEST(ScaledInterval, HoldsMore) {
  const IntervalLaw interval{.low_log = {-0.2, -0.1, -0.1}, .high_log = {0.3, 0.2, 0.1}};
  EXPECT_EQ(scaled(interval, 2).low_log[0], -0.4);
  EXPECT_EQ(scaled(interval, 2).high_log[2], 0.2);
  EXPECT_EQ(scaled(interval, 2).common_share, interval.common_share);
}

}  // namespace
}  // namespace tilecast
