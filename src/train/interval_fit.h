#pragma once

// Intervals from the errors of rows that forests did not see.

#include <compare>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "devices/device.h"
#include "predict/interval.h"
#include "predict/precision_width.h"
#include "predict/trained_on.h"

namespace tilecast {

/// log(forecast / measured) of a row of unseen kernels or of an unseen device.
struct LogError {
  double value, weight;
  size_t device;
  double size;  ///< size_of
  Combination combination;
};
using Spread = std::vector<LogError>;

/// The interval of one size of kernels comes from at least so many rows of that size.
inline constexpr size_t kFewestOfSize = 50;

/// Every device counts alike: the next one is a draw among devices, not among rows.
Spread balanced(Spread spread, size_t devices);

/// That holds 80 % of the rows.
IntervalLaw interval_of(const Spread& spread, size_t devices);

/// A row and the interval of the forecasts of its kind.
struct NeededFactor {
  double factor;  ///< on the interval's logarithms with which it holds the row
  double side;    ///< the logarithm on the row's side
  double span;    ///< both sides
  auto operator<=>(const NeededFactor&) const = default;
};

/// With which an interval holds a row: the measured time is forecast · exp(-value).
NeededFactor factor_needed(const LogError& row, const IntervalLaw& interval);

/// Share of the rows of an average cell (a device's rows of one precision and software) that
/// intervals of devices hold which were not measured. An interval from a few architectures holds
/// fewer rows of the next than of their own; 0.82 is near the middle of what an 80 % interval
/// should hold of each kind, 0.75 to 0.88.
inline constexpr double kUnseenCoverage = 0.82;

/// The share that they should hold of each precision of a device, and the most that they should
/// hold on average for its sake. More than 0.4 makes most others too wide (research/law_study.md).
inline constexpr double kLeastUnseenCoverage = 0.4, kMostUnseenCoverage = 0.88;

/// What the intervals of left-out devices hold of a device's rows of one precision and software.
struct UnseenCell {
  size_t device;
  Combination combination;
  size_t rows;
  double inside;  ///< share, with the factor of all cells
  /// With a factor and widths that cells of other architectures or devices say: what the next one
  /// may expect.
  double nested_inside;
  double width = 0;  ///< of these intervals: mean difference of the logarithms
  /// The same and ten times as far as rows lie outside, which is least for the interval that holds
  /// 80 % (Gneiting, Raftery 2007).
  double score = 0;
};

/// How much wider such an interval must be: a factor on its logarithms.
struct UnseenFit {
  double factor = 1;
  /// By precision, in addition; none where they would hold left-out cells no better.
  PrecisionWidths widths;
  /// The same by vendor, from architectures of the vendor where any has the precision.
  std::map<std::string, PrecisionWidths, std::less<>> vendor_widths;
  bool enough = true;  ///< else the largest factor holds less than it should
  /// With that factor, and the widths that cells of other architectures or devices say.
  std::vector<UnseenCell> cells;
};

/// The interval of devices that were not measured: on each side at least half as wide as on the
/// other. A few measured devices that are all slower than their forecasts do not say that the next
/// one is.
IntervalLaw both_ways(IntervalLaw interval);

/// The factor with which the interval from all other architectures holds `kUnseenCoverage` of an
/// architecture that was left out. `families`: rows that were left out with their architecture;
/// `classes`: all of left-out classes.
UnseenFit fit_families(const Spread& families, const Spread& classes,
                       std::span<const Device> devices);

/// The same of left-out devices of known classes, by the interval from the class's other devices.
/// The factor is at least 1.
UnseenFit fit_siblings(const Spread& siblings, std::span<const Device> devices);

/// What the interval of other vendors' classes holds of a vendor whose devices were all left out.
/// `alone`: rows of all devices by the law alone; the other two as above.
UnseenFit judge_vendors(const Spread& alone, const Spread& families, const Spread& classes,
                        std::span<const Device> devices);

/// The share of such devices that the interval of left-out classes holds, with its factor.
UnseenFit siblings_by_classes(const Spread& siblings, const Spread& classes, double factor,
                              std::span<const Device> devices);

/// How much wider, or narrower, the interval of a measured device must be to hold 80 % of its rows
/// of each precision.
PrecisionWidths widths_of_rows(const Spread& rows, const IntervalLaw& interval);

IntervalLaw scaled(IntervalLaw interval, double factor);

}  // namespace tilecast
