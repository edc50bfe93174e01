#include "measurements/colocation.h"

#include <gtest/gtest.h>

#include "tilecast/error.h"

namespace tilecast {
namespace {

constexpr const char* kPairHeader =
    "series,gpu,model,batch,alone_steps_s,partner_model,partner_batch,partner_alone_steps_s,"
    "packed_steps_s,partner_packed_steps_s\n";

std::vector<PairMeasurement> pairs_of(const std::string& rows) {
  return read_pairs(parse_csv(kPairHeader + rows, "p.csv"));
}

std::string message_of(const auto& read) {
  try {
    read();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(Colocation, RowsAreJobsAloneAndPairs) {
  const std::vector<PairMeasurement> pairs = pairs_of(
      "a,k80,A3C,,3.8,,,,,\n"
      "a,k80,A3C,,3.8,LM,10,29.6,2.8,7.6\n"
      "a,k80,LM,10,29.6,LM,80,7,0,0\n");
  ASSERT_EQ(pairs.size(), 3u);
  EXPECT_TRUE(pairs[0].is_alone());
  EXPECT_EQ(pairs[0].job, "A3C");
  EXPECT_EQ(pairs[1].partner, "LM 10");
  EXPECT_TRUE(pairs[1].ran());
  EXPECT_DOUBLE_EQ(pairs[1].partner_steps_per_s, 7.6);
  EXPECT_FALSE(pairs[2].ran());
  EXPECT_EQ(pairs[2].line, 4u);
}

TEST(Colocation, BrokenRowsAreNamed) {
  EXPECT_EQ(message_of([] { pairs_of("a,k80,A3C,,0,,,,,\n"); }),
            "p.csv: line 2: alone_steps_s: expected a number above 0, found 0");
  EXPECT_EQ(message_of([] { pairs_of("a,k80,A3C,,1,LM,10,2,0,1\n"); }),
            "p.csv: line 2: one of the two speeds is 0: expected both above 0, or both 0 for a "
            "pair that did not run");
  EXPECT_EQ(message_of([] { pairs_of("a,k80,A3C,,1,LM,10,2,-1,1\n"); }),
            "p.csv: line 2: packed_steps_s: expected a number of at least 0, found '-1'");
}

TEST(Colocation, NamedPairsHaveRelativeSpeedsOrSteps) {
  const auto relative = read_named_pairs(
      parse_csv("job,partner,relative_speed,partner_relative_speed\na,b,0.5,0.7\n", "n.csv"));
  ASSERT_EQ(relative.size(), 1u);
  EXPECT_TRUE(relative[0].relative);
  const auto steps = read_named_pairs(
      parse_csv("job,partner,steps_per_s,partner_steps_per_s\na,b,3,4\n", "n.csv"));
  EXPECT_FALSE(steps[0].relative);
  EXPECT_DOUBLE_EQ(steps[0].partner_speed, 4);
  EXPECT_EQ(message_of([] { read_named_pairs(parse_csv("job,other\na,b\n", "n.csv")); }),
            "n.csv: expected the columns job, partner, relative_speed, partner_relative_speed (or "
            "steps_per_s, partner_steps_per_s), found job, other");
}

TEST(Colocation, SlicesHaveTheMedianOfSteps) {
  const CsvTable table =
      parse_csv("gpu,slice,model,batch,median_s\na100,1g.5gb,bert,2,0.25\n", "s.csv");
  ASSERT_TRUE(is_slice_table(table));
  const auto slices = read_slices(table);
  ASSERT_EQ(slices.size(), 1u);
  EXPECT_EQ(slices[0].job, "bert 2");
  EXPECT_DOUBLE_EQ(slices[0].step_s, 0.25);
}

}  // namespace
}  // namespace tilecast
