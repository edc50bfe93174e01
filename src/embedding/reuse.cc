#include "embedding/reuse.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace tilecast {
namespace {

/// Rows of the class that s, a part of the recorded lookups, uses at least once.
double distinct_of(const RowClass& c, double s) {
  if (c.random) return -c.rows * std::expm1(-c.uses * s);
  return s >= 1 ? c.rows : -c.rows * std::expm1(c.uses * std::log1p(-s));
}

/// The probability that none of the other uses of a row lies in a window s.
double unused(const RowClass& c, double s) {
  if (c.random) return std::exp(-c.uses * s);
  if (s >= 1) return c.uses > 1 ? 0 : 1;
  return std::exp((c.uses - 1) * std::log1p(-s));
}

/// Its integral from 0 to s.
double unused_integral(const RowClass& c, double s) {
  if (c.uses <= 0) return s;
  if (c.random) return -std::expm1(-c.uses * s) / c.uses;
  return s >= 1 ? 1 / c.uses : -std::expm1(c.uses * std::log1p(-s)) / c.uses;
}

/// The part of the recorded lookups that this batch has. A larger batch is one in which each row is
/// used more often.
struct Window {
  double share = 1;
  double growth = 1;  ///< of uses
  explicit Window(const TableAccess& access) {
    if (access.recorded <= 0) return;
    share = access.lookups / access.recorded;
    if (share <= 1) return;
    growth = share;
    share = 1;
  }
  RowClass of(RowClass c) const {
    c.uses *= growth;
    return c;
  }
};

double distinct_in(const TableAccess& access, const Window& window, double s) {
  double rows = 0;
  for (const RowClass& c : access.classes) rows += distinct_of(window.of(c), s);
  return rows;
}

}  // namespace

double mean_uses(size_t bin) {
  if (bin < 2) return static_cast<double>(bin + 1);
  const double low = std::exp2(static_cast<double>(bin) - 1);
  // Above 32,768 there is no upper end; one more doubling is a guess. Few rows are there: their
  // number hardly matters.
  const double high = 2 * low;
  constexpr size_t kSmallBins = 6;  // up to 32 uses, one by one
  if (bin >= kSmallBins) return std::log(high / low) / (1 / low - 1 / high);
  double lookups = 0, rows = 0;
  for (double uses = low + 1; uses <= high; ++uses) {
    lookups += 1 / uses;
    rows += 1 / (uses * uses);
  }
  return lookups / rows;
}

void append_counts(std::vector<int64_t>& lists, const ReuseCounts& counts) {
  const size_t end = lists.size() + kMostReuseCounts;
  lists.insert(lists.end(), counts.begin(), counts.end());
  lists.resize(end, counts.empty() ? kNoReuseCounts : 0);
}

TableAccess TableAccess::part_of_rows(double share) const {
  TableAccess part = *this;
  part.lookups *= share;
  part.recorded *= share;
  for (RowClass& c : part.classes) c.rows *= share;
  return part;
}

TableAccess TableAccess::part_of_batch(double share) const {
  TableAccess part = *this;
  part.lookups *= share;
  return part;
}

TableAccess uniform_access(double rows, double lookups) {
  return {.lookups = lookups,
          .recorded = lookups,
          .classes = {{.rows = rows, .uses = rows > 0 ? lookups / rows : 0, .random = true}}};
}

TableAccess histogram_access(const ReuseShares& shares, double rows, double lookups,
                             double recorded) {
  TableAccess access{.lookups = lookups, .recorded = recorded, .classes = {}};
  double distinct = 0;
  for (size_t bin = 0; bin < kReuseBins; ++bin) {
    const double of_bin = shares[bin] * recorded;
    if (of_bin <= 0) continue;
    const double uses = std::max(1.0, std::min(mean_uses(bin), of_bin));
    access.classes.push_back({.rows = of_bin / uses, .uses = uses});
    distinct += of_bin / uses;
  }
  if (distinct > rows && rows > 0) {
    for (RowClass& c : access.classes) {
      c.uses *= distinct / rows;
      c.rows *= rows / distinct;
    }
  }
  return access;
}

