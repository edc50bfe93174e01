// Points of a sweep's spec, and the front of their results.

#include "many/sweep_spec.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "many/sweep_front.h"
#include "tilecast/error.h"

namespace tilecast {
namespace {

std::string spec_text(const std::string& rest) {
  return R"({"model": ["gpt2_large"], "gpu": ["H100"])" + (rest.empty() ? "" : ", " + rest) + "}";
}

/// The texts of a column at all points.
std::vector<std::string> texts_of(const SweepSpec& spec, const std::string& name) {
  std::vector<std::string> texts;
  for (const SweepColumn& column : spec.columns()) {
    if (column.name != name) continue;
    for (size_t i = 0; i < spec.size(); ++i)
      if (spec.accepts(i)) texts.push_back(spec.text_at(column, i));
  }
  return texts;
}

using Texts = std::vector<std::string>;

std::string error_of(const std::string& text) {
  try {
    const SweepSpec spec(text, "s.json");
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(SweepSpec, TheFirstListTurnsTheSlowest) {
  const SweepSpec spec(spec_text(R"("batch": [1, 2], "seq": [8, 16, 32])"), "s.json");
  EXPECT_EQ(spec.size(), 6U);
  EXPECT_EQ(texts_of(spec, "batch"), (Texts{"1", "1", "1", "2", "2", "2"}));
  EXPECT_EQ(texts_of(spec, "seq"), (Texts{"8", "16", "32", "8", "16", "32"}));
}

TEST(SweepSpec, RangesHaveBothEnds) {
  const SweepSpec whole(spec_text(R"("batch": {"from": 2, "to": 5})"), "s.json");
  EXPECT_EQ(texts_of(whole, "batch"), (Texts{"2", "3", "4", "5"}));
  const SweepSpec steps(spec_text(R"("batch": {"from": 1, "to": 10, "step": 4})"), "s.json");
  EXPECT_EQ(texts_of(steps, "batch"), (Texts{"1", "5", "9"}));
  const SweepSpec counted(spec_text(R"("batch": {"from": 1, "to": 10, "count": 4})"), "s.json");
  EXPECT_EQ(texts_of(counted, "batch"), (Texts{"1", "4", "7", "10"}));
  const SweepSpec tenths(
      spec_text(R"("gpu-memory-utilization": {"from": 0.1, "to": 0.5, "step": 0.1})"), "s.json");
  EXPECT_EQ(texts_of(tenths, "gpu-memory-utilization"), (Texts{"0.1", "0.2", "0.3", "0.4", "0.5"}));
}

TEST(SweepSpec, AScaleOfLogarithmsHasPowersOfTwoOrACount) {
  const SweepSpec powers(spec_text(R"("batch": {"from": 3, "to": 50, "scale": "log2"})"), "s.json");
  EXPECT_EQ(texts_of(powers, "batch"), (Texts{"3", "6", "12", "24", "48"}));
  const SweepSpec counted(
      spec_text(R"("batch": {"from": 1, "to": 4, "scale": "log2", "count": 4})"), "s.json");
  // 1, 1.6, 2.5, 4
  EXPECT_EQ(texts_of(counted, "batch"), (Texts{"1", "2", "3", "4"}));
}

TEST(SweepSpec, ColumnsOfAZipAdvanceTogether) {
  const SweepSpec spec(spec_text(R"("seq": [8, 16], "zip": [{"batch": [1, 2], "tp": [4, 8]}])"),
                       "s.json");
  EXPECT_EQ(texts_of(spec, "seq"), (Texts{"8", "8", "16", "16"}));
  EXPECT_EQ(texts_of(spec, "batch"), (Texts{"1", "2", "1", "2"}));
  EXPECT_EQ(texts_of(spec, "tp"), (Texts{"4", "8", "4", "8"}));
}

constexpr const char* kDraw =
    R"("draw": {"count": 64, "seed": 7, "method": "%", "columns": {"batch": {"from": 1, "to": 64},
        "parameters": {"memory_bytes_per_s": {"from": 1e12, "to": 5e12}}}})";

std::string draw_of(const std::string& method) {
  std::string text = kDraw;
  return spec_text(text.replace(text.find('%'), 1, method));
}

TEST(SweepSpec, APointDoesNotDependOnTheOnesBefore) {
  const SweepSpec one(draw_of("random"), "s.json"), other(draw_of("random"), "s.json");
  const SweepColumn& column = one.columns()[2];
  Texts forwards, backwards;
  for (size_t i = 0; i < 64; ++i) forwards.push_back(one.text_at(column, i));
  for (size_t i = 64; i-- > 0;)
    backwards.insert(backwards.begin(), other.text_at(other.columns()[2], i));
  EXPECT_EQ(forwards, backwards);
  // Not all are one number.
  const Texts batches = texts_of(one, "batch");
  EXPECT_GT(std::set<std::string>(batches.begin(), batches.end()).size(), 30U);
}

TEST(SweepSpec, ALatinHypercubeHasEachStratumOnce) {
  const SweepSpec spec(draw_of("latin_hypercube"), "s.json");
  const Texts batches = texts_of(spec, "batch");
  EXPECT_EQ(std::set<std::string>(batches.begin(), batches.end()).size(), 64U);
  std::set<int> strata;
  for (const std::string& text : texts_of(spec, "memory_bytes_per_s"))
    strata.insert(static_cast<int>(std::floor((std::stod(text) - 1e12) / 4e12 * 64)));
  EXPECT_EQ(strata.size(), 64U);
  // The columns are not in the same order.
  EXPECT_NE(batches.front(), "1");
}

TEST(SweepSpec, AnotherColumnDoesNotChangeADraw) {
  const std::string columns = R"("batch": {"from": 1, "to": 1000000})";
  const auto draw = [](const std::string& text) {
    return spec_text(R"("draw": {"count": 10, "seed": 1, "columns": {)" + text + "}}");
  };
  const SweepSpec alone(draw(columns), "s.json"),
      both(draw(columns + R"(, "seq": [8, 16])"), "s.json");
  EXPECT_EQ(texts_of(alone, "batch"), texts_of(both, "batch"));
}

TEST(SweepSpec, ConditionsRefusePoints) {
  const SweepSpec spec(
      spec_text(R"("tp": [1, 2, 4], "pp": [1, 2, 4], "where": ["tp * pp <= 4", "pp < 4"])"),
      "s.json");
  EXPECT_EQ(spec.size(), 9U);
  EXPECT_EQ(texts_of(spec, "pp"), (Texts{"1", "1", "1", "2", "2"}));
  EXPECT_EQ(texts_of(spec, "tp"), (Texts{"1", "2", "4", "1", "2"}));
}

TEST(SweepSpec, WholeNumbersAreDrawnFromLargeRanges) {
  const SweepSpec spec(
      spec_text(R"("draw": {"count": 100, "seed": 1, "method": "latin_hypercube", "columns": {
                  "parameters": {"memory_bytes": {"from": 40e9, "to": 200e9}}}})"),
      "s.json");
  std::set<int> strata;
  for (const std::string& text : texts_of(spec, "memory_bytes")) {
    EXPECT_EQ(text.find_first_not_of("0123456789"), std::string::npos) << text;
    strata.insert(static_cast<int>(std::floor((std::stod(text) - 40e9) / 160e9 * 100)));
  }
  EXPECT_EQ(strata.size(), 100U);
  EXPECT_NE(error_of(spec_text(R"("draw": {"count": 1, "seed": 1, "columns": {
      "power-cap-w": {"from": 1, "to": 2, "step": 1e-18}}})")),
            "");
}

