// Many forecasts: all combinations of the lists of a file,
//
// {"model": ["resnet-50"], "gpu": ["gemmini"], "batch": [1, 4],
//  "parameters": {"DIM": [8, 16, 32], "SCRATCHPAD": [131072, 262144]}}
//
// on all cores. Each result is a line of the output, which begins with the number of its
// combination: a run that was interrupted continues with those that are missing.

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <mutex>
#include <optional>
#include <tuple>

#include "base/csv.h"
#include "base/file.h"
#include "base/number.h"
#include "base/text.h"
#include "base/threads.h"
#include "many/job_table.h"
#include "many/resumable_csv.h"
#include "many/sweep_lists.h"
#include "many/totals.h"
#include "tilecast/error.h"

namespace tilecast {
namespace {

/// What a line has beside the values of its combination.
constexpr const char* kResultColumns[] = {
    "cycles",   "latency_s",     "latency_low_s", "latency_high_s", "ttft_s",
    "tpot_s",   "tokens_per_s",  "peak_bytes",    "fits",           "macs",
    "pe_count", "on_chip_bytes", "energy_j",      "power_w",        "energy_per_token_j",
    "cost",     "converged",     "error"};

std::string header_of(const SweepLists& lists) {
  std::string line = "index";
  for (const SweepAxis& axis : lists.axes()) line += "," + csv_cell(axis.name);
  for (const char* column : kResultColumns) line += std::string(",") + column;
  return line + "\n";
}

template <typename T>
std::string cell(const std::optional<T>& value) {
  return value ? fmt::format("{}", *value) : "";
}
std::string cell(const std::optional<bool>& value) { return value ? *value ? "1" : "0" : ""; }

/// Numbers that only designs of accelerators have.
struct DesignCells {
  std::string cycles, pe_count, on_chip_bytes, energy_j, converged = "1";
};
DesignCells design_of(const AcceleratorForecast& f) {
  const bool converged = std::all_of(f.layers.begin(), f.layers.end(),
                                     [](const AcceleratorLayer& row) { return row.converged; });
  return {fmt::format("{:.0f}", f.cycles.value), fmt::format("{}", f.pe_count),
          fmt::format("{:.0f}", f.on_chip_bytes), f.has_energy ? fmt::format("{}", f.energy_j) : "",
          converged ? "1" : "0"};
}
DesignCells design_of(const Forecast&) { return {}; }
DesignCells design_of(const GenerationForecast&) { return {}; }

/// A message as a cell: each result is one line.
std::string one_line(std::string message) {
  std::replace(message.begin(), message.end(), '\n', ' ');
  return printable(message);
}

/// The cells of kResultColumns.
std::string cells_of(const JobResult& job) {
  if (!job.result)
    return std::string(std::size(kResultColumns) - 1, ',') + csv_cell(one_line(job.error));
  const DesignCells d =
      std::visit([](const auto& forecast) { return design_of(forecast); }, *job.result);
  const ForecastTotals t = totals_of(*job.result);
  const std::string macs = t.flops ? fmt::format("{}", *t.flops / 2) : "";
  const auto end = [&](double Interval::* bound) {
    return t.latency_s ? fmt::format("{}", (*t.latency_s).*bound) : "";
  };
  return join(
      {d.cycles, end(&Interval::value), end(&Interval::low), end(&Interval::high), cell(t.ttft_s),
       cell(t.tpot_s), cell(t.tokens_per_s), cell(t.peak_bytes), cell(t.fits), macs, d.pe_count,
       d.on_chip_bytes, t.energy_j ? cell(t.energy_j) : d.energy_j, cell(t.power_w),
       cell(t.energy_per_token_j), cell(t.cost), d.converged, ""},
      ",");
}

struct Point {
  double cycles, pe_count, bytes;
  int64_t index;
  bool beats(const Point& other) const {
    return cycles <= other.cycles && pe_count <= other.pe_count && bytes <= other.bytes &&
           (cycles < other.cycles || pe_count < other.pe_count || bytes < other.bytes);
  }
};

/// Leaves the points that no other one beats, the fastest first.
void keep_front(std::vector<Point>& points) {
  // Sorted so, a point is only beaten by earlier ones, then also by one that nothing beats.
  std::sort(points.begin(), points.end(), [](const Point& a, const Point& b) {
    return std::tie(a.cycles, a.pe_count, a.bytes, a.index) <
           std::tie(b.cycles, b.pe_count, b.bytes, b.index);
  });
  std::vector<Point> front;
  for (const Point& point : points) {
    if (std::none_of(front.begin(), front.end(),
                     [&](const Point& other) { return other.beats(point); }))
      front.push_back(point);
  }
  std::sort(front.begin(), front.end(), [](const Point& a, const Point& b) {
    return std::tie(a.cycles, a.index) < std::tie(b.cycles, b.index);
  });
  points = std::move(front);
}

/// Reads the lines of a finished sweep, one at a time: there may be millions.
class Summary {
 public:
  Summary(const std::string& header, const SweepLists& lists)
      : table_{.where = "", .comments = {}, .header = csv_cells(header), .rows = {}, .lines = {}} {
    groups_ = {table_.require_column("model")};
    for (const SweepAxis& axis : lists.axes())
      if (axis.kind == JobColumn::Kind::kOption)
        groups_.push_back(table_.require_column(axis.name));
  }

