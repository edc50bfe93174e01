#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <set>

#include "base/csv.h"
#include "ops/sizes.h"
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

/// The kernels of the work. Each is there once, with all sizes that measuring it needs.
TEST(Suggest, RowsOfAWorkAreWholeAndDiffer) {
  constexpr int64_t kElements = 8'030'261'248;
  const auto add = [](int64_t elements) {
    return WorkKernel{.op = "add",
                      .dtype = "bf16",
                      .software = "vllm",
                      .sizes = {{"rows", 1}, {"elements", elements}},
                      .flops = elements,
                      .bytes = 6 * elements};
  };
  WorkKernel cast = add(kElements);
  cast.op = "cast";
  cast.flops = 0;
  WorkKernel cache{.op = "append_cache",
                   .dtype = "bf16",
                   .software = "vllm",
                   .sizes = {{"rows", 1}, {"elements", 2048}},
                   .flops = 0,
                   .bytes = 8192};
  WorkKernel attention{.op = "attention",
                       .dtype = "bf16",
                       .software = "vllm",
                       .sizes = {{"batch", 2},
                                 {"queries", 512},
                                 {"keys", 512},
                                 {"head_dim", 128},
                                 {"v_head_dim", 128},
                                 {"heads", 8},
                                 {"kv_heads", 8},
                                 {"window", 0}}};
  const Kernel causal = kernels_of_sizes("attention", DType::kBf16,
                                         {{"batch", int64_t{2}},
                                          {"queries", int64_t{512}},
                                          {"keys", int64_t{512}},
                                          {"head_dim", int64_t{128}},
                                          {"heads", int64_t{8}},
                                          {"kv_heads", int64_t{8}},
                                          {"causal", int64_t{1}}})
                            .front();
  attention.flops = causal.flops;
  attention.bytes = causal.bytes();
  WorkKernel broadcast = add(4096);  // of a bias: no row of two whole operands
  broadcast.bytes = 4 * 4096 + 128;
  const std::string text =
      suggest_kernels({.gpu = "L4",
                       .count = 100,
                       .work = {cast, add(65536), add(65536), cache, attention, broadcast}});
  const CsvTable rows = parse_csv(text, "rows");
  ASSERT_EQ(rows.rows.size(), 4u) << text;
  EXPECT_EQ(std::set(rows.rows.begin(), rows.rows.end()).size(), 4u) << text;
  std::map<std::string, std::string> sizes;  // by operator
  for (const auto& row : rows.rows) {
    const std::string& op = row[1];
    const auto at = [&](const char* column) { return row[rows.require_column(column)]; };
    sizes[op] = op == "append_cache" ? at("width")
                : op == "attention"  ? at("causal")
                                     : at("columns");
  }
  EXPECT_EQ(sizes, (std::map<std::string, std::string>{{"add", "65536"},
                                                       {"append_cache", "2048"},
                                                       {"attention", "1"},
                                                       {"cast", std::to_string(kElements)}}));
  // They are read back as the same kernels.
  const TemporaryFolder folder;
  const CsvTable again = parse_csv(suggested(folder, text, 100), "again");
  EXPECT_EQ(std::set(again.rows.begin(), again.rows.end()),
            std::set(rows.rows.begin(), rows.rows.end()));
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
