#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>

#include "base/rng.h"
#include "embedding/cache_curve.h"
#include "embedding/tables.h"
#include "lru.h"
#include "test_support.h"

namespace tilecast {
namespace {

/// A histogram with a random power-law shape, as production tables have: many lookups go to rows
/// that are used often, while most rows are used once or twice.
ReuseShares random_shares(Rng& rng, size_t most_bins) {
  ReuseShares shares{};
  const size_t bins = 2 + rng.below(most_bins - 1);
  double sum = 0;
  for (size_t i = 0; i < bins; ++i) sum += shares[i] = 0.05 + rng.uniform();
  for (double& share : shares) share /= sum;
  return shares;
}

TEST(Reuse, HitsOfHistogramsAreThoseOfExactLruCaches) {
  Rng rng(20261122);
  double worst = 0, sum = 0;
  constexpr int kStreams = 24;
  for (int i = 0; i < kStreams; ++i) {
    const ReuseShares shares = random_shares(rng, 14);
    const double lookups = 1e5 * (1 + 2 * rng.uniform());
    const std::vector<int32_t> stream = draw_stream(shares, lookups, rng);
    const auto size = static_cast<double>(stream.size());
    const TableAccess access = histogram_access(shares, 1e12, size, size);
    // From a hundredth of the rows to nearly all.
    const auto capacity =
        static_cast<size_t>(distinct_rows(access) * std::exp2(-0.1 - 6.5 * rng.uniform()));
    const double exact = lru_hit_share(stream, capacity);
    const double forecast =
        hit_share(access, {.cache_bytes = 512.0 * static_cast<double>(capacity), .row_bytes = 512});
    worst = std::max(worst, std::abs(forecast - exact));
    sum += std::abs(forecast - exact);
    EXPECT_NEAR(forecast, exact, 0.05) << "stream " << i << ", " << capacity << " rows";
  }
  RecordProperty("worst_points", fmt::format("{:.2f}", 100 * worst));
  RecordProperty("mean_points", fmt::format("{:.2f}", 100 * sum / kStreams));
}

TEST(Reuse, HitsOfCountedRowsAreThoseOfExactLruCaches) {
  Rng rng(11);
  const ReuseCounts counts = {8817, 2204, 551, 137, 34, 8, 2, 1};
  constexpr int64_t kLookups = 40'000;
  std::vector<int32_t> stream;
  int32_t row = 0;
  for (size_t i = 0; i < counts.size(); ++i) {
    for (int64_t n = 0; n < counts[i]; ++n, ++row) stream.insert(stream.end(), size_t{1} << i, row);
  }
  while (static_cast<int64_t>(stream.size()) < kLookups) stream.push_back(row++);
  rng.shuffle(stream);
  const TableAccess access = counted_access(counts, 1e6, kLookups, kLookups);
  EXPECT_NEAR(distinct_rows(access), row, 1);
  for (const size_t capacity : {300, 3'000, 15'000}) {
    const double exact = lru_hit_share(stream, capacity);
    const double forecast =
        hit_share(access, {.cache_bytes = static_cast<double>(capacity), .row_bytes = 1});
    EXPECT_NEAR(forecast, exact, 0.02) << capacity;
  }
}

TEST(Reuse, CountedRowsKeepAllLookups) {
  const auto lookups_of = [](const TableAccess& access) {
    double lookups = 0;
    for (const RowClass& c : access.classes) lookups += c.rows * c.uses;
    return lookups;
  };
  const auto rows_of = [](const TableAccess& access) {
    double rows = 0;
    for (const RowClass& c : access.classes) rows += c.rows;
    return rows;
  };
  // All others are used once; where the table has too few rows, more often.
  EXPECT_DOUBLE_EQ(rows_of(counted_access({4, 2, 1}, 1000, 100, 100)), 7 + 88);
  EXPECT_DOUBLE_EQ(lookups_of(counted_access({4, 2, 1}, 1000, 100, 100)), 100);
  EXPECT_DOUBLE_EQ(rows_of(counted_access({4, 2, 1}, 27, 100, 100)), 27);
  EXPECT_DOUBLE_EQ(lookups_of(counted_access({4, 2, 1}, 27, 100, 100)), 100);
  EXPECT_DOUBLE_EQ(rows_of(counted_access({4, 2, 1}, 7, 100, 100)), 7);
  EXPECT_DOUBLE_EQ(lookups_of(counted_access({4, 2, 1}, 7, 100, 100)), 100);
  EXPECT_DOUBLE_EQ(distinct_rows(counted_access({0}, 1000, 100, 100)), 100);
}

TEST(Tables, NamesAreTextThatAnyOutputMayShow) {
  const Json json = parse_json(
      R"({"reuse": {"r\u001b": {"zipf_exponent": 1}}, "tables": [
          {"name": "a\u001b[2J\u202e", "rows": 9, "dim": 4, "reuse": "r\u001b"},
          {"name": ")" +
          std::string(300, 'n') + R"(", "rows": 9, "dim": 4, "reuse": "r\u001b"}]})",
      "t.json");
  const TableSet set = read_tables(JsonObject(json, "t.json"));
  EXPECT_EQ(set.tables[0].name, "a\\x1b[2J\\u202e");
  EXPECT_EQ(set.tables[0].reuse, "r\\x1b");
  EXPECT_NE(set.reuse_of(set.tables[0]), nullptr);
  EXPECT_EQ(set.tables[1].name, std::string(77, 'n') + "...");
}

