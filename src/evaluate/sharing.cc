// Forecast against measured speeds of jobs that share a GPU: of pairs, and on slices.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <set>

#include "base/quantile.h"
#include "base/text.h"
#include "evaluate/errors.h"
#include "evaluate/job_models.h"
#include "evaluate/tables.h"
#include "measurements/colocation.h"
#include "measurements/xz.h"
#include "scenario/internal.h"
#include "sharing/alone.h"
#include "sharing/pair_fit.h"
#include "tilecast/error.h"
#include "tilecast/learn.h"

namespace tilecast {
namespace {

constexpr size_t kPairsThatStay = 3;  // of a job that is left out
constexpr uint64_t kDraws = 10;       // of those pairs

CsvTable sharing_table(const std::string& path) {
  return parse_csv(read_measurement_text(path), printable(path));
}

/// The value of the name, else that of all others.
template <typename T>
const T* value_of(const std::map<std::string, T>& values, const std::string& name) {
  for (const std::string& key : {name, std::string()}) {
    const auto found = values.find(key);
    if (found != values.end()) return &found->second;
  }
  return nullptr;
}

double mean_error_percent(const std::vector<SharingPoint>& points, double (*speed)(double)) {
  double sum = 0;
  for (const SharingPoint& p : points) sum += std::abs(speed(p.measured) / p.measured - 1);
  return 100 * sum / static_cast<double>(points.size());
}

void set_errors(SharingErrors& errors, const std::vector<SharingPoint>& points) {
  std::vector<ErrorSample> samples;
  for (const SharingPoint& p : points)
    samples.push_back({p.measured, p.forecast.value, p.forecast.low, p.forecast.high});
  set_errors(errors, samples);
  errors.alone_mape_percent = mean_error_percent(points, [](double) { return 1.0; });
}

/// What both kinds of tables need.
class SharingEvaluator {
 public:
  SharingEvaluator(const Forecaster& forecaster, const std::string& path, const SharingTable& table)
      : forecaster_(forecaster), table_(table) {
    result_.file = printable(std::filesystem::path(path).filename().string());
    for (const MeasuredJob& job : table.jobs) jobs_.emplace(job.job.name, &job);
  }

  SharingEvaluation done() {
    result_.unmatched = unmatched_reasons(unmatched_);
    return std::move(result_);
  }

 protected:
  GpuRef gpu_of(const std::string& name) const {
    const std::string* mapped = value_of(table_.gpus, name);
    return load_gpu_ref(mapped != nullptr ? *mapped : name);
  }

  ShareHow how_of(const std::string& name) const {
    const ShareHow* how = value_of(table_.how, name);
    if (how == nullptr)
      throw Error(ErrorKind::kInput,
                  fmt::format("how did jobs share {}? Add `how` time-slice or mps; for each "
                              "GPU: mps,{}=time-slice",
                              shown_name(name), shown_name(name)));
    if (*how == ShareHow::kMig)
      throw Error(ErrorKind::kInput,
                  "pairs of jobs take turns: `how` is time-slice, mps or streams");
    return *how;
  }

  /// nullptr if the job is unknown or cannot be forecast, which is listed.
  const MeasuredJob* find_job(const std::string& name) {
    const auto found = jobs_.find(name);
    if (found != jobs_.end()) return found->second;
    skip(fmt::format("'{}' is not among the jobs", shown_name(name)));
    return nullptr;
  }

  std::optional<AloneForecast> alone(const MeasuredJob& measured, const GpuRef& gpu,
                                     double steps_per_s, ShareHow how) {
    Job job = measured.job;
    job.bounds.steps_per_s = steps_per_s * measured.steps;
    try {
      AloneForecast forecast = alone_on(forecaster_, gpu, job, how);
      if (measured.memory_model) {
        job.model = *measured.memory_model;
        forecast.job.memory_bytes = alone_on(forecaster_, gpu, job, how).job.memory_bytes;
      }
      return forecast;
    } catch (const Error& error) {
      if (error.kind() == ErrorKind::kInternal) throw;
      skip(fmt::format("{}: {}", gpu.id(), error.what()));
      return std::nullopt;
    }
  }

  void skip(const std::string& what) { ++unmatched_[printable(what)]; }

  const Forecaster& forecaster_;
  const SharingTable& table_;
  SharingEvaluation result_;

 private:
  std::map<std::string, const MeasuredJob*> jobs_;
  std::map<std::string, int> unmatched_;
};

class PairEvaluator : public SharingEvaluator {
 public:
  using SharingEvaluator::SharingEvaluator;

  void run(const std::vector<PairMeasurement>& rows) {
    std::map<std::string, std::vector<PairMeasurement>> by_gpu;
    for (const PairMeasurement& row : of_series(rows)) by_gpu[row.gpu].push_back(row);
    for (const auto& [name, own] : by_gpu) gpu(name, own);
  }

