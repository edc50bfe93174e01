#include <gtest/gtest.h>

#include <limits>

#include "base/base64.h"
#include "base/checked.h"
#include "base/csv.h"
#include "base/embedded.h"
#include "base/json.h"
#include "base/number.h"
#include "base/quantile.h"
#include "base/rng.h"
#include "base/text.h"
#include "test_support.h"
#include "tilecast/error.h"

namespace tilecast {
namespace {

TEST(Quantile, LiesBetweenTheTwoNearestValues) {
  EXPECT_EQ(quantile({}, 0.5), 0);
  EXPECT_EQ(quantile({3}, 0.9), 3);
  EXPECT_EQ(quantile({4, 1}, 0.5), 2.5);
  EXPECT_EQ(quantile({5, 1, 3}, 0.5), 3);
  EXPECT_DOUBLE_EQ(quantile({10, 0, 2, 4, 6, 8}, 0.9), 9);
}

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
  EXPECT_EQ(format_si(512, ""), "512");
  EXPECT_EQ(format_integer(-1234567), "-1,234,567");
  EXPECT_EQ(format_integer(999), "999");
  EXPECT_EQ(format_count(17042.3), "17,042");
  EXPECT_EQ(format_count(68.94), "68.9");
  EXPECT_EQ(format_seconds(12345.6), "12,346 s");
}

TEST(Text, RoundsIntoTheNextUnitWhereAThousandWouldShow) {
  EXPECT_EQ(format_si(999.886e6, ""), "1.00 G");
  EXPECT_EQ(format_seconds(0.00099996), "1.00 ms");
  EXPECT_EQ(format_seconds(0.0099996), "10.0 ms");
  EXPECT_EQ(format_bytes((int64_t{1} << 20) - 1), "1.00 MiB");
  EXPECT_EQ(format_count(999.7), "1,000");
  EXPECT_EQ(format_count(99.97), "100");
}

TEST(Text, NumbersWithoutExactDigitsAreShownWithAnExponent) {
  EXPECT_EQ(format_count(999e12), "999,000,000,000,000");
  EXPECT_EQ(format_count(1e15), "1e+15");
  EXPECT_EQ(format_count(1.234e300), "1.23e+300");
  EXPECT_EQ(format_count(std::numeric_limits<double>::infinity()), "inf");
  EXPECT_EQ(format_seconds(2.5e20), "2.5e+20 s");
  EXPECT_EQ(format_si(1e40, "FLOP"), "1e+22 EFLOP");
}

TEST(Text, WhatActsOnATerminalIsEscaped) {
  EXPECT_EQ(printable("a\x1b[31m\n\x07\x7f"), "a\\x1b[31m\\x0a\\x07\\x7f");
  // U+009B is the one-character form of "escape [", U+202E turns the direction of writing.
  EXPECT_EQ(printable("\xc2\x9b"
                      "x\xe2\x80\xae"),
            "\\x9bx\\u202e");
  EXPECT_EQ(printable("µs \xf0\x9f\x98\x80"), "µs \xf0\x9f\x98\x80");
  // Not UTF-8: a lone byte, a surrogate, a longer form than needed, a cut character.
  EXPECT_EQ(printable("\xff|\xed\xa0\x80|\xc0\x80|\xe2\x82"),
            "\\xff|\\xed\\xa0\\x80|\\xc0\\x80|\\xe2\\x82");
  EXPECT_EQ(printable_lines("a\n\tb\r"), "a\n\tb\\x0d");
}

TEST(Text, LongNamesAreCutAtEightyCharacters) {
  EXPECT_EQ(shown_name(std::string(80, 'a')), std::string(80, 'a'));
  EXPECT_EQ(shown_name(std::string(81, 'a')), std::string(77, 'a') + "...");
  std::string accents;
  for (int i = 0; i < 81; ++i) accents += "é";
  EXPECT_EQ(shown_name(accents).size(), 77 * 2 + 3);
  EXPECT_EQ(did_you_mean("bac", {"ba\x1b"}), "; did you mean 'ba\\x1b'?");
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
  // Text behind a zero byte is not dropped silently.
  EXPECT_ERROR(parse_json(std::string_view("{}\n\0{\"a\": 1}", 12), "x.json"), kInput,
               "x.json:2:1: not JSON: expected text, found a zero byte");
  for (const char* text : {"7.7e113", "-1", "11", "2.5", "18446744073709551615", "\"3\"", "null"})
    EXPECT_EQ(whole_number(parse_json(text, "x.json"), 0, 10), std::nullopt) << text;
  EXPECT_EQ(whole_number(parse_json("10", "x.json"), 0, 10), 10);
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

TEST(JsonReader, NullIsNotMissing) {
  const Json json = parse_json(R"({"a": null, "b": null, "c": null, "d": null})", "x.json");
  const JsonObject object(json, "x.json");
  EXPECT_ERROR(object.integer({"n", "a"}, 1, 9), kInput,
               "x.json: 'a': is null, expected an integer from 1 to 9");
  EXPECT_ERROR(object.string("b"), kInput, "'b': is null, expected a text");
  EXPECT_ERROR(object.number("c"), kInput, "'c': is null, expected a number");
  EXPECT_ERROR(object.object("d"), kInput, "'d': is null, expected an object");
  EXPECT_EQ(object.optional_integer({"a"}, 1, 9), std::nullopt);
}

TEST(JsonReader, WhatIsNotFiniteMayStandInFieldsThatNobodyReads) {
  const std::string text =
      "{\"a\": NaN,\n \"b\": -Infinity, \"c\": [Infinity],\n \"d\": \"NaN\", \"e\": 1}";
  const Json json = parse_json(text, "x.json");
  const JsonObject object(json, "x.json");
  EXPECT_EQ(object.integer({"e"}, 1, 9), 1);
  EXPECT_EQ(object.string("d"), "NaN");
  EXPECT_ERROR(object.number("a"), kInput,
               "x.json: 'a': expected a number, found NaN (line 1, column 7)");
  EXPECT_ERROR(object.integer({"b"}, 1, 9), kInput,
               "'b': expected an integer from 1 to 9, found -Infinity (line 2, column 7)");
  EXPECT_ERROR(object.string("b"), kInput, "expected a text, found -Infinity (line 2, column 7)");
  EXPECT_ERROR(object.strings("c"), kInput, "found Infinity (line 2, column 24) in it");
  // Only as a value; and positions of later mistakes are positions in the file.
  EXPECT_ERROR(parse_json("{\"a\": NaN, \"b\": }", "x.json"), kInput, "x.json:1:17: not JSON");
  EXPECT_ERROR(parse_json("{NaN: 1}", "x.json"), kInput, "x.json:1:2: not JSON");
  EXPECT_ERROR(parse_json("{\"a\": NaNo}", "x.json"), kInput, "x.json:1:7: not JSON");
  EXPECT_ERROR(parse_json("{\"a\": [1,\n1e999]}", "x.json"), kInput,
               "x.json:2:1: not JSON: number overflow parsing '1e999'");
}

TEST(JsonReader, AKeyGivenTwiceIsRefusedWithBothPlaces) {
  EXPECT_ERROR(parse_json("{\"a\": 1,\n \"b\": {\"c:\": 1, \"a\": 2},\n \"a\": 3}", "x.json"),
               kInput, "x.json:3:2: 'a' is given a second time, first at 1:2; keep one of them");
  EXPECT_ERROR(parse_json("[{\"x\": {\"b\": 1, \"b\": 1}}]", "x.json"), kInput,
               "x.json:1:17: 'b' is given a second time, first at 1:9");
  EXPECT_ERROR(parse_json("{\"a\": 1, \"\\u0061\": 1}", "x.json"), kInput,
               "an object has the same key twice");
  EXPECT_NO_THROW(parse_json(R"([{"a": 1}, {"a": "b:c"}, {"\"": {"a": 1}}])", "x.json"));
}

TEST(JsonReader, WhatAFileSaysReachesNoTerminal) {
  const Json json = parse_json(
      "{\"n\\u001b\": \"v\\u001b[2J\\u009b\", \"long\": \"" + std::string(5000, 'x') + "\"}",
      "x.json");
  const JsonObject object(json, "x.json");
  EXPECT_ERROR(object.number("n\x1b"), kInput, "'n\\x1b': expected a number, found");
  EXPECT_ERROR(object.reject_unknown({"long"}), kInput, "'n\\x1b': unknown field");
  try {
    object.number("long");
    FAIL();
  } catch (const Error& error) {
    EXPECT_LT(std::string(error.what()).size(), 120u);
  }
}

TEST(Csv, QuotedCellsKeepTheirCommas) {
  const CsvTable table = parse_csv("# note\na,b\n\"x, y\",2\n", "t.csv");
  EXPECT_EQ(table.comments, std::vector<std::string>{"note"});
  EXPECT_EQ(table.rows[0][0], "x, y");
  EXPECT_EQ(table.integer(0, 1), 2);
}

TEST(Csv, BrokenRowsAndCellsAreNamed) {
  EXPECT_ERROR(parse_csv("a,b\n1\n", "t.csv"), kInput,
               "t.csv: line 2: expected 2 columns, found 1");
  const CsvTable table = parse_csv("a\nx\n", "t.csv");
  EXPECT_ERROR(table.number(0, 0), kInput, "expected a number, found 'x'");
}

TEST(Csv, WhatSpreadsheetsWriteIsRead) {
  // A byte-order mark, semicolons, decimal commas, CRLF, rows that were cleared.
  const CsvTable table =
      parse_csv("\xEF\xBB\xBF# note\r\nop;latency_s\r\nadd;0,25\r\n;\r\nadd;1.5\r\n", "t.csv");
  EXPECT_EQ(table.comments, std::vector<std::string>{"note"});
  EXPECT_EQ(table.header, (std::vector<std::string>{"op", "latency_s"}));
  ASSERT_EQ(table.rows.size(), 2u);
  EXPECT_EQ(table.number(0, 1), 0.25);
  EXPECT_EQ(table.number(1, 1), 1.5);
  EXPECT_EQ(table.lines, (std::vector<size_t>{3, 5}));
  EXPECT_EQ(table.empty_rows, 1u);
  EXPECT_ERROR(parse_csv("a;b\n1.000,5;2\n", "t.csv").number(0, 0), kInput, "found '1.000,5'");
  EXPECT_ERROR(parse_csv("a,b\n\"0,5\",2\n", "t.csv").number(0, 0), kInput, "found '0,5'");
  EXPECT_EQ(parse_csv("a\n1;2\n", "t.csv").rows[0][0], "1;2");
}

TEST(Csv, MessagesNameTheFilesLine) {
  // A comment, an empty line, a cell of two lines, a row that was cleared.
  const CsvTable table = parse_csv("# note\na,b\n\n\"x\ny\",1\n,\nz,2\n", "t.csv");
  EXPECT_EQ(table.lines, (std::vector<size_t>{4, 7}));
  EXPECT_ERROR(table.number(1, 0), kInput, "t.csv: line 7: 'a': expected a number, found 'z'");
  EXPECT_EQ(parse_csv("a\r1\r2", "t.csv").lines, (std::vector<size_t>{2, 3}));
  EXPECT_ERROR(parse_csv("a,b\n,\n1\n", "t.csv"), kInput, "t.csv: line 3: expected 2 columns");
}

TEST(Csv, AColumnNamedTwiceIsRefused) {
  EXPECT_ERROR(parse_csv("a,m,a\n1,2,3\n", "t.csv"), kInput,
               "t.csv: columns 1 and 3 have the same name");
}

TEST(Csv, WhatACellSaysReachesNoTerminal) {
  EXPECT_ERROR(parse_csv("a\n\x1b[2J\n", "t.csv").number(0, 0), kInput, "found '\\x1b[2J'");
}

TEST(RngTest, TheSameSeedGivesTheSameNumbers) {
  // First output of SplitMix64 with seed 1234567 (reference implementation, Vigna 2015).
  EXPECT_EQ(Rng(1234567).next(), 6457827717110365317ull);
}

TEST(Embedded, DataFoldersAreInTheProgram) {
  EXPECT_GE(embedded_files("devices/").size(), 30u);
  EXPECT_GE(embedded_files("models/").size(), 18u);
}

TEST(Csv, FilesThatAreMadeToFillMemoryAreRefused) {
  EXPECT_ERROR(parse_csv("a,b\n1," + std::string((1 << 20) + 1, 'x') + "\n", "t.csv"), kInput,
               "t.csv: line 2: a cell of more than 1048576 bytes");
  EXPECT_EQ(parse_csv("a\n" + std::string(1 << 20, 'x') + "\n", "t.csv").rows[0][0].size(),
            1u << 20);
  std::string row = "a\n";
  for (int i = 0; i < 16385; ++i) row += "1,";
  EXPECT_ERROR(parse_csv(row, "t.csv"), kInput, "t.csv: line 2: more than 16384 cells");
}

TEST(Csv, CellsAreNoFormulasOfASpreadsheet) {
  EXPECT_EQ(csv_cell("=1+2"), "'=1+2");
  EXPECT_EQ(csv_cell("@SUM(A1)"), "'@SUM(A1)");
  EXPECT_EQ(csv_cell("+cmd|' /C calc'!A0"), "'+cmd|' /C calc'!A0");
  EXPECT_EQ(csv_cell("-cmd"), "'-cmd");
  EXPECT_EQ(csv_cell(" =1"), "' =1");
  EXPECT_EQ(csv_cell("=a,\"b\""), "\"'=a,\"\"b\"\"\"");
  EXPECT_EQ(csv_cell("-1.5e-3"), "-1.5e-3");
  EXPECT_EQ(csv_cell("a=b"), "a=b");
  EXPECT_EQ(csv_cells("a,\"b,c\",,"), (std::vector<std::string>{"a", "b,c", "", ""}));
}

TEST(Csv, CellsAreQuotedWhereTheyMustBe) {
  EXPECT_EQ(csv_cell("plain name"), "plain name");
  EXPECT_EQ(csv_cell("two\nlines"), "\"two\nlines\"");
  const std::string odd = "a,b \"c\" d";
  EXPECT_EQ(csv_cell(odd), "\"a,b \"\"c\"\" d\"");
  const CsvTable table = parse_csv("name,n\n" + csv_cell(odd) + ",1\n", "x.csv");
  ASSERT_EQ(table.rows.size(), 1u);
  EXPECT_EQ(table.rows[0][0], odd);
}

TEST(Text, OptionsInBackquotesBecomeFlags) {
  EXPECT_EQ(options_as_flags("`batch`: expected 1; use `max-num-seqs` 4"),
            "--batch: expected 1; use --max-num-seqs 4");
  EXPECT_EQ(options_as_flags("no option"), "no option");
  EXPECT_EQ(options_as_flags("a ` b `` c `Not one` d `"), "a ` b `` c `Not one` d `");
}

TEST(Base64, DecodesTheExamplesOfTheStandard) {
  EXPECT_EQ(from_base64(""), "");
  EXPECT_EQ(from_base64("Zg=="), "f");
  EXPECT_EQ(from_base64("Zm8="), "fo");
  EXPECT_EQ(from_base64("Zm9vYmFy"), "foobar");
  EXPECT_EQ(from_base64("//79"), "\xff\xfe\xfd");
  for (const char* wrong : {"Z", "Zg=", "Zg", "Z===", "====", "Zg==Zg==", "Zm9v\n", "Zm-_", "=Zg="})
    EXPECT_EQ(from_base64(wrong), std::nullopt) << wrong;
}

TEST(Numbers, WholeOnesMayEndInAFactor) {
  EXPECT_EQ(parse_whole("1k"), 1000);
  EXPECT_EQ(parse_whole("1.5K"), 1500);
  EXPECT_EQ(parse_whole("4Ki"), 4096);
  EXPECT_EQ(parse_whole("1G"), 1'000'000'000);
  EXPECT_EQ(parse_whole("15T"), 15'000'000'000'000);
  EXPECT_EQ(parse_whole("-2M"), -2'000'000);
  EXPECT_EQ(parse_whole("9223372036854775807"), std::numeric_limits<int64_t>::max());
  for (const char* wrong :
       {"", "k", "i", "ki", "1kk", "1 k", "1.0001k", "1e400G", "9000000000T", "nank"})
    EXPECT_EQ(parse_whole(wrong), std::nullopt) << wrong;
}

}  // namespace
}  // namespace tilecast