TEST(Reuse, ListsThatContradictATableAreExplained) {
  EXPECT_EQ(contradiction({4, 2, 1}, 7, 12), "");
  EXPECT_EQ(contradiction({4, 2, 1}, 6, 12), "it counts 7 rows, the table has 6");
  EXPECT_EQ(contradiction({4, 2, 1}, 7, 11), "it counts 12 lookups, the batch has 11");
  EXPECT_EQ(contradiction({4, -2}, 7, 11), "expected numbers of rows, found -2");
  EXPECT_EQ(contradiction(ReuseCounts(18, 0), 7, 11), "expected at most 17 numbers, found 18");
}

TEST(Reuse, HitsOfUniformLookupsAreThoseOfExactLruCaches) {
  Rng rng(5);
  for (const double rows : {2e3, 2e4, 2e5}) {
    std::vector<int32_t> stream(100'000);
    for (int32_t& id : stream) id = static_cast<int32_t>(rng.below(static_cast<uint64_t>(rows)));
    const TableAccess access = uniform_access(rows, static_cast<double>(stream.size()));
    for (const size_t capacity : {500, 5'000, 50'000}) {
      const double exact = lru_hit_share(stream, capacity);
      EXPECT_NEAR(hit_share(access, {.cache_bytes = static_cast<double>(capacity), .row_bytes = 1}),
                  exact, 0.01)
          << rows << " rows, " << capacity << " in the cache";
    }
  }
}

TEST(Reuse, APartOfARecordedBatchUsesRowsLessOften) {
  Rng rng(6);
  const ReuseShares shares = random_shares(rng, 12);
  std::vector<int32_t> stream = draw_stream(shares, 4e5, rng);
  const auto all = static_cast<double>(stream.size());
  for (const double part : {0.5, 0.1, 0.02}) {
    const std::vector<int32_t> first(stream.begin(),
                                     stream.begin() + static_cast<int64_t>(part * all));
    const TableAccess access =
        histogram_access(shares, 1e12, static_cast<double>(first.size()), all);
    const double exact = lru_hit_share(first, 20'000);
    EXPECT_NEAR(hit_share(access, {.cache_bytes = 20'000, .row_bytes = 1}), exact, 0.03) << part;
  }
}

TEST(Reuse, LargerCachesAnswerMoreAndNoCacheAnswersFirstUses) {
  Rng rng(7);
  for (int i = 0; i < 200; ++i) {
    const double lookups = std::exp2(6 + 14 * rng.uniform()), rows = std::exp2(20 * rng.uniform());
    const TableAccess access = rng.below(2) == 0
                                   ? uniform_access(rows, lookups)
                                   : histogram_access(random_shares(rng, kReuseBins), rows, lookups,
                                                      lookups * std::exp2(4 * rng.uniform() - 2));
    double before = 0;
    for (double bytes = 1e3; bytes < 1e12; bytes *= 4) {
      const double hits =
          hit_share(access, {.cache_bytes = bytes, .row_bytes = 256, .streamed_bytes = 16});
      EXPECT_GE(hits, before - 1e-9);
      before = hits;
    }
    EXPECT_LE(distinct_rows(access), rows * (1 + 1e-9));
    EXPECT_LE(before, 1 - std::min(1.0, distinct_rows(access) / lookups) + 0.01)
        << "the first use of a row is never a hit";
  }
}

TEST(Reuse, MeanUsesLieInsideTheirBins) {
  EXPECT_EQ(mean_uses(0), 1);
  EXPECT_EQ(mean_uses(1), 2);
  EXPECT_NEAR(mean_uses(2), 3.36, 0.01);  // 3 and 4 uses
  for (size_t bin = 2; bin < kReuseBins; ++bin) {
    EXPECT_GT(mean_uses(bin), std::exp2(bin - 1));
    EXPECT_LT(mean_uses(bin), std::exp2(bin));
  }
}

TEST(Reuse, ZipfLookupsAreThoseOfDrawnOnes) {
  Rng rng(8);
  constexpr int kRows = 5000, kLookups = 200'000;
  std::vector<double> cumulative;
  double sum = 0;
  for (int i = 1; i <= kRows; ++i) cumulative.push_back(sum += std::pow(i, -1.1));
  std::vector<int32_t> stream(kLookups);
  std::vector<int> uses(kRows, 0);
  for (int32_t& id : stream) {
    id = static_cast<int32_t>(
        std::lower_bound(cumulative.begin(), cumulative.end(), sum * rng.uniform()) -
        cumulative.begin());
    ++uses[static_cast<size_t>(id)];
  }
  const ReuseShares shares = zipf_shares(1.1, kRows, kLookups);
  ReuseShares drawn{};
  for (const int n : uses) {
    if (n > 0) drawn[n == 1 ? 0 : static_cast<size_t>(std::ceil(std::log2(n)))] += n;
  }
  double all = 0;
  for (size_t bin = 0; bin < kReuseBins; ++bin) {
    all += shares[bin];
    EXPECT_NEAR(shares[bin], drawn[bin] / kLookups, 0.03) << bin;
  }
  EXPECT_NEAR(all, 1, 1e-6);
  const TableAccess access = histogram_access(shares, kRows, kLookups, kLookups);
  for (const size_t capacity : {100, 1000})
    EXPECT_NEAR(hit_share(access, {.cache_bytes = static_cast<double>(capacity), .row_bytes = 1}),
                lru_hit_share(stream, capacity), 0.03);
}

TEST(CacheCurve, InterpolatesAndNeverFalls) {
  const CacheCurve curve = CacheCurve::of([](double bytes) { return std::min(1.0, bytes / 1e8); });
  EXPECT_EQ(curve.at(0), 0);
  EXPECT_NEAR(curve.at(1 << 19), 0.5 * curve.at(1 << 20), 1e-9);
  EXPECT_NEAR(curve.at(40e6), 0.4, 0.01);
  EXPECT_EQ(curve.at(1e12), 1);
  double before = 0;
  for (double bytes = 1e4; bytes < 1e12; bytes *= 1.1) {
    EXPECT_GE(curve.at(bytes), before);
    before = curve.at(bytes);
  }
}

TEST(Traffic, FollowsTheFormulaOfOneWarpPerBag) {
  // 100 bags of 20 rows of 64 numbers in fp32: two sectors of offsets, 160 bytes of ids, 20 rows of
  // 256 bytes; a sum of 256 bytes (Lin et al. 2022).
  const TableWork work{.rows = 1e9, .dim = 64, .bags = 100, .access = uniform_access(1e9, 2000)};
  const TableTraffic t = forward_traffic(work);
  EXPECT_EQ(t.gathered_bytes, 100 * 20 * 256);
  EXPECT_EQ(t.read_bytes, 100 * (64 + 160 + 20 * 256));
  EXPECT_EQ(t.write_bytes, 100 * 256);
  EXPECT_EQ(t.flops, 100 * 19 * 64);
  // Rows of 5 numbers fill a whole sector.
  EXPECT_EQ((TableWork{.dim = 5}).row_bytes(), 32);
}

TEST(Traffic, UpdatesReadAGradientForEachLookupAndWriteEachRowOnce) {
  const TableWork work{.rows = 10, .dim = 64, .bags = 100, .access = uniform_access(10, 2000)};
  const TableTraffic sgd = update_traffic(work, SparseOptimizer::kSgd);
  EXPECT_NEAR(sgd.write_bytes, 10 * 256, 1);
  EXPECT_NEAR(sgd.gathered_bytes, 2000 * 256, 1);
  // One sector holds the state of a row.
  EXPECT_NEAR(update_traffic(work, SparseOptimizer::kRowwiseAdagrad).write_bytes, 10 * (256 + 32),
              1);
  // The gradients of 100 bags, each read 20 times, fit into a cache of 1 MiB.
  EXPECT_NEAR(sgd.hit_bytes(1 << 20), sgd.gathered_bytes * 19 / 20, 1);
}

TableSet tables_of(const std::string& text) {
  const Json json = parse_json(text, "t.json");
  return read_tables(JsonObject(json, "t.json"));
}

TEST(Tables, AreReadWithTheirReuse) {
  const TableSet set = tables_of(
      R"({"reuse": {"a": {"batch": 64, "shares": [0.5, 0.5, 0,0,0,0,0,0,0,0,0,0,0,0,0,0,0]},
                    "z": {"zipf_exponent": 1.1}},
          "embedding_dim": 64, "sparse_optimizer": "sgd",
          "tables": [{"name": "x", "rows": 1000, "pooling": 2.5, "reuse": "a"},
                     {"name": "y", "rows": 9, "dim": 8, "dtype": "fp16", "reuse": "z"},
                     {"name": "u", "rows": 7}]})");
  ASSERT_EQ(set.tables.size(), 3u);
  EXPECT_EQ(set.tables[0].dim, 64);
  EXPECT_EQ(set.tables[1].dim, 8);
  EXPECT_EQ(set.tables[1].dtype, DType::kFp16);
  EXPECT_EQ(set.optimizer, SparseOptimizer::kSgd);
  EXPECT_EQ(lookups_of(set.tables[0], 64), 160);
  // Half of 160 lookups go to rows that are used once, half to rows that are used twice.
  EXPECT_NEAR(distinct_rows(access_of(set.tables[0], set, 64)), 80 + 40, 1e-9);
  EXPECT_EQ(set.warnings.size(), 1u);
}

TEST(Tables, SayWhatIsWrong) {
  EXPECT_ERROR(tables_of(R"({})"), kInput,
               "t.json: 'tables': expected a list of 1 to 4096 tables {name, rows, dim, pooling}, "
               "found none");
  EXPECT_ERROR(tables_of(R"({"tables": [{"name": "x", "rows": 0, "dim": 4}]})"), kInput,
               "t.json: tables[0]: 'rows'");
  EXPECT_ERROR(tables_of(R"({"tables": [{"name": "x", "rows": 5, "dim": 4, "reuse": "b"}]})"),
               kInput, "no reuse 'b' in the file");
  EXPECT_ERROR(tables_of(R"({"tables": [{"name": "x", "rows": 5, "dim": 4},
                                        {"name": "x", "rows": 5, "dim": 4}]})"),
               kInput, "is the name of another table");
  EXPECT_ERROR(tables_of(R"({"reuse": {"a": {"batch": 4, "shares": [1, 2]}}, "tables": []})"),
               kInput, "expected 17 numbers");
}

}  // namespace
}  // namespace tilecast
