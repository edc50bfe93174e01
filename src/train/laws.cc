#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <mutex>

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

/// One fit: of all devices, or without one.
struct LawFitJob {
  const LawFitDef* fit;
  std::optional<size_t> left_out;
  std::vector<size_t> rows;
  LawConstants laws;
};

std::vector<LawFitJob> list_law_fits(const TrainingData& data) {
  std::vector<LawFitJob> jobs;
  for (const LawFitDef& fit : law_fits()) {
    LawFitJob all{.fit = &fit, .left_out = {}, .rows = rows_to_fit(data, fit, {}), .laws = {}};
    if (all.rows.empty()) continue;
    std::vector<bool> has(data.devices.size(), false);
    for (const size_t r : all.rows) has[data.rows[r].device] = true;
    jobs.push_back(std::move(all));
    if (std::count(has.begin(), has.end(), true) < 2) continue;
    for (size_t device = 0; device < has.size(); ++device) {
      if (has[device])
        jobs.push_back(
            {.fit = &fit, .left_out = device, .rows = rows_to_fit(data, fit, device), .laws = {}});
    }
  }
  return jobs;
}

using LawErrorKey = std::array<std::string, 4>;
struct LawErrorSums {
  std::vector<double> errors;
  double roofline = 0;
};

/// Errors of the law alone on rows of a fit; `device`: of this one alone.
void add_law_errors(const TrainingData& data, const LawFitJob& job, std::optional<size_t> device,
                    std::map<LawErrorKey, LawErrorSums>& sums) {
  for (const TrainingRow& row : data.rows) {
    if (row.assumed || (device && row.device != *device) ||
        kernel_kind(row.kernel) != job.fit->kind ||
        !job.fit->covers(data.devices[row.device], row.kernel))
      continue;
    LawErrorSums& of = sums[{data.devices[row.device].id, data.groups[row.group].op,
                             std::string(precision_name(row.kernel)),
                             std::string(software_name(row.conditions.software))}];
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

/// Each fitted constant: before, fitted, and fitted without each GPU in turn.
Json fitted_constants(const TrainingData& data, const std::vector<LawFitJob>& jobs,
                      std::vector<std::string>& report) {
  Json list = Json::array();
  for (const LawFitJob& job : jobs) {
    if (job.left_out) continue;
    for (const std::string_view name : job.fit->constants) {
      const double before = constant_in(data.laws, name), value = constant_in(job.laws, name);
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
      report.push_back(fmt::format("{}: {:.3g}, before {:.3g}{}", name, value, before, others));
      list.push_back({{"name", name}, {"value", value}, {"before", before}, {"without", without}});
    }
  }
  return list;
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
  std::mutex mutex;
  Progress progress{.total = jobs.size(), .unit = "fits", .note = ""};
  run_all(jobs.size(), std::max(1, options.threads), [&](size_t j) {
    jobs[j].laws = fitted_laws(data, *jobs[j].fit, jobs[j].rows, data.laws);
    const std::lock_guard lock(mutex);
    ++progress.done;
    progress.note = std::string(jobs[j].fit->name);
    if (show) show(progress);
  });
  TrainResult result{.report = data.report};
  std::map<LawErrorKey, LawErrorSums> seen, left_out;
  for (const LawFitJob& job : jobs)
    add_law_errors(data, job, job.left_out, job.left_out ? left_out : seen);
  result.seen = law_error_rows(seen);
  result.left_out = law_error_rows(left_out);
  const Json constants = fitted_constants(data, jobs, result.report);
  std::filesystem::create_directories(options.output);
  write_file(options.output / "laws.json",
             Json({{"command", options.command}, {"constants", constants}}).dump(1) + "\n");
  return result;
}

}  // namespace tilecast
