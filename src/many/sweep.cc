// Many forecasts: all points of a spec (sweep_spec.h) on all cores. Each result is a line of the
// output, which begins with the number of its point: a run that was interrupted continues with
// those that are missing.

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <mutex>
#include <set>
#include <utility>

#include "base/text.h"
#include "base/threads.h"
#include "many/job_table.h"
#include "many/resumable_lines.h"
#include "many/row_groups.h"
#include "many/sweep_front.h"
#include "many/sweep_manifest.h"
#include "many/sweep_rows.h"
#include "many/sweep_spec.h"
#include "scenario/internal.h"
#include "tilecast/error.h"

namespace tilecast {
namespace {

/// Counts what is done, from any thread.
class SweepProgress {
 public:
  SweepProgress(size_t total, const ShowProgress& show)
      : progress_{.done = 0, .total = total, .unit = "combinations", .note = ""}, show_(show) {}

  void add(size_t count) {
    if (!show_ || count == 0) return;
    const std::lock_guard lock(mutex_);
    progress_.done += count;
    show_(progress_);
  }

 private:
  Progress progress_;
  const ShowProgress& show_;
  std::mutex mutex_;
};

/// Runs the points that the file does not have.
class SweepRun {
 public:
  SweepRun(const SweepSpec& spec, const SweepRows& rows, ResumableLines& file,
           const SweepOptions& options)
      : spec_(spec),
        rows_(rows),
        file_(file),
        many_{.threads = options.threads, .poll = nullptr},
        jobs_(forecaster_, spec.job_columns()) {}

  /// Returns how many points the conditions refuse.
  size_t run(const ShowProgress& show) {
    jobs_.load(many_);
    SweepProgress progress(spec_.size() - file_.rows(), show);
    // Enough rows to share work, few enough to keep in memory.
    constexpr size_t kPart = 1 << 17;
    size_t rejected = 0;
    std::vector<size_t> points;
    for (size_t first = 0; first < spec_.size(); first += kPart) {
      points.clear();
      size_t refused = 0;
      for (size_t place = first; place < std::min(first + kPart, spec_.size()); ++place) {
        go_on("making the points of a sweep");
        const size_t index = spec_.index_at(place);
        if (file_.has(index)) continue;
        if (spec_.accepts(index))
          points.push_back(index);
        else
          ++refused;
      }
      rejected += refused;
      progress.add(refused);
      run_points(points, progress);
    }
    return rejected;
  }

 private:
  void run_points(const std::vector<size_t>& points, SweepProgress& progress) {
    const std::vector<OptionColumn> columns = spec_.option_columns(points);
    const DistinctRows distinct = find_distinct(columns, points.size());
    std::vector<std::vector<size_t>> alike(distinct.first.size());
    for (size_t row = 0; row < points.size(); ++row)
      alike[distinct.kind[row]].push_back(points[row]);
    const std::vector<JobGroup> groups = group_rows(columns, distinct);
    // Where the disk is full, the points that are left are not computed.
    run_all(groups.size(), many_.threads, [&](size_t g) {
      BatchPasses passes(forecaster_.impl().passes, groups[g].batches);
      for (const size_t kind : groups[g].kinds) {
        Budget::here().check("running a sweep");
        const std::string results =
            rows_.results(jobs_.run(alike[kind].front(), {.passes = &passes, .layers = &layers_}));
        for (const size_t index : alike[kind]) file_.add(index, results);
        progress.add(alike[kind].size());
      }
    });
  }

  const SweepSpec& spec_;
  const SweepRows& rows_;
  ResumableLines& file_;
  ManyOptions many_;
  Forecaster forecaster_;
  JobTable jobs_;
  SharedLayers layers_;
};

/// Reads the lines of a finished sweep, one at a time: there may be millions.
class Summary {
 public:
  Summary(const SweepSpec& spec, const SweepRows& rows, const SweepOptions& options)
      : spec_(spec), rows_(rows), options_(options), front_(make_front()) {}

  void take(std::string_view line, SweepResult& result) {
    const std::vector<std::string> cells = cells_of(line);
    ++result.combinations;
    if (!cells.back().empty() && result.failed++ == 0)
      first_error_ = fmt::format("combination {}: {}", cells.front(), printable(cells.back()));
    // The default front is that of designs of accelerators, which have no memory to fit into.
    if (options_.pareto.empty() || cells[fits_] != "0") front_.take(cells);
  }

