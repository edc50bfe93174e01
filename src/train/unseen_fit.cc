#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <optional>
#include <tuple>

#include "devices/vendor.h"
#include "predict/unmeasured.h"
#include "predict/weights.h"
#include "train/interval_fit.h"

namespace tilecast {
namespace {

/// A device's rows of one precision and software.
using Cell = std::tuple<size_t, DType, DType, QuantScheme, Software>;

Cell cell_of(const LogError& row) {
  const Combination& c = row.combination;
  return {row.device, c.dtype, c.kv_dtype, c.scheme, c.software};
}

using NeededFactors = std::map<Cell, std::vector<NeededFactor>>;

/// Forecasts double the interval of a combination that none of its rows have (learned.cc).
constexpr double kUnmeasuredCombination = 2;

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
    NeededFactor factor = factor_needed(row, interval);
    if (!is_measured(row.combination)) {
      factor.factor /= kUnmeasuredCombination;
      factor.side *= kUnmeasuredCombination;
      factor.span *= kUnmeasuredCombination;
    }
    needed[cell_of(row)].push_back(factor);
  }
}

double share_held(const std::vector<NeededFactor>& factors, double factor) {
  const auto above = std::upper_bound(
      factors.begin(), factors.end(), factor,
      [](double most, const NeededFactor& needed) { return most < needed.factor; });
  return static_cast<double>(above - factors.begin()) / static_cast<double>(factors.size());
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

/// What is left out together with a cell, and whose cells count before all others: of devices their
/// class, of architectures the vendor's.
struct Group {
  size_t left_out, vendor;
};
using GroupOf = std::function<Group(const Cell&)>;

using Precision = std::tuple<DType, DType, QuantScheme>;
Precision key_of(const Cell& cell) {
  return {std::get<1>(cell), std::get<2>(cell), std::get<3>(cell)};
}
PrecisionWidth precision_of(const Cell& cell) {
  const auto [dtype, kv_dtype, scheme] = key_of(cell);
  return {dtype, kv_dtype, scheme};
}

/// The needed factors of a precision's cells, by what is left out together.
using Groups = std::map<size_t, std::vector<const std::vector<NeededFactor>*>>;

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
      for (const std::vector<NeededFactor>* factors : cells)
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

PrecisionWidths precisions_of(const NeededFactors& needed) {
  PrecisionWidths precisions;
  for (const auto& [cell, factors] : needed) {
    const PrecisionWidth precision = precision_of(cell);
    if (std::find(precisions.begin(), precisions.end(), precision) == precisions.end())
      precisions.push_back(precision);
  }
  return precisions;
}

/// How far left-out precisions' shares lie from what they should be, on average. Each cell by the
/// widths that cells of other groups say, or without widths.
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
    const double inside = share_held(factors, fit.factor * width);
    fit.cells.push_back({.device = device,
                         .combination = {software, dtype, kv_dtype, scheme},
                         .rows = factors.size(),
                         .inside = inside,
                         .nested_inside = inside});
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
UnseenFit least_factor(const NeededFactors& needed, double smallest, double largest,
                       const GroupOf& group_of, std::span<const Device> devices) {
  if (needed.empty())
    return {.factor = 1, .widths = {}, .vendor_widths = {}, .enough = false, .cells = {}};
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

/// Cells with enough rows, each in order.
NeededFactors in_order(NeededFactors needed) {
  std::erase_if(needed, [](const auto& cell) { return cell.second.size() < kFewestOfSize; });
  for (auto& [cell, factors] : needed) std::sort(factors.begin(), factors.end());
  return needed;
}

/// What is needed by all groups but one, from rows of none of its devices.
using NeededWithout = std::function<NeededFactors(std::optional<size_t> left_out)>;

/// Judges the cell by an interval with this factor, in all.
void judge_cell(UnseenCell& cell, const std::vector<NeededFactor>& needed, double factor) {
  constexpr double kOutside = 2 / (1 - kCoverage);
  double spans = 0, outside = 0;
  for (const NeededFactor& row : needed) {
    spans += factor * row.span;
    outside += std::max(0.0, row.factor - factor) * row.side;
  }
  const auto count = static_cast<double>(needed.size());
  cell.nested_inside = share_held(needed, factor);
  cell.width = spans / count;
  cell.score = (spans + kOutside * outside) / count;
}

using FitOf = std::function<UnseenFit(const NeededFactors&)>;

/// The fit to all groups. Each is judged by what the others say alone, too.
UnseenFit judged_fit(const NeededWithout& needed_without, const FitOf& fit_of,
                     const GroupOf& group_of, std::span<const Device> devices) {
  const NeededFactors needed = needed_without(std::nullopt);
  UnseenFit fit = fit_of(needed);
  std::map<size_t, UnseenFit> others;
  for (UnseenCell& cell : fit.cells) {
    const Combination& c = cell.combination;
    const Cell key{cell.device, c.dtype, c.kv_dtype, c.scheme, c.software};
    const size_t group = group_of(key).left_out;
    if (!others.contains(group)) others[group] = fit_of(needed_without(group));
    const UnseenFit& other = others.at(group);
    const auto vendor = other.vendor_widths.find(devices[cell.device].vendor);
    const double width =
        width_of(vendor == other.vendor_widths.end() ? &other.widths : &vendor->second, c);
    judge_cell(cell, needed.at(key), other.factor * width);
  }
  return fit;
}

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

UnseenFit fit_families(const Spread& families, const Spread& classes,
                       std::span<const Device> devices) {
  constexpr double kSmallest = 0.25, kLargest = 4;
  const auto architecture = [&](size_t device) { return class_of(devices[device]).architecture; };
  const auto family_of = [&](const Cell& cell) {
    const Architecture family = architecture(std::get<0>(cell));
    return Group{static_cast<size_t>(family), static_cast<size_t>(is_amd(family))};
  };
  std::map<Architecture, Spread> by_architecture;
  for (const LogError& row : families) by_architecture[architecture(row.device)].push_back(row);
  const auto needed_without = [&](std::optional<size_t> gone) {
    NeededFactors needed;
    for (const auto& [left_out, tested] : by_architecture) {
      if (static_cast<size_t>(left_out) == gone) continue;
      const std::string& vendor = devices[tested.front().device].vendor;
      const auto is_other = [&](const LogError& row) {
        const Architecture of = architecture(row.device);
        return of != left_out && static_cast<size_t>(of) != gone;
      };
      Spread known = rows_where(classes, [&](const LogError& row) {
        return is_other(row) && devices[row.device].vendor == vendor;
      });
      if (known.empty()) known = rows_where(classes, is_other);
      if (!known.empty()) add_needed(tested, known, devices.size(), needed);
    }
    return in_order(std::move(needed));
  };
  const auto fit_of = [&](const NeededFactors& needed) {
    return least_factor(needed, kSmallest, kLargest, family_of, devices);
  };
  return judged_fit(needed_without, fit_of, family_of, devices);
}

UnseenFit fit_siblings(const Spread& siblings, std::span<const Device> devices) {
  constexpr double kLargest = 3;  // kinds with two such devices say little
  const std::map<size_t, Spread> all = by_device(siblings);
  std::map<size_t, NeededFactors> unchanged;  // by devices of other classes
  const auto needed_without = [&](std::optional<size_t> gone) {
    NeededFactors needed;
    for (const auto& [left_out, tested] : all) {
      if (left_out == gone) continue;
      const KernelClass own = class_of(devices[left_out]);
      const bool changes = gone && class_of(devices[*gone]) == own;
      NeededFactors part;
      if (changes || !unchanged.contains(left_out)) {
        const Spread known = rows_where(siblings, [&](const LogError& row) {
          return row.device != left_out && row.device != gone &&
                 class_of(devices[row.device]) == own;
        });
        if (!known.empty()) add_needed(tested, known, devices.size(), part);
      }
      if (!changes) part = unchanged.try_emplace(left_out, in_order(std::move(part))).first->second;
      needed.merge(part);
    }
    return in_order(std::move(needed));
  };
  const auto fit_of = [&](const NeededFactors& needed) {
    return least_factor(needed, 1, kLargest, device_of, devices);
  };
  return judged_fit(needed_without, fit_of, device_of, devices);
}

UnseenFit judge_vendors(const Spread& alone, const Spread& families, const Spread& classes,
                        std::span<const Device> devices) {
  UnseenFit fit{.factor = kUnmeasuredVendorRatio};
  std::map<std::string, Spread> by_vendor;
  for (const LogError& row : alone) by_vendor[devices[row.device].vendor].push_back(row);
  for (const auto& [vendor, tested] : by_vendor) {
    const auto is_other = [&](const LogError& row) { return devices[row.device].vendor != vendor; };
    const Spread known = rows_where(classes, is_other);
    if (known.empty()) continue;
    const double factor = kUnmeasuredVendorRatio *
                          fit_families(rows_where(families, is_other), known, devices).factor;
    NeededFactors needed;
    add_needed(tested, known, devices.size(), needed);
    for (const auto& [cell, factors] : in_order(std::move(needed))) {
      const auto& [device, dtype, kv_dtype, scheme, software] = cell;
      UnseenCell judged{.device = device,
                        .combination = {software, dtype, kv_dtype, scheme},
                        .rows = factors.size(),
                        .inside = share_held(factors, factor)};
      judge_cell(judged, factors, factor);
      fit.cells.push_back(judged);
    }
  }
  return fit;
}

UnseenFit siblings_by_classes(const Spread& siblings, const Spread& classes, double factor,
                              std::span<const Device> devices) {
  NeededFactors needed;
  for (const auto& [left_out, tested] : by_device(siblings)) {
    const Spread known =
        rows_where(classes, [&](const LogError& row) { return row.device != left_out; });
    if (!known.empty()) add_needed(tested, known, devices.size(), needed);
  }
  needed = in_order(std::move(needed));
  const auto fit_of = [&](const NeededFactors& of) {
    return least_factor(of, factor, factor, device_of, devices);
  };
  return judged_fit([&](std::optional<size_t>) { return needed; }, fit_of, device_of, devices);
}

}  // namespace tilecast