TEST(SweepSpec, TheHashIsThatOfTheContent) {
  const auto hash_of = [](const std::string& rest) {
    return SweepSpec(spec_text(rest), "s.json").hash();
  };
  const uint64_t hash = hash_of(R"("batch": [1, 2], "where": "batch < 3")");
  EXPECT_EQ(hash_of("\"where\":\n\"batch < 3\", \"batch\": [1,2]"), hash);
  EXPECT_NE(hash_of(R"("batch": [1, 2], "where": "batch < 2")"), hash);
  EXPECT_NE(hash_of(R"("batch": [1, 2])"), hash);
}

TEST(SweepSpec, LargeSpecsAreRefusedBeforeTheyAreMade) {
  for (
      const char* text :
      {R"("batch": {"from": 1, "to": 1000000}, "seq": {"from": 1, "to": 1000000}, "tp": {"from": 1, "to": 1000000})",
       R"("batch": {"from": 1, "to": 2000000000})",
       R"("power-cap-w": {"from": 1, "to": 2, "step": 1e-18})",
       R"("draw": {"count": 1000000000000000000, "seed": 1, "columns": {"batch": [1]}})",
       R"("batch": {"from": 1, "to": 1000000000, "scale": "log2", "count": 900000000})"})
    EXPECT_NE(error_of(spec_text(text)), "") << text;
}

TEST(SweepSpec, ErrorsHaveLineAndColumn) {
  EXPECT_EQ(
      error_of("{\"model\": [\"gpt2_large\"],\n \"gpu\": [\"H100\"],\n  \"batch\": [4, \"x\"]}"),
      "s.json:3:16: 'batch': `batch`: expected a whole number from 1 to 2147483648, found 'x'");
  EXPECT_EQ(error_of("{\"model\": [\"gpt2_large\"],\n \"gpu\": 5}"),
            "s.json:2:9: 'gpu': expected a list of at least one value, found 5");
}

std::vector<FrontField> fields_of(size_t count) {
  std::vector<FrontField> fields;
  for (size_t i = 0; i < count; ++i)
    fields.push_back({.column = i + 1, .name = "f", .more_is_better = i == 1});
  return fields;
}

TEST(SweepFront, HasThePointsThatNoneBeats) {
  std::mt19937 random(5);
  for (size_t count = 1; count <= 4; ++count) {
    SweepFront front(fields_of(count), {});
    std::vector<std::vector<int>> points;
    for (int i = 0; i < 3000; ++i) {
      std::vector<int>& point = points.emplace_back();
      std::vector<std::string> cells = {std::to_string(i)};
      for (size_t f = 0; f < count; ++f) {
        const int value = static_cast<int>(random() % 100);
        cells.push_back(std::to_string(value));
        point.push_back(f == 1 ? -value : value);
      }
      front.take(cells);
    }
    std::vector<int64_t> expected;
    for (size_t i = 0; i < points.size(); ++i) {
      bool is_beaten = false;
      for (size_t j = 0; j < points.size() && !is_beaten; ++j) {
        bool as_good = true;
        for (size_t f = 0; f < count; ++f) as_good = as_good && points[j][f] <= points[i][f];
        is_beaten = as_good && (points[j] != points[i] || j < i);
      }
      if (!is_beaten) expected.push_back(static_cast<int64_t>(i));
    }
    std::vector<int64_t> found = front.points();
    std::sort(found.begin(), found.end());
    EXPECT_EQ(found, expected) << count;
    EXPECT_FALSE(found.empty());
  }
}

TEST(SweepFront, OfEqualPointsHasTheFirst) {
  SweepFront front(fields_of(1), {2});
  for (int i = 200'000; i-- > 0;) front.take({std::to_string(i), "7", i % 2 == 0 ? "a" : "b"});
  EXPECT_EQ(front.points(), (std::vector<int64_t>{0, 1}));
}

}  // namespace
}  // namespace tilecast
