#include "measurements/slow_series.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <span>
#include <tuple>
#include <utility>

namespace tilecast {
namespace {

// Numbers of aiconfigurator's tables (research/accuracy/slow_series.py lists all series).
// TimedSeries of kernels that are merely slower end at 1.50 (vLLM's Marlin experts on B200), those
// of untuned kernels and hosts begin at 1.66.
constexpr double kSlower = 1.6;
constexpr size_t kFewestWitnessed = 20;
// Single times jitter by less than this, from this length on.
constexpr double kFall = 0.9, kNoJitter_ms = 0.03;
// Falls of those series: 0.7 % of the steps and more; of regular ones that are as slow: 0.1 % at
// most.
constexpr double kFallingShare = 0.005;

struct TimedRow {
  uint64_t shape;  ///< hash of GPU and sizes
  uint64_t sweep;  ///< the same without the size that is swept
  int64_t swept;
  double ms;
  size_t series;
};

struct TimedSeries {
  std::string gpu, software, precision, kernel;
  size_t group = 0;             ///< number of its software and precision
  std::optional<int64_t> bits;  ///< of its precision
  size_t witnessed = 0;         ///< rows with two witnesses
  double log_excess = 0;        ///< sum over these
  size_t steps = 0, falls = 0;

  double excess() const {
    return witnessed == 0 ? 0 : std::exp(log_excess / static_cast<double>(witnessed));
  }
  bool is_slow() const {
    return witnessed >= kFewestWitnessed && excess() > kSlower &&
           static_cast<double>(falls) > kFallingShare * static_cast<double>(steps);
  }
  bool is_witness_of(const TimedSeries& other) const {
    if (software != other.software) return precision == other.precision;
    return bits && other.bits && *bits > *other.bits;
  }
};

uint64_t mixed(uint64_t hash, std::string_view cell) {
  return (hash ^ std::hash<std::string_view>{}(cell)) * 1099511628211ull;
}

/// Reads the rows of a table and their series.
class Reader {
 public:
  Reader(const CsvTable& table, const SeriesColumns& columns,
         std::optional<int64_t> (*bits)(const std::string& dtype))
      : table_(table),
        bits_(bits),
        gpu_(table.require_column("gpu")),
        software_(table.require_column("software")),
        latency_(table.require_column("latency_ms")),
        swept_(table.require_column(columns.swept)),
        kernel_(table.column("kernel")) {
    for (const std::string_view name : columns.sizes) {
      if (const auto at = table.column(name)) sizes_.push_back(*at);
    }
    for (const std::string_view name : columns.dtypes) {
      if (const auto at = table.column(name)) dtypes_.push_back(*at);
    }
  }

  TimedRow read(size_t row) {
    const std::vector<std::string>& cells = table_.rows[row];
    uint64_t sweep = mixed(0, cells[gpu_]);
    for (const size_t at : sizes_) sweep = mixed(sweep, cells[at]);
    return {.shape = mixed(sweep, cells[swept_]),
            .sweep = sweep,
            .swept = table_.integer(row, swept_),
            .ms = table_.number(row, latency_),
            .series = series_of(cells)};
  }

  std::vector<TimedSeries> series;

 private:
  size_t series_of(const std::vector<std::string>& cells) {
    std::string key = cells[gpu_] + ',' + cells[software_] + ',';
    if (kernel_) key += cells[*kernel_];
    for (const size_t at : dtypes_) key.append(",").append(cells[at]);
    const auto [at, fresh] = index_.emplace(std::move(key), series.size());
    if (!fresh) return at->second;
    // "vllm 0.24.0": the version is ignored.
    TimedSeries found{.gpu = cells[gpu_],
                      .software = cells[software_].substr(0, cells[software_].find(' ')),
                      .precision = "",
                      .kernel = kernel_ ? cells[*kernel_] : "",
                      .bits = 0};
    for (const size_t dtype : dtypes_) {
      found.precision.append(found.precision.empty() ? "" : "/").append(cells[dtype]);
      const std::optional<int64_t> bits = bits_(cells[dtype]);
      found.bits = found.bits && bits ? std::optional(*found.bits + *bits) : std::nullopt;
    }
    found.group =
        groups_.emplace(std::pair(found.software, found.precision), groups_.size()).first->second;
    series.push_back(std::move(found));
    return at->second;
  }

