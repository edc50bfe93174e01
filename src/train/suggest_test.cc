#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <set>

#include "base/csv.h"
#include "test_support.h"
#include "tilecast/learn.h"

namespace tilecast {
namespace {

std::string suggested(const TemporaryFolder& folder, const std::string& content, size_t count) {
  const std::string path = (folder.path() / "candidates.csv").string();
  std::ofstream(path) << content;
  return suggest_kernels({.gpu = "L4", .count = count, .candidates = path, .weights_folder = ""});
}

TEST(Suggest, NamesRowsOfTheCandidatesThatDiffer) {
  // Five rows of nearly the same product and two that are unlike them: both are among the first.
  std::string csv = "note,gpu,op,dtype,m,n,k,latency_s\n";
  for (int i = 0; i < 5; ++i)
    csv += "\"a, b\",L4,linear,fp32," + std::to_string(4096 + i) + ",4096,4096,\n";
  csv += "small,L4,linear,fp32,16,64,64,0.001\nlong,nvidia-l4,linear,fp32,64,64,65536,\n";
  csv += "other,H100,linear,fp32,64,64,64,\n";
  const TemporaryFolder folder;
  const CsvTable chosen = parse_csv(suggested(folder, csv, 4), "chosen");
  EXPECT_EQ(chosen.header[0], "note");
  ASSERT_EQ(chosen.rows.size(), 4u);
  std::map<std::string, int> notes;
  for (const auto& row : chosen.rows) notes[row[0]] += 1;
  EXPECT_EQ(notes["small"], 1);
  EXPECT_EQ(notes["long"], 1);
  EXPECT_EQ(notes["a, b"], 2);
  EXPECT_EQ(suggested(folder, csv, 4), suggested(folder, csv, 4));
  // No row twice, and no more than there are.
  const CsvTable all = parse_csv(suggested(folder, csv, 500), "all");
  EXPECT_EQ(all.rows.size(), 7u);
  EXPECT_EQ(std::set(all.rows.begin(), all.rows.end()).size(), 7u);
}

TEST(Suggest, RefusesFilesWithoutCandidates) {
  const TemporaryFolder folder;
  EXPECT_ERROR(suggested(folder, "gpu,op,dtype,m,n,k,latency_s\nH100,linear,fp32,64,64,64,\n", 3),
               kInput, "none is of nvidia-l4");
  EXPECT_ERROR(suggested(folder, "a,b\n1,2\n", 3), kInput, "holds no kernel");
}

TEST(Suggest, GivesNoKindASingleRow) {
  // A single row of a kind calibrates nothing.
  for (const size_t count : {2, 3, 10, 20}) {
    const CsvTable chosen = parse_csv(suggest_kernels({.gpu = "L40S", .count = count}), "chosen");
    ASSERT_EQ(chosen.rows.size(), count);
    std::map<std::string, size_t> kinds;
    for (const auto& row : chosen.rows) {
      const bool product = row[1] == "linear" || row[1] == "matmul";
      kinds[product ? "product " + row[2] : row[1]] += 1;
    }
    for (const auto& [kind, rows] : kinds) EXPECT_GE(rows, 2u) << kind << " of " << count;
  }
}

}  // namespace
}  // namespace tilecast