  void take(std::string_view line, SweepResult& result) {
    std::vector<std::string> cells = csv_cells(line);
    if (cells.size() != table_.header.size())
      throw Error(ErrorKind::kIo,
                  fmt::format("{}: was changed while the sweep ran", printable(result.output)));
    ++result.combinations;
    if (!cells.back().empty() && result.failed++ == 0)
      first_error_ = fmt::format("combination {}: {}", cells.front(), printable(cells.back()));
    table_.rows = {std::move(cells)};
    table_.lines = {result.combinations + 1};
    if (table_.rows[0][cycles_].empty()) return;
    std::vector<std::string> group;
    for (const size_t column : groups_) group.push_back(table_.rows[0][column]);
    alike_[group].push_back({table_.number(0, cycles_), table_.number(0, pe_),
                             table_.number(0, bytes_), table_.integer(0, 0)});
  }

  /// Adds the designs that no other one beats in cycles, MACs and bytes of memory, for each model
  /// and each combination of options.
  void add_front(SweepResult& result, const ResumableCsv& csv) {
    std::map<int64_t, std::string> lines;
    for (auto& [group, points] : alike_) {
      keep_front(points);
      for (const Point& point : points) {
        result.front.push_back(point.index);
        lines.emplace(point.index, "");
      }
    }
    csv.each_line([&](std::string_view line) {
      const auto index = parse_number<int64_t>(line.substr(0, line.find(',')));
      if (const auto found = lines.find(index.value_or(-1)); found != lines.end())
        found->second = line;
    });
    result.front_lines = join(table_.header, ",") + "\n";
    for (const int64_t index : result.front) result.front_lines += lines.at(index) + "\n";
  }

  void add_failures(SweepResult& result) const {
    if (result.failed == 0) return;
    result.shortfall = fmt::format(
        "{} of {} combinations failed, see 'error' in {}; the next run tries them "
        "again. The first: {}",
        result.failed, result.combinations, printable(result.output), first_error_);
  }

 private:
  CsvTable table_;  ///< of one row
  size_t cycles_ = table_.require_column("cycles"), pe_ = table_.require_column("pe_count"),
         bytes_ = table_.require_column("on_chip_bytes");
  std::vector<size_t> groups_;
  std::map<std::vector<std::string>, std::vector<Point>> alike_;
  std::string first_error_;
};

}  // namespace

SweepResult run_sweep(const std::string& spec_file, const std::string& output, int64_t threads,
                      const ShowProgress& show) {
  const Json json = parse_json(read_file(spec_file), printable(spec_file));
  const SweepLists lists(JsonObject(json, printable(spec_file)));
  const std::string header = header_of(lists);
  ResumableCsv csv(output, {.header = header, .count = lists.size(), .cells = [&](size_t index) {
                              return lists.cells(index);
                            }});
  const Forecaster forecaster;
  const ManyOptions options{.threads = static_cast<int>(threads), .poll = nullptr};
  JobTable jobs(forecaster, lists.columns());
  jobs.load(options);
  SharedLayers layers;
  Progress progress{.total = lists.size() - csv.rows(), .unit = "combinations", .note = ""};
  std::mutex mutex;
  // Where the disk is full, the combinations that are left are not computed.
  run_all(lists.size(), options.threads, [&](size_t place) {
    const size_t index = lists.index_at(place);
    if (csv.has(index)) return;
    csv.add(index, cells_of(jobs.run(index, {.layers = &layers})));
    if (!show) return;
    const std::lock_guard lock(mutex);
    ++progress.done;
    show(progress);
  });
  csv.finish();
  SweepResult result{.output = output};
  Summary summary(header, lists);
  csv.each_line([&](std::string_view line) { summary.take(line, result); });
  summary.add_front(result, csv);
  summary.add_failures(result);
  return result;
}

}  // namespace tilecast