  const CsvTable& table_;
  std::optional<int64_t> (*bits_)(const std::string& dtype);
  size_t gpu_, software_, latency_, swept_;
  std::optional<size_t> kernel_;
  std::vector<size_t> sizes_, dtypes_;
  std::map<std::string, size_t> index_;
  std::map<std::pair<std::string, std::string>, size_t> groups_;
};

/// Ranges of equal keys in rows that are sorted by them.
template <class Same, class Use>
void for_each_run(const std::vector<TimedRow>& rows, const Same& same, const Use& use) {
  for (size_t begin = 0, end = 0; begin < rows.size(); begin = end) {
    while (end < rows.size() && same(rows[begin], rows[end])) ++end;
    use(std::span(rows).subspan(begin, end - begin));
  }
}

/// How much longer each row takes than two of its witnesses.
void add_excess(std::vector<TimedRow>& rows, std::vector<TimedSeries>& series) {
  std::sort(rows.begin(), rows.end(),
            [](const TimedRow& a, const TimedRow& b) { return a.shape < b.shape; });
  const auto same = [](const TimedRow& a, const TimedRow& b) { return a.shape == b.shape; };
  for_each_run(rows, same, [&](std::span<const TimedRow> run) {
    for (const TimedRow& row : run) {
      TimedSeries& own = series[row.series];
      // Of one software and precision the fastest kernel counts.
      std::vector<std::pair<size_t, double>> fastest;
      for (const TimedRow& witness : run) {
        const TimedSeries& other = series[witness.series];
        if (other.group == own.group || !other.is_witness_of(own)) continue;
        const auto at = std::find_if(fastest.begin(), fastest.end(),
                                     [&](const auto& f) { return f.first == other.group; });
        if (at == fastest.end()) {
          fastest.emplace_back(other.group, witness.ms);
        } else {
          at->second = std::min(at->second, witness.ms);
        }
      }
      if (fastest.size() < 2) continue;
      std::nth_element(fastest.begin(), fastest.begin() + 1, fastest.end(),
                       [](const auto& a, const auto& b) { return a.second < b.second; });
      own.witnessed += 1;
      own.log_excess += std::log(row.ms / fastest[1].second);
    }
  });
}

/// How often times fall where a size grows.
void add_falls(std::vector<TimedRow>& rows, std::vector<TimedSeries>& series) {
  std::sort(rows.begin(), rows.end(), [](const TimedRow& a, const TimedRow& b) {
    return std::tie(a.series, a.sweep, a.swept) < std::tie(b.series, b.sweep, b.swept);
  });
  const auto same = [](const TimedRow& a, const TimedRow& b) {
    return a.series == b.series && a.sweep == b.sweep;
  };
  for_each_run(rows, same, [&](std::span<const TimedRow> run) {
    for (size_t i = 1; i < run.size(); ++i) {
      const TimedRow &before = run[i - 1], &row = run[i];
      if (before.ms < kNoJitter_ms || row.swept == before.swept) continue;
      TimedSeries& of = series[row.series];
      of.steps += 1;
      of.falls += row.ms < kFall * before.ms ? 1 : 0;
    }
  });
}

}  // namespace

SlowSeries::SlowSeries(const CsvTable& table, const SeriesColumns& columns,
                       std::optional<int64_t> (*bits)(const std::string& dtype)) {
  Reader reader(table, columns, bits);
  std::vector<TimedRow> rows;
  for (size_t row = 0; row < table.rows.size(); ++row) {
    rows.push_back(reader.read(row));
    series_of_.push_back(rows.back().series);
  }
  // Rows without a time have no logarithm.
  std::erase_if(rows, [](const TimedRow& row) { return !(row.ms > 0); });
  add_excess(rows, reader.series);
  add_falls(rows, reader.series);
  for (const TimedSeries& series : reader.series) {
    if (!series.is_slow()) {
      reason_.push_back(std::nullopt);
      continue;
    }
    reason_.push_back(
        fmt::format("{} of {} in {} on {} takes {:.1f} times as long as other software or wider "
                    "precisions, and "
                    "its times fall where sizes grow: not tuned, or the host's",
                    series.kernel.empty() ? "the kernel" : series.kernel, series.software,
                    series.precision, series.gpu, series.excess()));
  }
}

const std::string* SlowSeries::reason(size_t row) const {
  const std::optional<std::string>& of = reason_[series_of_[row]];
  return of ? &*of : nullptr;
}

}  // namespace tilecast
