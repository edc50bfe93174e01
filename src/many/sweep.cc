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

#include "base/csv.h"
#include "base/file.h"
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
    "pe_count", "on_chip_bytes", "energy_j",      "converged",      "error"};

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

/// The cells of kResultColumns.
std::string cells_of(const JobResult& job) {
  if (!job.result) return std::string(std::size(kResultColumns) - 1, ',') + csv_cell(job.error);
  const DesignCells d =
      std::visit([](const auto& forecast) { return design_of(forecast); }, *job.result);
  const ForecastTotals t = totals_of(*job.result);
  const std::string macs = t.flops ? fmt::format("{}", *t.flops / 2) : "";
  const auto end = [&](double Interval::* bound) {
    return t.latency_s ? fmt::format("{}", (*t.latency_s).*bound) : "";
  };
  return join({d.cycles, end(&Interval::value), end(&Interval::low), end(&Interval::high),
               cell(t.ttft_s), cell(t.tpot_s), cell(t.tokens_per_s), cell(t.peak_bytes),
               cell(t.fits), macs, d.pe_count, d.on_chip_bytes, d.energy_j, d.converged, ""},
              ",");
}

struct Point {
  double cycles, pe_count, bytes;
  int64_t index;
  std::string line;
  bool beats(const Point& other) const {
    return cycles <= other.cycles && pe_count <= other.pe_count && bytes <= other.bytes &&
           (cycles < other.cycles || pe_count < other.pe_count || bytes < other.bytes);
  }
};

/// Adds the designs that no other one beats in cycles, MACs and bytes of memory, for each model and
/// each combination of options.
void add_front(SweepResult& result, const CsvTable& table, const SweepLists& lists) {
  const size_t cycles = table.require_column("cycles"), pe = table.require_column("pe_count"),
               bytes = table.require_column("on_chip_bytes"), index = table.require_column("index");
  std::vector<size_t> groups = {table.require_column("model")};
  for (const SweepAxis& axis : lists.axes())
    if (axis.kind == JobColumn::Kind::kOption) groups.push_back(table.require_column(axis.name));
  std::map<std::vector<std::string>, std::vector<Point>> alike;
  for (size_t i = 0; i < table.rows.size(); ++i) {
    if (table.rows[i][cycles].empty()) continue;
    std::vector<std::string> group, cells;
    for (const size_t column : groups) group.push_back(table.rows[i][column]);
    for (const std::string& cell : table.rows[i]) cells.push_back(csv_cell(cell));
    alike[group].push_back({table.number(i, cycles), table.number(i, pe), table.number(i, bytes),
                            static_cast<int64_t>(table.number(i, index)), join(cells, ",")});
  }
  result.front_lines = join(table.header, ",") + "\n";
  for (auto& [group, points] : alike) {
    std::stable_sort(points.begin(), points.end(),
                     [](const Point& a, const Point& b) { return a.cycles < b.cycles; });
    for (const Point& point : points) {
      if (std::any_of(points.begin(), points.end(),
                      [&](const Point& other) { return other.beats(point); }))
        continue;
      result.front_lines += point.line + "\n";
      result.front.push_back(point.index);
    }
  }
}

void add_failures(SweepResult& result, const CsvTable& table) {
  const size_t error = table.require_column("error");
  size_t& failed = result.failed;
  std::string first;
  for (const std::vector<std::string>& row : table.rows)
    if (!row[error].empty() && failed++ == 0)
      first = fmt::format("combination {}: {}", row.front(), printable(row[error]));
  if (failed == 0) return;
  result.shortfall = fmt::format(
      "{} of {} combinations failed, see 'error' in {}; the next run tries them "
      "again. The first: {}",
      failed, table.rows.size(), printable(result.output), first);
}

}  // namespace

SweepResult run_sweep(const std::string& spec_file, const std::string& output, int64_t threads,
                      const ShowProgress& show) {
  const Json json = parse_json(read_file(spec_file), printable(spec_file));
  const SweepLists lists(JsonObject(json, printable(spec_file)));
  ResumableCsv csv(output, {.header = header_of(lists),
                            .count = lists.size(),
                            .cells = [&](size_t index) { return lists.cells(index); }});
  const Forecaster forecaster;
  const ManyOptions options{.threads = static_cast<int>(threads), .poll = nullptr};
  JobTable jobs(forecaster, lists.columns());
  jobs.load(options);
  SharedLayers layers;
  Progress progress{.total = lists.size() - csv.rows(), .unit = "combinations", .note = ""};
  std::mutex mutex;
  run_parallel(lists.size(), options.threads, options.poll, [&](size_t place) {
    const size_t index = lists.index_at(place);
    if (csv.has(index)) return;
    csv.add(index, cells_of(jobs.run(index, {.layers = &layers})));
    if (!show) return;
    const std::lock_guard lock(mutex);
    ++progress.done;
    show(progress);
  });
  const CsvTable table = parse_csv(csv.text(), output);
  SweepResult result{.output = output, .combinations = table.rows.size()};
  add_front(result, table, lists);
  add_failures(result, table);
  return result;
}

}  // namespace tilecast
