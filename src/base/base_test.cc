#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "base/checked.h"
#include "base/csv.h"
#include "base/embedded.h"
#include "base/file.h"
#include "base/json.h"
#include "base/rng.h"
#include "base/text.h"
#include "test_support.h"
#include "tilecast/error.h"

namespace tilecast {
namespace {

TEST(Text, NamesAreComparedWithoutCaseAndPunctuation) {
  EXPECT_EQ(normalized_name("NVIDIA A100-PCIE-40GB"), normalized_name("nvidia_a100 pcie 40gb"));
}

TEST(Text, NearestNamesFindTypingMistakesAndParts) {
  const std::vector<std::string> names = {"nvidia-h100-sxm5-80gb", "amd-mi100", "H100"};
  EXPECT_EQ(nearest_names("H10O", names).front(), "H100");
  EXPECT_EQ(nearest_names("mi100", names).front(), "amd-mi100");
  EXPECT_TRUE(nearest_names("qwertyuiop", names).empty());
}

TEST(Text, QuantitiesHaveThreeDigits) {
  EXPECT_EQ(format_seconds(0.0123456), "12.3 ms");
  EXPECT_EQ(format_seconds(4.5e-6), "4.50 us");
  EXPECT_EQ(format_bytes(1536), "1.50 KiB");
  EXPECT_EQ(format_si(1.5e12, "FLOP/s"), "1.50 TFLOP/s");
}

TEST(Checked, ProductsBeyond64BitsAreRefused) {
  EXPECT_EQ(checked_product({1 << 20, 1 << 20}), int64_t{1} << 40);
  EXPECT_ERROR(checked_multiply(int64_t{1} << 40, int64_t{1} << 40), kInput,
               "does not fit in 64 bits");
  EXPECT_ERROR(checked_add(INT64_MAX, 1), kInput, "does not fit in 64 bits");
}

TEST(JsonReader, SyntaxErrorsHaveLineAndColumn) {
  EXPECT_ERROR(parse_json("{\n \"a\": 1,\n \"b\": }", "x.json"), kInput, "x.json:3:7: not JSON");
}

TEST(JsonReader, DeepNestingIsRefusedBeforeItMeetsTheStack) {
  EXPECT_ERROR(parse_json(std::string(100000, '['), "x.json"), kInput, "nested deeper than 64");
}

TEST(JsonReader, FieldsSayWhatWasExpectedAndFound) {
  const Json json = parse_json(R"({"heads": -3, "name": 7})", "x.json");
  const JsonObject object(json, "x.json");
  EXPECT_ERROR(object.integer({"heads"}, 1, 100), kInput,
               "x.json: 'heads': expected an integer from 1 to 100, found -3");
  EXPECT_ERROR(object.string("name"), kInput, "expected a text, found 7");
  EXPECT_ERROR(object.integer({"head"}, 1, 100), kInput,
               "'head': is missing; did you mean 'heads'");
}

TEST(Csv, QuotedCellsKeepTheirCommas) {
  const CsvTable table = parse_csv("# note\na,b\n\"x, y\",2\n", "t.csv");
  EXPECT_EQ(table.comments, std::vector<std::string>{"note"});
  EXPECT_EQ(table.rows[0][0], "x, y");
  EXPECT_EQ(table.integer(0, 1), 2);
}

TEST(Csv, BrokenRowsAndCellsAreNamed) {
  EXPECT_ERROR(parse_csv("a,b\n1\n", "t.csv"), kInput, "t.csv: row 1: expected 2 columns, found 1");
  const CsvTable table = parse_csv("a\nx\n", "t.csv");
  EXPECT_ERROR(table.number(0, 0), kInput, "expected a number, found 'x'");
}

TEST(File, IsWrittenWholeOrNotAtAll) {
  const TemporaryFolder folder;
  const auto path = folder.path() / "out.txt";
  write_file(path, "first");
  EXPECT_EQ(read_file(path), "first");
  EXPECT_ERROR(write_file(folder.path() / "missing" / "out.txt", "x"), kIo, "cannot write");
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder.path()), {}), 1);
}

TEST(File, AFullDeviceIsReported) {
  if (!std::filesystem::exists("/dev/full")) GTEST_SKIP() << "no /dev/full here";
  EXPECT_ERROR(write_file("/dev/full", "x"), kIo, "No space left on device");
}

TEST(RngTest, TheSameSeedGivesTheSameNumbers) {
  // First output of SplitMix64 with seed 1234567 (reference implementation, Vigna 2015).
  EXPECT_EQ(Rng(1234567).next(), 6457827717110365317ull);
}

TEST(Embedded, DataFoldersAreInTheProgram) {
  EXPECT_GE(embedded_files("devices/").size(), 30u);
  EXPECT_GE(embedded_files("models/").size(), 18u);
}

}  // namespace
}  // namespace tilecast