 private:
  std::vector<PairMeasurement> of_series(const std::vector<PairMeasurement>& rows) {
    std::set<std::string> known;
    for (const PairMeasurement& row : rows) known.insert(row.series);
    const std::vector<std::string> names(known.begin(), known.end());
    result_.series = table_.series;
    if (table_.series.empty() && known.size() > 1)
      throw Error(ErrorKind::kInput,
                  fmt::format("{}: the rows are of several series, which differ in machines: add "
                              "`series` {}",
                              result_.file, join(names, " or ")));
    if (!table_.series.empty() && !known.contains(table_.series))
      throw Error(ErrorKind::kInput,
                  fmt::format("{}: no row is of series '{}'; expected {}", result_.file,
                              shown_name(table_.series), shown_name(join(names, " or "))));
    std::vector<PairMeasurement> own;
    for (const PairMeasurement& row : rows) {
      if (table_.series.empty() || row.series == table_.series) own.push_back(row);
    }
    return own;
  }

  /// Jobs of one GPU by their names.
  using Alone = std::map<std::string, std::optional<AloneForecast>>;

  Alone jobs_of(const std::vector<PairMeasurement>& rows, const GpuRef& gpu, ShareHow how) {
    std::map<std::string, double> speeds;
    for (const PairMeasurement& row : rows) {
      speeds.emplace(row.job, row.alone_steps_per_s);
      if (!row.is_alone()) speeds.emplace(row.partner, row.partner_alone_steps_per_s);
    }
    Alone alone_of;
    for (const auto& [name, speed] : speeds) {
      const MeasuredJob* job = find_job(name);
      alone_of[name] = job == nullptr ? std::nullopt : alone(*job, gpu, speed, how);
    }
    return alone_of;
  }

  /// Both relative speeds of each pair.
  class Speeds {
   public:
    double of(const std::string& job, const JobAlone& a, const std::string& partner,
              const JobAlone& b) {
      const bool first = job <= partner;
      const auto key = first ? std::pair(job, partner) : std::pair(partner, job);
      auto found = known_.find(key);
      if (found == known_.end())
        found = known_.emplace(key, relative_speeds(first ? std::vector{a, b} : std::vector{b, a}))
                    .first;
      return found->second[first ? 0 : 1];
    }

   private:
    std::map<std::pair<std::string, std::string>, std::vector<double>> known_;
  };

  void gpu(const std::string& name, const std::vector<PairMeasurement>& rows) {
    const GpuRef gpu = gpu_of(name);
    const ShareHow how = how_of(name);
    const Alone alone_of = jobs_of(rows, gpu, how);
    SharingErrors errors{.gpu = gpu.id(),
                         .how = std::string(choice_word(how)),
                         .did_not_run = 0,
                         .called = 0,
                         .false_alarms = 0};
    Speeds speeds;
    std::vector<SharingPoint> points;
    for (const PairMeasurement& row : rows) {
      if (row.is_alone()) continue;
      const auto& a = alone_of.at(row.job);
      const auto& b = alone_of.at(row.partner);
      if (!a || !b) continue;
      const bool tight = is_tight_together(a->job.memory_bytes + b->job.memory_bytes,
                                           std::max(a->usable_bytes, b->usable_bytes));
      if (!row.ran()) {
        ++*errors.did_not_run;
        *errors.called += tight ? 1 : 0;
        continue;
      }
      *errors.false_alarms += tight ? 1 : 0;
      const double r = speeds.of(row.job, a->job, row.partner, b->job);
      points.push_back({.gpu = gpu.id(),
                        .job = row.job,
                        .partner = row.partner,
                        .measured = row.steps_per_s / row.alone_steps_per_s,
                        .forecast = relative_speed_interval(r, how, b->job.gpu_share)});
    }
    if (points.empty()) return;
    set_errors(errors, points);
    errors.half_mape_percent = mean_error_percent(points, [](double) { return 0.5; });
    if (table_.pairs) leave_out(errors, points);
    result_.errors.push_back(std::move(errors));
    result_.points.insert(result_.points.end(), points.begin(), points.end());
  }

