// Points of a sweep's spec.

#include "many/sweep_spec.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>
#include <string>

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
  const std::string last = one.text_at(column, 63);  // first
  for (size_t i = 0; i < 64; ++i)
    EXPECT_EQ(one.text_at(column, i), other.text_at(other.columns()[2], i));
  EXPECT_EQ(one.text_at(column, 63), last);
  EXPECT_GT(
      std::set<std::string>(texts_of(one, "batch").begin(), texts_of(one, "batch").end()).size(),
      0U);
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
      "s.json:3:16: 'batch': `batch`: expected a whole number, found 'x'");
  EXPECT_EQ(error_of("{\"model\": [\"gpt2_large\"],\n \"gpu\": 5}"),
            "s.json:2:9: 'gpu': expected a list of at least one value, found 5");
}

}  // namespace
}  // namespace tilecast