  /// Adds the front, and the points that a page shows.
  void add_points(SweepResult& result, const ResumableLines& file) {
    result.front = front_.points();
    for (const FrontField& field : front_fields(options_.pareto, spec_))
      result.pareto.push_back(field.text());
    std::map<int64_t, std::string> lines;
    for (const int64_t index : result.front) lines.emplace(index, "");
    // Every so many points beside the front.
    constexpr size_t kMostShown = 2000;
    const size_t apart = spec_.size() / kMostShown + 1;
    std::map<int64_t, std::vector<std::string>> shown;
    file.each_line([&](std::string_view line) {
      const auto index = static_cast<int64_t>(file.number_of(line).value_or(0));
      const auto found = lines.find(index);
      if (found != lines.end()) found->second = line;
      if (options_.columns && (found != lines.end() || static_cast<size_t>(index) % apart == 0))
        shown.emplace(index, cells_of(line));
    });
    result.front_lines = file.header();
    for (const int64_t index : result.front) result.front_lines += lines.at(index) + "\n";
    add_columns(result, shown);
  }

  void add_failures(SweepResult& result) const {
    if (result.failed == 0) return;
    result.shortfall = fmt::format(
        "{} of {} combinations failed, see 'error' in {}; the next run tries them "
        "again. The first: {}",
        result.failed, result.combinations, printable(result.output), first_error_);
  }

 private:
  std::vector<std::string> cells_of(std::string_view line) const {
    std::vector<std::string> cells = rows_.cells(std::string(line));
    if (cells.size() != rows_.header().size())
      throw Error(ErrorKind::kIo,
                  fmt::format("{}: was changed while the sweep ran", printable(options_.output)));
    return cells;
  }

  size_t column_of(std::string_view name) const {
    // Results stand behind the options, which may have their names.
    const auto& header = rows_.header();
    return static_cast<size_t>(std::find(header.rbegin(), header.rend(), name).base() -
                               header.begin()) -
           1;
  }

  /// Designs are compared with those of the same model and options; with fields that the user
  /// names, options are part of the choice.
  SweepFront make_front() const {
    std::vector<size_t> groups;
    for (size_t c = 0; c < spec_.columns().size(); ++c) {
      const JobColumn::Kind kind = spec_.columns()[c].kind;
      if (kind == JobColumn::Kind::kModel ||
          (options_.pareto.empty() && kind == JobColumn::Kind::kOption))
        groups.push_back(1 + c);
    }
    std::vector<FrontField> fields = front_fields(options_.pareto, spec_);
    if (fields.empty())
      for (const char* name : {"cycles", "pe_count", "on_chip_bytes"})
        fields.push_back({.column = column_of(name), .name = name, .more_is_better = false});
    return {std::move(fields), std::move(groups)};
  }

  /// The front comes first: pages leave out the last rows where there is no room.
  void add_columns(SweepResult& result,
                   const std::map<int64_t, std::vector<std::string>>& shown) const {
    if (!options_.columns) return;
    std::vector<int64_t> order = result.front;
    const std::set<int64_t> front(order.begin(), order.end());
    for (const auto& [index, cells] : shown)
      if (!front.contains(index)) order.push_back(index);
    const size_t options = spec_.columns().size();
    for (size_t c = 0; c < rows_.header().size(); ++c) {
      SweepResultColumn column{.name = rows_.header()[c], .unit = "", .values = {}};
      if (c > 0 && c <= options) column.unit = spec_.columns()[c - 1].unit;
      if (c > options) column.unit = sweep_fields()[c - 1 - options].unit;
      for (const int64_t index : order) column.values.push_back(shown.at(index)[c]);
      const bool is_empty = std::all_of(column.values.begin(), column.values.end(),
                                        [](const std::string& text) { return text.empty(); });
      if (!is_empty) result.columns.push_back(std::move(column));
    }
  }

  const SweepSpec& spec_;
  const SweepRows& rows_;
  const SweepOptions& options_;
  size_t fits_ = column_of("fits");
  SweepFront front_;
  std::string first_error_;
};

}  // namespace

SweepResult run_sweep(const std::string& spec_file, const SweepOptions& options,
                      const ShowProgress& show) {
  check_sweep_output(options.output);
  const std::unique_ptr<const SweepSpec> spec = read_sweep_spec(spec_file);
  const SweepRows rows(options.output, *spec);
  Summary summary(*spec, rows, options);
  const SweepManifest manifest(options.output, *spec);
  ResumableLines::Format format = rows.format();
  format.check = [&](bool has_rows) { manifest.check(has_rows); };
  ResumableLines file(options.output, std::move(format));
  SweepResult result;
  result.output = options.output;
  result.rejected = SweepRun(*spec, rows, file, options).run(show);
  file.finish();
  file.each_line([&](std::string_view line) { summary.take(line, result); });
  summary.add_points(result, file);
  summary.add_failures(result);
  if (result.combinations == 0)
    result.shortfall = fmt::format("no point is left: the conditions of {} refuse all {}",
                                   printable(spec_file), spec->size());
  return result;
}

}  // namespace tilecast
