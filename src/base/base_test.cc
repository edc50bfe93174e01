#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>

#include "base/checked.h"
#include "base/csv.h"
#include "base/embedded.h"
#include "base/file.h"
#include "base/json.h"
#include "base/part_file.h"
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

TEST(File, ALinkStaysALinkAndItsTargetIsReplaced) {
  namespace fs = std::filesystem;
  const TemporaryFolder folder;
  fs::create_directory(folder.path() / "real");
  write_file(folder.path() / "real" / "out.txt", "first");
  fs::create_symlink("real/out.txt", folder.path() / "link");
  fs::create_symlink("link", folder.path() / "link2");
  write_file(folder.path() / "link2", "second");
  EXPECT_TRUE(fs::is_symlink(folder.path() / "link"));
  EXPECT_TRUE(fs::is_symlink(folder.path() / "link2"));
  EXPECT_EQ(read_file(folder.path() / "real" / "out.txt"), "second");
  // A link to what does not exist yet makes it exist.
  fs::create_symlink("real/new.txt", folder.path() / "dangling");
  write_file(folder.path() / "dangling", "third");
  EXPECT_EQ(read_file(folder.path() / "real" / "new.txt"), "third");
  fs::create_symlink("b", folder.path() / "a");
  fs::create_symlink("a", folder.path() / "b");
  EXPECT_ERROR(write_file(folder.path() / "a", "x"), kIo, "cannot write: Too many levels");
}

TEST(File, KeepsItsPermissions) {
  namespace fs = std::filesystem;
  const TemporaryFolder folder;
  const auto path = folder.path() / "out.txt";
  write_file(path, "first");
  fs::permissions(path, fs::perms::owner_read | fs::perms::owner_write);
  write_file(path, "second");
  EXPECT_EQ(fs::status(path).permissions(), fs::perms::owner_read | fs::perms::owner_write);
}

TEST(File, ASignalLeavesNoPartFile) {
  const TemporaryFolder folder;
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      remove_part_files_on_signals();
      const PartFile part(folder.path() / "out.txt", "out.txt");
      // Half of the file is written when the signal comes.
      if (::write(part.descriptor(), "half", 4) == 4) ::raise(signal);
      _exit(0);
    }
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFSIGNALED(status));
    EXPECT_EQ(WTERMSIG(status), signal);
    EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder.path()), {}), 0);
  }
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
