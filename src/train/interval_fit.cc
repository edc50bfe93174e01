#include "train/interval_fit.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <optional>
#include <tuple>

#include "base/quantile.h"
#include "devices/vendor.h"
#include "predict/weights.h"

namespace tilecast {
namespace {

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

/// A device's rows of one precision and software.
using Cell = std::tuple<size_t, DType, DType, QuantScheme, Software>;

Cell cell_of(const LogError& row) {
  const Combination& c = row.combination;
  return {row.device, c.dtype, c.kv_dtype, c.scheme, c.software};
}

/// Factors on an interval's logarithms with which it holds a row, by cell.
using NeededFactors = std::map<Cell, std::vector<double>>;

/// Forecasts double the interval of a combination that none of its rows have (learned.cc).
constexpr double kUnmeasuredCombination = 2;

/// With which an interval holds a row: the measured time is forecast · exp(-value).
double factor_needed(const LogError& row, const IntervalLaw& interval) {
  const IntervalLaw::Logs logs = interval.at(row.size);
  return -row.value > 0 ? -row.value / logs.high : -row.value / logs.low;
}

void add_needed(const Spread& tested, const Spread& known, size_t devices, NeededFactors& needed) {
  const IntervalLaw interval = both_ways(interval_of(known, devices));
  std::vector<Combination> measured;
  const auto is_measured = [&](const Combination& combination) {
    return std::find(measured.begin(), measured.end(), combination) != measured.end();
  };
  for (const LogError& row : known) {
    if (!is_measured(row.combination)) measured.push_back(row.combination);
  }
  for (const LogError& row : tested) {
    const double factor = factor_needed(row, interval);
    needed[cell_of(row)].push_back(is_measured(row.combination) ? factor
                                                                : factor / kUnmeasuredCombination);
  }
}

double share_held(const std::vector<double>& factors, double factor) {
  return static_cast<double>(std::upper_bound(factors.begin(), factors.end(), factor) -
                             factors.begin()) /
         static_cast<double>(factors.size());
}

/// Share of devices' precisions that a factor holds, each the mean over its software.
struct PrecisionsHeld {
  double mean = 0, least = 1;
};
PrecisionsHeld precisions_held(const NeededFactors& needed, double factor) {
  std::map<std::tuple<size_t, DType, DType, QuantScheme>, std::pair<double, double>> sums;
  for (const auto& [cell, factors] : needed) {
    const auto& [device, dtype, kv_dtype, scheme, software] = cell;
    auto& [sum, count] = sums[{device, dtype, kv_dtype, scheme}];
    sum += share_held(factors, factor);
    count += 1;
  }
  PrecisionsHeld held;
  for (const auto& [precision, sum] : sums) {
    const double share = sum.first / sum.second;
    held.mean += share / static_cast<double>(sums.size());
    held.least = std::min(held.least, share);
  }
  return held;
}

/// A number from `low` to `high`, where `enough` is true from some number on: the least such one,
/// or `high`.
template <class Enough>
double bisected(double low, double high, const Enough& enough) {
  if (enough(low)) return low;
  for (int i = 0; i < 30; ++i) {
    const double middle = std::sqrt(low * high);
    (enough(middle) ? high : low) = middle;
  }
  return high;
}

/// What is left out together with a cell, and whose vendor's cells count before all others: of
/// devices their class, of architectures the vendor.
struct Group {
  size_t left_out, vendor;
};
using GroupOf = std::function<Group(const Cell&)>;

PrecisionWidth precision_of(const Cell& cell) {
  const auto& [device, dtype, kv_dtype, scheme, software] = cell;
  return {dtype, kv_dtype, scheme};
}
using Precision = std::tuple<DType, DType, QuantScheme>;
Precision key_of(const Cell& cell) {
  const auto& [device, dtype, kv_dtype, scheme, software] = cell;
  return {dtype, kv_dtype, scheme};
}

/// The needed factors of a precision's cells, by what is left out together.
using Groups = std::map<size_t, std::vector<const std::vector<double>*>>;

Groups groups_of(const NeededFactors& needed, const PrecisionWidth& precision,
                 const GroupOf& group_of, const std::function<bool(const Group&)>& counts) {
  Groups groups;
  for (const auto& [cell, factors] : needed) {
    const Group group = group_of(cell);
    if (precision_of(cell) == precision && counts(group))
      groups[group.left_out].push_back(&factors);
  }
  return groups;
}

/// How much wider than `factor` an interval must be to hold as much of the groups' rows, on
/// average, as of all precisions. A few groups say little of the next one: of n, n / (n + 1) of the
/// width's logarithm counts.
double width_needed(const Groups& groups, double factor) {
  constexpr double kMost = 4;
  if (groups.empty()) return 1;
  const auto enough = [&](double f) {
    double sum = 0;
    for (const auto& [group, cells] : groups) {
      for (const std::vector<double>* factors : cells)
        sum += share_held(*factors, f) / static_cast<double>(cells.size());
    }
    return sum >= kUnseenCoverage * static_cast<double>(groups.size());
  };
  const double width = bisected(factor / kMost, factor * kMost, enough) / factor;
  const auto count = static_cast<double>(groups.size());
  return std::pow(width, count / (count + 1));
}

/// The width of a precision for devices of a vendor; `left_out` does not count.
double width_for(const NeededFactors& needed, const PrecisionWidth& precision, double factor,
                 const GroupOf& group_of, size_t vendor, std::optional<size_t> left_out) {
  const auto others = [&](const Group& group) { return group.left_out != left_out; };
  Groups groups = groups_of(needed, precision, group_of, [&](const Group& group) {
    return others(group) && group.vendor == vendor;
  });
  if (groups.empty()) groups = groups_of(needed, precision, group_of, others);
  return width_needed(groups, factor);
}

/// The precisions of the cells, each once.
PrecisionWidths precisions_of(const NeededFactors& needed) {
  PrecisionWidths precisions;
  for (const auto& [cell, factors] : needed) {
    const PrecisionWidth precision = precision_of(cell);
    if (std::find(precisions.begin(), precisions.end(), precision) == precisions.end())
      precisions.push_back(precision);
  }
  return precisions;
}

/// How far the shares of left-out precisions that intervals hold lie from what they should hold, on
/// average. Each cell by the widths that cells of other groups say, or without widths.
double mean_miss(const NeededFactors& needed, double factor, const GroupOf& group_of, bool widths) {
  std::map<std::pair<size_t, Precision>, std::pair<double, double>> shares;
  for (const auto& [cell, factors] : needed) {
    const Group group = group_of(cell);
    const double width = widths ? width_for(needed, precision_of(cell), factor, group_of,
                                            group.vendor, group.left_out)
                                : 1;
    auto& [sum, count] = shares[{group.left_out, key_of(cell)}];
    sum += share_held(factors, factor * width);
    count += 1;
  }
  double miss = 0;
  for (const auto& [precision, share] : shares)
    miss += std::abs(share.first / share.second - kUnseenCoverage);
  return miss / static_cast<double>(shares.size());
}

/// Widths by precision where they are nearer than none to what left-out groups need.
void set_widths(UnseenFit& fit, const NeededFactors& needed, const GroupOf& group_of,
                std::span<const Device> devices) {
  const bool help = mean_miss(needed, fit.factor, group_of, true) <
                    mean_miss(needed, fit.factor, group_of, false);
  std::map<std::string, size_t, std::less<>> vendors;
  for (const auto& [cell, factors] : needed) {
    const auto& [device, dtype, kv_dtype, scheme, software] = cell;
    const Group group = group_of(cell);
    vendors[devices[device].vendor] = group.vendor;
    const double width = help ? width_for(needed, precision_of(cell), fit.factor, group_of,
                                          group.vendor, group.left_out)
                              : 1;
    fit.cells.push_back({device,
                         {software, dtype, kv_dtype, scheme},
                         factors.size(),
                         share_held(factors, fit.factor * width)});
  }
  if (!help) return;
  for (PrecisionWidth width : precisions_of(needed)) {
    const PrecisionWidth precision = width;
    for (const auto& [vendor, number] : vendors) {
      width.factor = width_for(needed, precision, fit.factor, group_of, number, std::nullopt);
      fit.vendor_widths[vendor].push_back(width);
    }
    const auto all = [](const Group&) { return true; };
    width.factor = width_needed(groups_of(needed, precision, group_of, all), fit.factor);
    fit.widths.push_back(width);
  }
}

/// The least factor, from `smallest` to `largest`, that holds the share on average over cells and
/// half of each precision of a device, as far as that does not hold too much of all others.
UnseenFit least_factor(NeededFactors needed, double smallest, double largest,
                       const GroupOf& group_of, std::span<const Device> devices) {
  std::erase_if(needed, [](const auto& cell) { return cell.second.size() < kFewestOfSize; });
  if (needed.empty())
    return {.factor = 1, .widths = {}, .vendor_widths = {}, .enough = false, .cells = {}};
  for (auto& [cell, factors] : needed) std::sort(factors.begin(), factors.end());
  const auto held = [&](double factor) {
    double sum = 0;
    for (const auto& [cell, factors] : needed) sum += share_held(factors, factor);
    return sum / static_cast<double>(needed.size());
  };
  const double on_average =
      bisected(smallest, largest, [&](double f) { return held(f) >= kUnseenCoverage; });
  const double chosen = bisected(on_average, largest, [&](double f) {
    const PrecisionsHeld precisions = precisions_held(needed, f);
    return precisions.least >= kLeastUnseenCoverage || precisions.mean >= kMostUnseenCoverage;
  });
  UnseenFit fit;
  fit.factor = chosen;
  fit.enough = held(chosen) >= kUnseenCoverage;
  set_widths(fit, needed, group_of, devices);
  return fit;
}

/// Each device is left out by itself.
Group device_of(const Cell& cell) { return {std::get<0>(cell), 0}; }

std::map<size_t, Spread> by_device(const Spread& spread) {
  std::map<size_t, Spread> devices;
  for (const LogError& row : spread) devices[row.device].push_back(row);
  return devices;
}

Spread rows_where(const Spread& spread, const std::function<bool(const LogError&)>& counts) {
  Spread rows;
  std::copy_if(spread.begin(), spread.end(), std::back_inserter(rows), counts);
  return rows;
}

}  // namespace

Spread balanced(Spread spread, size_t devices) {
  std::vector<double> total(devices, 0);
  for (const LogError& r : spread) total[r.device] += r.weight;
  for (LogError& r : spread) r.weight /= total[r.device];
  return spread;
}

/// value = log(forecast / measured): the measured time is forecast · exp(-value).
IntervalLaw interval_of(const Spread& spread, size_t devices) {
  constexpr double kLeast = 0.01;  // measurements of one kernel repeat to no better than 1 %
  IntervalLaw interval;
  for (size_t bin = 0; bin < IntervalLaw::kAnchors.size(); ++bin) {
    Spread part;
    for (const LogError& r : spread) {
      if (IntervalLaw::bin_of(r.size) == bin) part.push_back(r);
    }
    // Too few rows of a size: the rows of all sizes.
    std::vector<std::pair<double, double>> values;
    for (const LogError& r : balanced(part.size() < kFewestOfSize ? spread : part, devices))
      values.emplace_back(r.value, r.weight);
    interval.low_log[bin] = std::min(-kLeast, -weighted_quantile(values, (1 + kCoverage) / 2));
    interval.high_log[bin] = std::max(kLeast, -weighted_quantile(values, (1 - kCoverage) / 2));
  }
  return interval;
}

IntervalLaw both_ways(IntervalLaw interval) {
  constexpr double kShare = 0.5;
  for (size_t i = 0; i < interval.low_log.size(); ++i) {
    const double low = interval.low_log[i], high = interval.high_log[i];
    interval.low_log[i] = std::min(low, -kShare * high);
    interval.high_log[i] = std::max(high, -kShare * low);
  }
  return interval;
}

UnseenFit fit_families(const Spread& families, const Spread& classes,
                       std::span<const Device> devices) {
  constexpr double kSmallest = 0.25, kLargest = 4;
  const auto architecture = [&](const LogError& row) {
    return class_of(devices[row.device]).architecture;
  };
  std::map<Architecture, Spread> by_architecture;
  for (const LogError& row : families) by_architecture[architecture(row)].push_back(row);
  NeededFactors needed;
  for (const auto& [left_out, tested] : by_architecture) {
    const std::string& vendor = devices[tested.front().device].vendor;
    const auto is_other = [&](const LogError& row) { return architecture(row) != left_out; };
    Spread known = rows_where(classes, [&](const LogError& row) {
      return is_other(row) && devices[row.device].vendor == vendor;
    });
    if (known.empty()) known = rows_where(classes, is_other);
    if (!known.empty()) add_needed(tested, known, devices.size(), needed);
  }
  const auto family_of = [&](const Cell& cell) {
    const Architecture family = class_of(devices[std::get<0>(cell)]).architecture;
    return Group{static_cast<size_t>(family), static_cast<size_t>(is_amd(family))};
  };
  return least_factor(std::move(needed), kSmallest, kLargest, family_of, devices);
}

UnseenFit fit_siblings(const Spread& siblings, std::span<const Device> devices) {
  constexpr double kLargest = 3;  // kinds with two such devices say little
  NeededFactors needed;
  for (const auto& [left_out, tested] : by_device(siblings)) {
    const KernelClass own = class_of(devices[left_out]);
    const Spread known = rows_where(siblings, [&](const LogError& row) {
      return row.device != left_out && class_of(devices[row.device]) == own;
    });
    if (!known.empty()) add_needed(tested, known, devices.size(), needed);
  }
  return least_factor(std::move(needed), 1, kLargest, device_of, devices);
}

UnseenFit siblings_by_classes(const Spread& siblings, const Spread& classes, double factor,
                              std::span<const Device> devices) {
  NeededFactors needed;
  for (const auto& [left_out, tested] : by_device(siblings)) {
    const Spread known =
        rows_where(classes, [&](const LogError& row) { return row.device != left_out; });
    if (!known.empty()) add_needed(tested, known, devices.size(), needed);
  }
  return least_factor(std::move(needed), factor, factor, device_of, devices);
}

PrecisionWidths widths_of_rows(const Spread& rows, const IntervalLaw& interval) {
  constexpr double kLeast = 0.25, kMost = 4;
  std::vector<std::pair<PrecisionWidth, std::vector<double>>> precisions;
  for (const LogError& row : rows) {
    const PrecisionWidth of = precision_of(cell_of(row));
    auto found = std::find_if(precisions.begin(), precisions.end(),
                              [&](const auto& precision) { return precision.first == of; });
    if (found == precisions.end()) found = precisions.insert(found, {of, {}});
    found->second.push_back(factor_needed(row, interval));
  }
  PrecisionWidths widths;
  for (auto& [precision, factors] : precisions) {
    if (factors.size() < kFewestOfSize) continue;
    precision.factor = std::clamp(quantile(factors, kCoverage), kLeast, kMost);
    widths.push_back(precision);
  }
  return widths;
}

IntervalLaw scaled(IntervalLaw interval, double factor) {
  for (double& log : interval.low_log) log *= factor;
  for (double& log : interval.high_log) log *= factor;
  return interval;
}

}  // namespace tilecast
