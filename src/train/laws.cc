#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <mutex>
#include <numeric>
#include <optional>
#include <set>

#include "base/file.h"
#include "base/json.h"
#include "base/quantile.h"
#include "base/threads.h"
#include "laws/constant_table.h"
#include "predict/bound.h"
#include "tilecast/error.h"
#include "tilecast/learn.h"
#include "train/law_fit.h"

namespace tilecast {
namespace {

/// One fit: of all devices, without one, or of a draw of devices.
struct LawFitJob {
  const LawFitDef* fit;
  std::optional<size_t> left_out;
  std::optional<uint64_t> draw;  ///< its number
  FitRows rows;
  LawConstants laws;
};

/// Draws of devices that tell how far a constant is known: the standard error of twenty values has
/// an error of a sixth.
constexpr uint64_t kDraws = 20;
/// Rows of a cell in a draw. What differs between draws are the devices.
constexpr size_t kMostRowsOfDraw = 60;

std::vector<size_t> devices_of(const TrainingData& data, const std::vector<size_t>& rows) {
  std::set<size_t> devices;
  for (const size_t r : rows) devices.insert(data.rows[r].device);
  return {devices.begin(), devices.end()};
}

std::vector<LawFitJob> list_law_fits(const TrainingData& data) {
  std::vector<LawFitJob> jobs;
  for (const LawFitDef& fit : law_fits()) {
    FitRows all = rows_to_fit(data, fit, {});
    if (all.rows.empty()) continue;
    const std::vector<size_t> devices = devices_of(data, all.rows);
    jobs.push_back(
        {.fit = &fit, .left_out = {}, .draw = {}, .rows = std::move(all), .laws = data.laws});
    if (devices.size() < 2) continue;
    for (const size_t device : devices) {
      std::vector<double> times(data.devices.size(), 1);
      times[device] = 0;
      jobs.push_back({.fit = &fit,
                      .left_out = device,
                      .draw = {},
                      .rows = rows_to_fit(data, fit, {.times = times, .rows = {}}),
                      .laws = data.laws});
    }
  }
  return jobs;
}

/// Draws of devices for each fit of all; they start from what that found.
std::vector<LawFitJob> list_draws(const TrainingData& data, const std::vector<LawFitJob>& fitted) {
  std::vector<LawFitJob> jobs;
  for (const LawFitJob& job : fitted) {
    const std::vector<size_t> devices = devices_of(data, job.rows.rows);
    if (job.left_out || devices.size() < 2) continue;
    for (uint64_t draw = 1; draw <= kDraws; ++draw) {
      const FitRows asked{.times = drawn_devices(devices, data.devices.size(), draw),
                          .most_of_cell = kMostRowsOfDraw,
                          .rows = {}};
      jobs.push_back({.fit = job.fit,
                      .left_out = {},
                      .draw = draw,
                      .rows = rows_to_fit(data, *job.fit, asked),
                      .laws = job.laws});
    }
  }
  return jobs;
}

void run_fits(const TrainingData& data, std::vector<LawFitJob>& jobs, int threads,
              const ShowProgress& show) {
  std::mutex mutex;
  Progress progress{.total = jobs.size(), .unit = "fits", .note = ""};
  run_all(jobs.size(), threads, [&](size_t j) {
    jobs[j].laws = fitted_laws(data, *jobs[j].fit, jobs[j].rows, jobs[j].laws);
    const std::lock_guard lock(mutex);
    ++progress.done;
    progress.note = std::string(jobs[j].fit->name) + (jobs[j].draw ? ", draws of GPUs" : "");
    if (show) show(progress);
  });
}

using LawErrorKey = std::array<std::string, 4>;
struct LawErrorSums {
  std::vector<double> errors;
  double roofline = 0;
};

LawErrorKey error_key(const TrainingData& data, const TrainingRow& row) {
  return {data.devices[row.device].id, data.groups[row.group].op,
          std::string(precision_name(row.kernel)),
          std::string(software_name(row.conditions.software))};
}

/// Errors of the law alone on rows of a fit; `device`: of this one alone.
void add_law_errors(const TrainingData& data, const LawFitJob& job, std::optional<size_t> device,
                    std::map<LawErrorKey, LawErrorSums>& sums) {
  for (const TrainingRow& row : data.rows) {
    if ((device && row.device != *device) || !is_of(data, *job.fit, row)) continue;
    LawErrorSums& of = sums[error_key(data, row)];
    const auto percent = [&](double seconds) { return 100 * std::abs(seconds / row.seconds - 1); };
    of.errors.push_back(percent(law_s_with(data, row, job.laws)));
    of.roofline += percent(roofline_bound(row.kernel, data.running(row)).seconds());
  }
}

std::vector<TrainError> law_error_rows(const std::map<LawErrorKey, LawErrorSums>& sums) {
  std::vector<TrainError> rows;
  for (const auto& [key, of] : sums) {
    const auto count = static_cast<double>(of.errors.size());
    double sum = 0;
    for (const double error : of.errors) sum += error;
    rows.push_back({.gpu = key[0],
                    .op = key[1],
                    .dtype = key[2],
                    .software = key[3],
                    .count = of.errors.size(),
                    .mape_percent = sum / count,
                    .median_percent = quantile(of.errors, 0.5),
                    .roofline_mape_percent = of.roofline / count});
  }
  return rows;
}

double constant_in(LawConstants laws, std::string_view name) {
  ConstantTable table;
  laws.describe(table);
  return table.number(name);
}

/// The standard error of a constant's logarithm over draws of devices; nullopt where fewer than two
/// devices tell it. Draws without any of these do not count.
std::optional<double> log_error_of(std::string_view name, const LawFitJob& fitted,
                                   const std::vector<size_t>& telling,
                                   const std::vector<LawFitJob>& draws) {
  if (telling.size() < 2) return std::nullopt;
  std::vector<double> logs;
  for (const LawFitJob& draw : draws) {
    const bool told = draw.fit == fitted.fit &&
                      std::any_of(telling.begin(), telling.end(),
                                  [&](const size_t device) { return draw.rows.times[device] > 0; });
    if (told) logs.push_back(std::log(constant_in(draw.laws, name)));
  }
  if (logs.size() < 2) return std::nullopt;
  const auto count = static_cast<double>(logs.size());
  const double mean = std::accumulate(logs.begin(), logs.end(), 0.0) / count;
  double squares = 0;
  for (const double log : logs) squares += (log - mean) * (log - mean);
  // Draws of n devices differ by (n - 1) / n of the variance between sets of n devices.
  const auto devices = static_cast<double>(telling.size());
  return std::sqrt(squares / (count - 1) * devices / (devices - 1));
}

Json rounded(std::optional<double> log_error) {
  return log_error ? Json(std::round(*log_error * 1000) / 1000) : Json();
}

std::string known_to(std::optional<double> log_error, size_t devices) {
  if (log_error)
    return fmt::format("; known to a factor of {:.2f} from {} GPUs", std::exp(*log_error), devices);
  return devices == 0 ? "; no GPU tells it" : "; one GPU tells it";
}

/// Each fitted constant: before, fitted, how far it is known, and fitted without each GPU in turn.
Json fitted_constants(const TrainingData& data, const std::vector<LawFitJob>& jobs,
                      const std::vector<LawFitJob>& draws, std::vector<std::string>& report) {
  Json list = Json::array();
  for (const LawFitJob& job : jobs) {
    if (job.left_out) continue;
    for (const std::string_view name : job.fit->constants) {
      const double before = constant_in(data.laws, name), value = constant_in(job.laws, name);
      const std::vector<size_t> telling = devices_that_tell(data, job.rows.rows, job.laws, name);
      const std::optional<double> log_error = log_error_of(name, job, telling, draws);
      Json without = Json::object();
      double low = value, high = value;
      for (const LawFitJob& other : jobs) {
        if (other.fit != job.fit || !other.left_out) continue;
        const double found = constant_in(other.laws, name);
        without[data.devices[*other.left_out].id] = found;
        low = std::min(low, found);
        high = std::max(high, found);
      }
      const std::string others =
          without.empty() ? "" : fmt::format("; without one GPU {:.3g} to {:.3g}", low, high);
      report.push_back(fmt::format("{}: {:.3g}, before {:.3g}{}{}", name, value, before,
                                   known_to(log_error, telling.size()), others));
      list.push_back({{"name", name},
                      {"value", value},
                      {"before", before},
                      {"log_error", rounded(log_error)},
                      {"devices", telling.size()},
                      {"without", without}});
    }
  }
  return list;
}

/// By GPU, operator, precision and software: how far the law's times are known, which is less than
/// its constants where several change together. The standard error of the logarithm of a row's
/// time over the draws, median over the rows.
Json law_spreads(const TrainingData& data, const std::vector<LawFitJob>& jobs,
                 const std::vector<LawFitJob>& draws) {
  std::map<LawErrorKey, std::vector<double>> spreads;
  for (const LawFitJob& job : jobs) {
    if (job.left_out) continue;
    const auto devices = static_cast<double>(devices_of(data, job.rows.rows).size());
    if (devices < 2) continue;
    for (const size_t r : job.rows.rows) {
      const TrainingRow& row = data.rows[r];
      double sum = 0, squares = 0, count = 0;
      for (const LawFitJob& draw : draws) {
        if (draw.fit != job.fit) continue;
        const double log = std::log(law_s_with(data, row, draw.laws) / row.seconds);
        sum += log;
        squares += log * log;
        count += 1;
      }
      const double variance = std::max(0.0, squares - sum * sum / count) / (count - 1);
      spreads[error_key(data, row)].push_back(std::sqrt(variance * devices / (devices - 1)));
    }
  }
  Json rows = Json::array();
  for (const auto& [key, of] : spreads)
    rows.push_back({{"gpu", key[0]},
                    {"op", key[1]},
                    {"dtype", key[2]},
                    {"software", key[3]},
                    {"log_error", rounded(quantile(of, 0.5))}});
  return rows;
}

}  // namespace

TrainResult train_laws(const TrainOptions& options, const ShowProgress& show) {
  std::vector<MeasurementSet> sets;
  for (const std::filesystem::path& path : options.data) sets.push_back(read_measurements(path));
  const TrainingData data =
      prepare_training_data(sets, options.exclude_gpus, nullptr, load_laws(options.laws));
  std::vector<LawFitJob> jobs = list_law_fits(data);
  if (jobs.empty())
    throw Error(ErrorKind::kInput, "the data hold no rows of a law that is fitted by a command");
  run_fits(data, jobs, std::max(1, options.threads), show);
  std::vector<LawFitJob> draws = list_draws(data, jobs);
  run_fits(data, draws, std::max(1, options.threads), show);
  TrainResult result{.report = data.report};
  std::map<LawErrorKey, LawErrorSums> seen, left_out;
  for (const LawFitJob& job : jobs)
    add_law_errors(data, job, job.left_out, job.left_out ? left_out : seen);
  result.seen = law_error_rows(seen);
  result.left_out = law_error_rows(left_out);
  const Json constants = fitted_constants(data, jobs, draws, result.report);
  std::filesystem::create_directories(options.output);
  write_file(options.output / "laws.json", Json({{"command", options.command},
                                                 {"constants", constants},
                                                 {"spreads", law_spreads(data, jobs, draws)}})
                                                   .dump(1) +
                                               "\n");
  return result;
}

}  // namespace tilecast
