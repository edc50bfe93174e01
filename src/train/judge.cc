#include "train/judge.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "predict/bound.h"

namespace tilecast {
namespace {

/// The interval of one size of kernels comes from at least so many rows of that size.
constexpr size_t kFewestOfSize = 50;

struct Summary {
  std::vector<double> errors;  ///< |forecast / measured - 1|, percent
  double roofline = 0;         ///< sum of the baseline's
};

/// By GPU, operator, precision and software.
using ErrorMap = std::map<std::array<std::string, 4>, Summary>;

/// log(forecast / measured) of a row of unseen kernels or of an unseen device.
struct LogError {
  double value, weight;
  size_t device;
  size_t bin;  ///< IntervalLaw's
};
using Spread = std::vector<LogError>;

double weighted_quantile(std::vector<std::pair<double, double>> values, double q) {
  std::sort(values.begin(), values.end());
  double total = 0;
  for (const auto& [value, weight] : values) total += weight;
  double sum = 0;
  for (const auto& [value, weight] : values) {
    sum += weight;
    if (sum >= q * total) return value;
  }
  return values.empty() ? 0 : values.back().first;
}

/// Every device counts alike: the next one is a draw among devices, not among rows.
Spread balanced(Spread spread, size_t devices) {
  std::vector<double> total(devices, 0);
  for (const LogError& r : spread) total[r.device] += r.weight;
  for (LogError& r : spread) r.weight /= total[r.device];
  return spread;
}

/// value = log(forecast / measured): the measured time is forecast · exp(-value).
IntervalLaw interval_of(const Spread& spread, size_t devices) {
  IntervalLaw interval;
  for (size_t bin = 0; bin < IntervalLaw::kAnchors.size(); ++bin) {
    Spread part;
    for (const LogError& r : spread) {
      if (r.bin == bin) part.push_back(r);
    }
    // Too few of a size: those of all.
    std::vector<std::pair<double, double>> values;
    for (const LogError& r : balanced(part.size() < kFewestOfSize ? spread : part, devices))
      values.emplace_back(r.value, r.weight);
    interval.low_log[bin] = std::min(0.0, -weighted_quantile(values, (1 + kCoverage) / 2));
    interval.high_log[bin] = std::max(0.0, -weighted_quantile(values, (1 - kCoverage) / 2));
  }
  return interval;
}

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

/// Forecasts a part's rows and adds what they show to `errors` and to the spread of their device.
template <typename SpreadOf>
void collect(const Net& net, const FoldPart& part, const TrainingData& data, ErrorMap& errors,
             const SpreadOf& spread_of) {
  const std::vector<double> log_errors = part_log_errors(net, part, data);
  for (size_t r = 0; r < log_errors.size(); ++r) {
    const TrainingRow& row = data.rows[part.index[r]];
    const RowGroup& group = data.groups[row.group];
    const Device& device = data.devices[row.device];
    const double call_s = row.seconds + group.call_overhead_s;
    // Errors are those of the measured call, its overhead included, as published ones are.
    const double error = (std::exp(log_errors[r]) - 1) * row.seconds / call_s;
    Summary& summary = errors[{device.id, group.op, std::string(precision_name(row.kernel)),
                               std::string(software_name(row.conditions.software))}];
    summary.errors.push_back(100 * std::abs(error));
    const double roofline = roofline_bound(row.kernel, data.running(row)).seconds();
    summary.roofline += 100 * std::abs(roofline / call_s - 1);
    spread_of(device.id).push_back({log_errors[r], part.rows.weights[r], row.device,
                                    IntervalLaw::bin_of(part.rows.bounds[r])});
  }
}

std::vector<TrainError> table(ErrorMap& errors) {
  std::vector<TrainError> rows;
  for (auto& [key, summary] : errors) {
    std::vector<double>& e = summary.errors;
    std::sort(e.begin(), e.end());
    double sum = 0;
    for (double x : e) sum += x;
    const auto count = static_cast<double>(e.size());
    rows.push_back({key[0], key[1], key[2], key[3], e.size(), sum / count, e[e.size() / 2],
                    summary.roofline / count});
  }
  return rows;
}

void set_call_overheads(Net& net, NetKind kind, const TrainingData& data) {
  std::map<size_t, double> by_device;
  std::vector<bool> seen(data.groups.size(), false);
  for (const TrainingRow& row : data.rows) {
    if (net_of(row.kernel) != kind || seen[row.group]) continue;
    seen[row.group] = true;
    const RowGroup& group = data.groups[row.group];
    if (group.call_overhead_s > 0)
      by_device[group.device] = std::max(by_device[group.device], group.call_overhead_s);
  }
  std::vector<double> values;
  for (const auto& [device, value] : by_device) {
    values.push_back(value);
    for (DeviceResidual& c : net.residuals) {
      if (c.source == data.devices[device].id) c.call_overhead_s = value;
    }
  }
  if (values.empty()) return;
  std::sort(values.begin(), values.end());
  net.call_overhead = {values[values.size() / 2], values.front(), values.back()};
}

/// What one kind's held-out and left-out rows show.
struct Spreads {
  Spread unseen;                       ///< devices that were left out
  std::map<std::string, Spread> seen;  ///< by device: its held-out rows
};

void set_intervals(Net& net, const Spreads& spreads, bool left_out, size_t devices) {
  Spread unseen = spreads.unseen;
  // Without left-out GPUs nothing is known of others: what is seen of these is a lower limit.
  if (!left_out) {
    for (const auto& [gpu, spread] : spreads.seen)
      unseen.insert(unseen.end(), spread.begin(), spread.end());
  }
  net.interval = interval_of(unseen, devices);
  if (left_out) net.interval.common_share = common_share(unseen, devices);
  for (DeviceResidual& c : net.residuals) {
    const auto own = spreads.seen.find(c.source);
    c.interval = interval_of(own == spreads.seen.end() ? Spread{} : own->second, devices);
  }
}

}  // namespace

TrainResult judge(TrainingPlan& plan) {
  const TrainingData& data = plan.data;
  ErrorMap held_out, left_out;
  for (size_t n = 0; n < kNetCount; ++n) {
    Spreads spreads;
    for (const auto& fold : plan.folds) {
      if (!plan.learns(*fold, n)) continue;
      const Net& net = fold->weights.nets[n];
      const FoldNet& rows = fold->nets[n];
      if (fold->left_out)
        collect(net, rows.left, data, left_out,
                [&](const std::string&) -> Spread& { return spreads.unseen; });
      else
        collect(net, rows.held_out, data, held_out,
                [&](const std::string& gpu) -> Spread& { return spreads.seen[gpu]; });
    }
    Net& net = plan.folds.front()->weights.nets[n];
    if (!plan.enough[n]) {
      net = Net{};
      continue;
    }
    set_intervals(net, spreads, plan.folds.size() > 1, data.devices.size());
    set_call_overheads(net, static_cast<NetKind>(n), data);
  }
  return {data.report, table(held_out), table(left_out)};
}

}  // namespace tilecast