std::string contradiction(const ReuseCounts& counts, int64_t rows, int64_t lookups) {
  if (counts.size() > kMostReuseCounts)
    return fmt::format("expected at most {} numbers, found {}", kMostReuseCounts, counts.size());
  double counted_rows = 0, counted_lookups = 0;
  for (size_t i = 0; i < counts.size(); ++i) {
    if (counts[i] < 0) return fmt::format("expected numbers of rows, found {}", counts[i]);
    counted_rows += static_cast<double>(counts[i]);
    counted_lookups += std::ldexp(static_cast<double>(counts[i]), static_cast<int>(i));
  }
  if (counted_rows > static_cast<double>(rows))
    return fmt::format("it counts {:.0f} rows, the table has {}", counted_rows, rows);
  if (counted_lookups > static_cast<double>(lookups))
    return fmt::format("it counts {:.0f} lookups, the batch has {}", counted_lookups, lookups);
  return "";
}

TableAccess counted_access(const ReuseCounts& counts, double rows, double lookups,
                           double recorded) {
  TableAccess access{.lookups = lookups, .recorded = recorded, .classes = {}};
  double counted_rows = 0, counted_lookups = 0;
  for (size_t i = 0; i < counts.size(); ++i) {
    if (counts[i] <= 0) continue;
    const double uses = std::exp2(static_cast<double>(i));
    access.classes.push_back({.rows = static_cast<double>(counts[i]), .uses = uses});
    counted_rows += access.classes.back().rows;
    counted_lookups += access.classes.back().rows * uses;
  }
  const double others = recorded - counted_lookups, left = rows - counted_rows;
  if (others <= 0) return access;
  if (left >= 1) {
    const double used = std::min(others, left);
    access.classes.push_back({.rows = used, .uses = others / used});
  } else {  // all rows are counted: each is used more often
    for (RowClass& c : access.classes) c.uses *= recorded / counted_lookups;
  }
  return access;
}

ReuseShares zipf_shares(double exponent, double rows, double lookups) {
  // Rows next to each other in rank are alike: groups of 2 %.
  struct Group {
    double rows, weight;
  };
  std::vector<Group> groups;
  double sum = 0;
  for (double rank = 1; rank <= rows;) {
    const double count = std::min(std::max(1.0, std::floor(0.02 * rank)), rows - rank + 1);
    const double weight = std::pow(rank + (count - 1) / 2, -exponent);
    groups.push_back({count, weight});
    sum += count * weight;
    rank += count;
  }
  const auto bin_of = [](double uses) {
    return uses <= 1 ? size_t{0}
                     : std::min(kReuseBins - 1, static_cast<size_t>(std::ceil(std::log2(uses))));
  };
  ReuseShares shares{};
  for (const Group& group : groups) {
    const double share = group.rows * group.weight / sum;
    const double mean = lookups * group.weight / sum;
    // A lookup's row is used k times in all with the probability of k - 1 others. Where there are
    // many, all rows of a group have nearly the mean.
    constexpr double kMany = 40;
    if (mean >= kMany) {
      shares[bin_of(mean + 1)] += share;
      continue;
    }
    double probability = std::exp(-mean);
    for (double others = 0; others < 4 * kMany; ++others) {
      shares[bin_of(others + 1)] += share * probability;
      probability *= mean / (others + 1);
    }
  }
  return shares;
}

double distinct_rows(const TableAccess& access) {
  const Window window(access);
  return distinct_in(access, window, window.share);
}

double hit_share(const TableAccess& access, const CacheUse& use) {
  if (access.lookups <= 0 || access.recorded <= 0) return 0;
  const Window window(access);
  const double streamed = access.recorded * window.growth * use.streamed_bytes;
  const auto bytes_in = [&](double s) {
    return use.row_bytes * distinct_in(access, window, s) + streamed * s;
  };
  double reach = window.share;
  if (bytes_in(reach) > use.cache_bytes) {
    double low = 0, high = reach;
    constexpr int kSteps = 40;  // halvings: far below any error of the model
    for (int i = 0; i < kSteps; ++i) {
      const double middle = (low + high) / 2;
      (bytes_in(middle) > use.cache_bytes ? high : low) = middle;
    }
    reach = low;
  }
  double misses = 0, lookups = 0;
  for (const RowClass& given : access.classes) {
    const RowClass c = window.of(given);
    // Lookups early in the batch have a shorter past than the cache reaches.
    const double missed = unused_integral(c, reach) + (window.share - reach) * unused(c, reach);
    misses += c.rows * c.uses * missed;
    lookups += c.rows * c.uses * window.share;
  }
  return lookups > 0 ? std::clamp(1 - misses / lookups, 0.0, 1.0) : 0;
}

}  // namespace tilecast
