#include "train/judge.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "base/quantile.h"
#include "predict/bound.h"
#include "train/interval_fit.h"

namespace tilecast {
namespace {

struct Summary {
  std::vector<double> errors;  ///< |forecast / measured - 1|, percent
  double roofline = 0;         ///< sum of the baseline's
};

/// By GPU, operator, precision and software.
using ErrorMap = std::map<std::array<std::string, 4>, Summary>;

/// Variance of the devices' mean errors over the variance of all.
double common_share(const Spread& spread, size_t devices) {
  std::vector<double> mean(devices, 0);
  std::vector<bool> present(devices, false);
  double all = 0, square = 0, count = 0, between = 0;
  for (const LogError& r : balanced(spread, devices)) {
    mean[r.device] += r.weight * r.value;
    present[r.device] = true;
    all += r.weight * r.value;
    square += r.weight * r.value * r.value;
  }
  for (const bool p : present) count += p ? 1 : 0;
  const double variance = square / count - (all / count) * (all / count);
  for (size_t d = 0; d < devices; ++d) {
    if (present[d]) between += (mean[d] - all / count) * (mean[d] - all / count) / count;
  }
  return variance > 0 ? std::clamp(between / variance, 0.0, 1.0) : 1.0;
}

/// The rows of a device, all or the held-out ones.
std::vector<size_t> rows_of(const KindTable& table, const TrainingData& data, size_t device,
                            bool held_out_only) {
  std::vector<size_t> rows;
  for (size_t r = 0; r < table.count(); ++r) {
    const TrainingRow& row = data.rows[table.index[r]];
    if (row.device == device && !row.assumed && (!held_out_only || table.held_out[r]))
      rows.push_back(r);
  }
  return rows;
}

/// Forecasts rows of a device by a model and adds what they show to `errors` and `spread`.
void collect(const WeightsJob& job, KernelKind kind, const KindModel& model, size_t device,
             bool held_out_only, ErrorMap& errors, Spread& spread) {
  const KindTable& table = job.tables[static_cast<size_t>(kind)];
  const TrainingData& data = job.data;
  const Device& gpu = data.devices[device];
  const std::vector<size_t> rows = rows_of(table, data, device, held_out_only);
  const std::vector<double> found = log_errors(table, rows, data, model, kind, gpu);
  for (size_t i = 0; i < rows.size(); ++i) {
    const TrainingRow& row = data.rows[table.index[rows[i]]];
    const RowGroup& group = data.groups[row.group];
    const double call_s = row.seconds + group.call_overhead_s;
    // Errors are of the measured call, its overhead included, as published errors are.
    const double error = (std::exp(found[i]) - 1) * row.seconds / call_s;
    const std::string op = row.algorithm.empty() ? group.op : group.op + " (" + row.algorithm + ")";
    Summary& summary = errors[{gpu.id, op, std::string(precision_name(row.kernel)),
                               std::string(software_name(row.conditions.software))}];
    summary.errors.push_back(100 * std::abs(error));
    const double roofline = roofline_bound(row.kernel, data.running(row)).seconds();
    summary.roofline += 100 * std::abs(roofline / call_s - 1);
    spread.push_back({.value = found[i],
                      .weight = row.weight,
                      .device = device,
                      .size = size_of(table.law_s[rows[i]]),
                      .combination = combination_of(row.kernel, row.conditions)});
  }
}

std::vector<TrainError> table(ErrorMap& errors) {
  std::vector<TrainError> rows;
  for (auto& [key, summary] : errors) {
    const std::vector<double>& e = summary.errors;
    double sum = 0;
    for (double x : e) sum += x;
    const auto count = static_cast<double>(e.size());
    rows.push_back({key[0], key[1], key[2], key[3], e.size(), sum / count, quantile(e, 0.5),
                    summary.roofline / count});
  }
  return rows;
}

void set_call_overheads(KindModel& model, KernelKind kind, const TrainingData& data) {
  std::vector<double> values;
  std::vector<bool> seen(data.groups.size(), false);
  for (const TrainingRow& row : data.rows) {
    if (kernel_kind(row.kernel) != kind || seen[row.group]) continue;
    seen[row.group] = true;
    const RowGroup& group = data.groups[row.group];
    if (group.call_overhead_s == 0) continue;
    values.push_back(group.call_overhead_s);
    for (ClassResidual& residual : model.classes) {
      for (MeasuredDevice& measured : residual.devices) {
        if (measured.source == data.devices[group.device].id)
          measured.call_overhead_s[group.op] = group.call_overhead_s;
      }
    }
  }
  if (values.empty()) return;
  std::sort(values.begin(), values.end());
  model.call_overhead = {values[values.size() / 2], values.front(), values.back()};
}

/// Whether other devices of the class have rows of the same precision and software. Forecasts of a
/// device take the interval of its class where they do (coverage.cc), else that of new classes.
bool knows_combination(const KindModel& model, const Device& device, const LogError& row) {
  return std::any_of(model.classes.begin(), model.classes.end(),
                     [&](const ClassResidual& residual) {
                       return residual.of == class_of(device) && residual.covers(row.combination);
                     });
}

/// The tables of errors of all kinds.
struct Errors {
  ErrorMap held_out, left_out, left_out_architecture;
};

/// Errors of the rows of a vendor's devices.
struct Unmeasured {
  Spread devices;   ///< left-out devices of a class that is known with their precision and software
  Spread classes;   ///< other left-out devices
  Spread seen;      ///< held-out rows
  Spread families;  ///< of `classes`, those that were left out with their architecture
  Spread alone;     ///< all rows by the law alone, as of a vendor that was not measured
};

void append(const Spread& from, Spread& to) { to.insert(to.end(), from.begin(), from.end()); }

/// The interval of left-out rows. Without any, nothing is known of others: what is seen of measured
/// devices is a lower limit.
IntervalLaw unmeasured_interval(const Spread& left_out, const Spread& otherwise, size_t devices) {
  IntervalLaw interval = interval_of(left_out.empty() ? otherwise : left_out, devices);
  if (left_out.empty()) return interval;
  interval = both_ways(interval);
  interval.common_share = common_share(left_out, devices);
  return interval;
}

void set_intervals(WeightsJob& job, KernelKind kind, KindModel& model,
                   const std::map<std::string, Unmeasured>& vendors,
                   const std::map<KernelClass, Spread>& classes) {
  const std::span<const Device> known = job.data.devices;
  Unmeasured all;
  for (const auto& [vendor, found] : vendors) {
    append(found.classes, all.classes);
    append(found.devices, all.devices);
    append(found.seen, all.seen);
    append(found.families, all.families);
    append(found.alone, all.alone);
  }
  // One factor for all vendors: few architectures of AMD were measured.
  const UnseenFit families = fit_families(all.families, all.classes, known);
  for (const auto& [vendor, found] : vendors)
    model.vendor_intervals[vendor] =
        scaled(unmeasured_interval(found.classes, found.seen, known.size()), families.factor);
  model.interval =
      scaled(unmeasured_interval(all.classes, all.seen, known.size()), families.factor);
  model.class_widths = families.widths;
  model.vendor_widths = families.vendor_widths;
  job.intervals.push_back({kind, "architecture", families});
  job.intervals.push_back(
      {kind, "vendor", judge_vendors(all.alone, all.families, all.classes, known)});
  UnseenFit siblings = fit_siblings(all.devices, known);
  const bool by_class = !all.devices.empty() && siblings.enough;
  if (!by_class) siblings = siblings_by_classes(all.devices, all.classes, families.factor, known);
  model.sibling_widths = siblings.widths;
  job.intervals.push_back({kind, "gpu", siblings});
  for (ClassResidual& residual : model.classes) {
    const auto own = classes.find(residual.of);
    const Spread& spread = own == classes.end() ? all.devices : own->second;
    // Devices that say too little of each other count as if their class had not been measured.
    residual.interval = by_class
                            ? scaled(unmeasured_interval(spread, {}, known.size()), siblings.factor)
                            : model.interval;
  }
}

void judge_kind(WeightsJob& job, KernelKind kind, Errors& errors) {
  const size_t devices = job.data.devices.size();
  KindModel model = assembled(job, kind, {});
  KindModel law_alone = model;
  law_alone.classes.clear();
  std::map<std::string, Unmeasured> vendors;
  std::map<KernelClass, Spread> classes;
  std::set<std::string> few;  // devices with too few held-out rows
  for (ClassResidual& residual : model.classes) {
    for (MeasuredDevice& measured : residual.devices) {
      const size_t device = job.device_index(measured.source);
      const Device& gpu = job.data.devices[device];
      Unmeasured& vendor = vendors[gpu.vendor];
      Spread own;
      collect(job, kind, model, device, true, errors.held_out, own);
      const bool enough = own.size() >= kFewestOfSize;
      if (enough) {
        measured.interval = interval_of(own, devices);
        measured.widths = widths_of_rows(own, measured.interval);
      }
      if (!enough) few.insert(measured.source);
      append(own, vendor.seen);
      if (!job.options.leave_one_out) continue;
      const KindModel without = assembled(job, kind, {.device = device});
      Spread left_out;
      collect(job, kind, without, device, false, errors.left_out, left_out);
      for (const LogError& row : left_out) {
        const bool known = knows_combination(without, gpu, row);
        (known ? vendor.devices : vendor.classes).push_back(row);
        if (known) classes[residual.of].push_back(row);
      }
      const Architecture architecture = residual.of.architecture;
      Spread family;
      collect(job, kind, assembled(job, kind, {.architecture = architecture}), device, false,
              errors.left_out_architecture, family);
      append(family, vendor.classes);
      append(family, vendor.families);
      ErrorMap unused;
      collect(job, kind, law_alone, device, false, unused, vendor.alone);
    }
  }
  set_intervals(job, kind, model, vendors, classes);
  // They take the interval of their class.
  for (ClassResidual& residual : model.classes) {
    for (MeasuredDevice& measured : residual.devices) {
      if (few.contains(measured.source)) measured.interval = residual.interval;
    }
  }
  set_call_overheads(model, kind, job.data);
  job.weights.models[static_cast<size_t>(kind)] = std::move(model);
}

}  // namespace

TrainResult judge(WeightsJob& job) {
  Errors errors;
  for (size_t n = 0; n < kKernelKindCount; ++n) {
    if (job.weights.models[n].known()) judge_kind(job, static_cast<KernelKind>(n), errors);
  }
  return {job.data.report, table(errors.held_out), table(errors.left_out),
          table(errors.left_out_architecture)};
}

}  // namespace tilecast
