#include "embedding/tables.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <set>

#include "base/number.h"
#include "base/text.h"
#include "tilecast/error.h"

namespace tilecast {
namespace {

constexpr int64_t kMostTables = 4096;  // as the operator embedding_bags takes
constexpr int64_t kMostRows = int64_t{1} << 40, kMostDim = 1 << 16, kMostBatch = 1 << 30;
constexpr double kMostPooling = 1 << 20;

ReuseShares read_shares(const JsonObject& config) {
  const Json& list = config.has("shares") ? config.json()["shares"] : Json();
  ReuseShares shares{};
  if (!list.is_array() || list.size() != kReuseBins)
    config.fail("shares",
                fmt::format("expected {} numbers: the shares of lookups that go to rows which a "
                            "batch uses once, twice, 3-4, 5-8, ..., 16385-32768 times, and more "
                            "often; found {}",
                            kReuseBins,
                            list.is_array() ? std::to_string(list.size()) + " entries"
                                            : std::string(list.type_name())));
  double sum = 0;
  for (size_t i = 0; i < kReuseBins; ++i) {
    shares[i] = list[i].is_number() ? list[i].get<double>() : -1;
    if (!(shares[i] >= 0 && shares[i] <= 1))
      config.fail("shares", fmt::format("entry {}: expected a number from 0 to 1", i));
    sum += shares[i];
  }
  // Published histograms are rounded to three digits.
  constexpr double kRounding = 0.02;
  if (std::abs(sum - 1) > kRounding)
    config.fail("shares", fmt::format("expected shares that sum up to 1, found {:.3f}", sum));
  for (double& share : shares) share /= sum;
  return shares;
}

/// "900:200:7"
ReuseCounts read_counts(const JsonObject& config) {
  const std::string text = config.string("rows");
  ReuseCounts counts;
  for (const std::string& part : split(text, ':')) {
    const auto rows = parse_number<int64_t>(part);
    if (!rows || *rows < 0 || *rows > kMostRows || counts.size() == kMostReuseCounts)
      config.fail("rows", fmt::format("expected at most {} numbers of rows with colons between "
                                      "them, those that a batch uses once, twice, 4, 8, ... times "
                                      "(900:200:7); found '{}'",
                                      kMostReuseCounts, shown_name(text)));
    counts.push_back(*rows);
  }
  return counts;
}

Reuse read_reuse(const JsonObject& config) {
  config.reject_unknown({"shares", "rows", "batch", "zipf_exponent", "source"});
  const auto alone = [&](std::initializer_list<const char*> others) {
    for (const char* other : others) {
      if (config.has(other)) config.fail(other, "give one of rows, shares and zipf_exponent");
    }
  };
  Reuse reuse;
  if (config.has("zipf_exponent")) {
    const double exponent = config.number("zipf_exponent");
    if (!(exponent >= 0 && exponent <= 4))
      config.fail("zipf_exponent", "expected a number from 0 to 4");
    alone({"shares", "rows"});
    reuse.zipf_exponent = exponent;
    return reuse;
  }
  if (config.has("rows")) {
    alone({"shares"});
    reuse.rows = read_counts(config);
  } else {
    reuse.shares = read_shares(config);
  }
  reuse.batch = config.integer({"batch"}, 1, kMostBatch);
  return reuse;
}

std::map<std::string, Reuse> read_all_reuse(const JsonObject& config) {
  std::map<std::string, Reuse> all;
  if (!config.has("reuse")) return all;
  const JsonObject object = config.object("reuse");
  for (const auto& [name, value] : object.json().items()) {
    if (name == kUniformReuse)
      config.fail("reuse", "'uniform' means that all rows are alike; choose another name");
    const std::string shown = shown_name(name);
    if (!all.emplace(shown, read_reuse({value, config.where() + ": reuse '" + shown + "'"})).second)
      config.fail("reuse",
                  fmt::format("two names are both shown as '{}'; expected shorter ones", shown));
  }
  return all;
}

EmbeddingTable read_table(const JsonObject& entry, const JsonObject& config,
                          const std::map<std::string, Reuse>& reuse) {
  entry.reject_unknown({"name", "rows", "dim", "pooling", "reuse", "dtype"});
  EmbeddingTable table;
  table.name = entry.string("name");
  table.rows = entry.integer({"rows"}, 1, kMostRows);
  table.dim = entry.has("dim") || !config.has("embedding_dim")
                  ? entry.integer({"dim"}, 1, kMostDim)
                  : config.integer({"embedding_dim"}, 1, kMostDim);
  table.pooling = entry.has("pooling") ? entry.number("pooling") : 1;
  if (!(table.pooling > 0 && table.pooling <= kMostPooling))
    entry.fail("pooling", fmt::format("expected a number above 0 and at most {}", kMostPooling));
  if (const auto dtype = entry.optional_string({"dtype"})) {
    table.dtype = find_dtype(*dtype);
    if (!table.dtype || *table.dtype == DType::kTf32 ||
        (*table.dtype != DType::kFp32 && *table.dtype != DType::kFp16 &&
         *table.dtype != DType::kBf16 && *table.dtype != DType::kInt8 &&
         *table.dtype != DType::kFp8))
      entry.fail("dtype", fmt::format("expected fp32, fp16, bf16, fp8 or int8, found '{}'",
                                      shown_name(*dtype)));
  }
  table.reuse = shown_name(entry.optional_string({"reuse"}).value_or(kUniformReuse));
  if (table.reuse == kUniformReuse) {
    table.reuse.clear();
  } else if (!reuse.contains(table.reuse)) {
    std::vector<std::string> names = {kUniformReuse};
    for (const auto& [name, unused] : reuse) names.push_back(name);
    entry.fail("reuse",
               fmt::format("no reuse '{}' in the file{}; known: {}", shown_name(table.reuse),
                           did_you_mean(table.reuse, names), join(names, ", ")));
  }
  if (const auto how = reuse.find(table.reuse); how != reuse.end()) {
    const std::string why = contradiction(
        how->second.rows, table.rows, lookups_of(table, std::max<int64_t>(1, how->second.batch)));
    if (!why.empty())
      entry.fail("reuse",
                 fmt::format("'{}' is not of this table: {}", shown_name(table.reuse), why));
  }
  return table;
}

SparseOptimizer read_optimizer(const JsonObject& config) {
  const auto name = config.optional_string({"sparse_optimizer"});
  if (!name) return SparseOptimizer::kRowwiseAdagrad;
  const auto words = choice_words(SparseOptimizer{});
  const auto found = std::find(words.begin(), words.end(), *name);
  if (found == words.end())
    config.fail("sparse_optimizer", fmt::format("expected {}, found '{}'", fmt::join(words, " or "),
                                                shown_name(*name)));
  return static_cast<SparseOptimizer>(found - words.begin());
}

}  // namespace

const Reuse* TableSet::reuse_of(const EmbeddingTable& table) const {
  const auto found = reuse.find(table.reuse);
  return found == reuse.end() ? nullptr : &found->second;
}

int64_t lookups_of(const EmbeddingTable& table, int64_t batch) {
  return std::max<int64_t>(1, std::llround(table.pooling * static_cast<double>(batch)));
}

TableAccess access_of(const EmbeddingTable& table, const TableSet& set, int64_t batch) {
  const auto rows = static_cast<double>(table.rows);
  const auto lookups = static_cast<double>(lookups_of(table, batch));
  const Reuse* reuse = set.reuse_of(table);
  if (reuse == nullptr) return uniform_access(rows, lookups);
  if (reuse->zipf_exponent)
    return histogram_access(zipf_shares(*reuse->zipf_exponent, rows, lookups), rows, lookups,
                            lookups);
  const auto recorded = static_cast<double>(lookups_of(table, reuse->batch));
  return reuse->shares ? histogram_access(*reuse->shares, rows, lookups, recorded)
                       : counted_access(reuse->rows, rows, lookups, recorded);
}

TableSet read_tables(const JsonObject& config) {
  TableSet set;
  set.reuse = read_all_reuse(config);
  set.optimizer = read_optimizer(config);
  const Json& list = config.has("tables") ? config.json()["tables"] : Json();
  if (!list.is_array() || list.empty() || list.size() > kMostTables)
    config.fail("tables", fmt::format("expected a list of 1 to {} tables {{name, rows, dim, "
                                      "pooling}}, found {}",
                                      kMostTables,
                                      list.is_array()  ? std::to_string(list.size()) + " entries"
                                      : list.is_null() ? "none"
                                                       : std::string(list.type_name())));
  std::set<std::string> names;
  for (size_t i = 0; i < list.size(); ++i) {
    const JsonObject entry(list[i], fmt::format("{}: tables[{}]", config.where(), i));
    set.tables.push_back(read_table(entry, config, set.reuse));
    std::string& name = set.tables.back().name;
    name = shown_name(name);  // as all results show it
    if (!names.insert(name).second)
      entry.fail("name", fmt::format("'{}' is the name of another table, too", name));
  }
  const auto uniform = std::count_if(set.tables.begin(), set.tables.end(),
                                     [](const EmbeddingTable& t) { return t.reuse.empty(); });
  if (uniform > 0)
    set.warnings.push_back(fmt::format(
        "{} of {} tables state no reuse of rows: all of their rows are taken as equally popular, "
        "which makes caches look worse than they are",
        uniform, set.tables.size()));
  return set;
}

}  // namespace tilecast