  static void leave_out(SharingErrors& errors, std::vector<SharingPoint>& points) {
    JobModels models;
    std::vector<PairRow> rows;
    for (const SharingPoint& p : points)
      rows.push_back({models.index(p.job), models.index(p.partner), p.forecast.value, p.measured});
    const auto error = [&](const LeftOutRow& row) {
      return error_percent(row.speed, rows[row.row].measured);
    };
    double sum = 0, inside = 0;
    for (const LeftOutRow& row : leave_out_pairs(rows, models.model_of_job())) {
      sum += error(row);
      const Interval interval = fitted_interval(row.speed, row.spread_log);
      const double measured = rows[row.row].measured;
      inside += interval.low <= measured && measured <= interval.high ? 1 : 0;
      points[row.row].left_out_pair = row.speed;
    }
    const auto n = static_cast<double>(rows.size());
    errors.left_out_pair_mape_percent = sum / n;
    errors.left_out_pair_coverage_percent = 100 * inside / n;
    sum = 0;
    size_t count = 0;
    for (uint64_t seed = 1; seed <= kDraws; ++seed) {
      for (const LeftOutRow& row :
           leave_out_jobs(rows, models.model_of_job(), kPairsThatStay, seed)) {
        sum += error(row);
        ++count;
      }
    }
    if (count > 0) errors.left_out_job_mape_percent = sum / static_cast<double>(count);
  }
};

class SliceEvaluator : public SharingEvaluator {
 public:
  using SharingEvaluator::SharingEvaluator;

  void run(const std::vector<SliceMeasurement>& rows) {
    if (!table_.how.empty() || !table_.series.empty() || table_.pairs)
      throw Error(ErrorKind::kInput,
                  fmt::format("{}: its jobs have slices of their own: leave out `how`, `series` "
                              "and `pairs`, which are of pairs",
                              result_.file));
    std::map<std::pair<std::string, std::string>, std::vector<SliceMeasurement>> by_job;
    for (const SliceMeasurement& row : rows) by_job[{row.gpu, row.job}].push_back(row);
    for (const auto& [key, own] : by_job) job(key.first, key.second, own);
    add_errors();
  }

 private:
  void job(const std::string& gpu_name, const std::string& name,
           const std::vector<SliceMeasurement>& rows) {
    const MeasuredJob* measured = find_job(name);
    if (measured == nullptr) return;
    const GpuRef gpu = gpu_of(gpu_name);
    const Device& device = gpu.content->device;
    const std::string& largest = largest_slice(device).name;
    const auto reference = std::find_if(rows.begin(), rows.end(), [&](const auto& row) {
      return normalized_name(row.slice) == normalized_name(largest);
    });
    if (reference == rows.end())
      return skip(
          fmt::format("'{}' was not measured on {}, to which speeds relate", name, largest));
    const auto on_slice = [&](const std::string& slice) {
      return alone(*measured, load_gpu_ref(device.id + ":" + slice), 1 / reference->step_s,
                   ShareHow::kMig);
    };
    const auto whole = on_slice(largest);
    if (!whole) return;
    for (const SliceMeasurement& row : rows) {
      if (&row == &*reference) continue;
      const auto there = on_slice(row.slice);
      if (!there) continue;
      const double r = speed_with_kernels(whole->job, there->job.kernels_s / whole->job.kernels_s);
      result_.points.push_back({.gpu = device.id,
                                .job = row.job,
                                .slice = row.slice,
                                .measured = reference->step_s / row.step_s,
                                .forecast = slice_speed_interval(r)});
    }
  }

  void add_errors() {
    std::map<std::pair<std::string, std::string>, std::vector<SharingPoint>> groups;
    std::map<std::pair<std::string, std::string>, double> medians;
    for (const SharingPoint& p : result_.points) {
      groups[{p.gpu, ""}].push_back(p);
      groups[{p.gpu, p.slice}].push_back(p);
    }
    for (const auto& [key, points] : groups) {
      std::vector<double> speeds;
      for (const SharingPoint& p : points) speeds.push_back(p.measured);
      medians[key] = quantile(speeds, 0.5);
    }
    for (const auto& [key, points] : groups) {
      SharingErrors errors{.gpu = key.first, .how = "mig", .slice = key.second};
      set_errors(errors, points);
      double sum = 0;
      for (const SharingPoint& p : points)
        sum += std::abs(medians[{p.gpu, p.slice}] / p.measured - 1);
      errors.median_mape_percent = 100 * sum / static_cast<double>(points.size());
      result_.errors.push_back(std::move(errors));
    }
  }
};

}  // namespace

bool is_sharing_table(const std::string& path) {
  const std::optional<CsvTable> header = table_header(path);
  return header && (is_pair_table(*header) || is_slice_table(*header));
}

SharingEvaluation evaluate_sharing(const Forecaster& forecaster, const std::string& path,
                                   const SharingTable& table) {
  const CsvTable rows = sharing_table(path);
  const auto evaluated = [&](auto evaluator, const auto& measured) {
    evaluator.run(measured);
    SharingEvaluation result = evaluator.done();
    if (result.points.empty()) refuse_unmatched(path, result.unmatched);
    return result;
  };
  if (is_pair_table(rows))
    return evaluated(PairEvaluator(forecaster, path, table), read_pairs(rows));
  return evaluated(SliceEvaluator(forecaster, path, table), read_slices(rows));
}

}  // namespace tilecast
