#include "predict/coverage.h"

#include <algorithm>

namespace tilecast {
namespace {

Coverage coverage_of(const Combination& combination, const KindModel& model,
                     const Applied& applied) {
  bool precision = false, anywhere = false, any = false, any_fp32 = false;
  for (const ClassResidual& residual : model.classes) {
    anywhere |= residual.covers(combination);
    for (const MeasuredDevice& device : residual.devices) {
      for (Combination other : device.measured) {
        any = true;
        any_fp32 |= other.dtype == DType::kFp32;
        other.software = combination.software;
        precision |= other == combination;
      }
    }
  }
  Coverage coverage{.combination = combination,
                    .missing = {},
                    .other_unit = any && !any_fp32 && combination.dtype == DType::kFp32,
                    .anywhere = anywhere};
  coverage.in_class = applied.own_class && applied.residual->covers(combination);
  coverage.on_nearest = applied.nearest != nullptr && applied.nearest->covers(combination);
  if (!precision) {
    coverage.missing = combination.scheme == QuantScheme::kNone ? "dtype" : "scheme";
  } else if (!anywhere) {
    coverage.missing = "software";
  } else if (!applied.own_class) {
    coverage.missing = "architecture";
  } else if (!coverage.in_class) {
    coverage.missing = "combination";
  }
  return coverage;
}

}  // namespace

Coverages::Coverages(const KindModel& model, const Applied& applied, const Device& device)
    : model_(model), applied_(applied) {
  const std::vector<std::string>& vendors = model.trained_on.vendors;
  knows_vendor_ = std::find(vendors.begin(), vendors.end(), device.vendor) != vendors.end();
}

const Coverage& Coverages::of(const Combination& combination) {
  for (const Coverage& known : known_) {
    if (known.combination == combination) return known;
  }
  return known_.emplace_back(coverage_of(combination, model_, applied_));
}

std::string_view Coverages::unmeasured(const Kernel& kernel, const Coverage& coverage) const {
  if (!knows_vendor_) return "vendor";
  const Forms forms = forms_of(kernel).without(model_.trained_on.forms);
  return forms.empty() ? coverage.missing : last_form_name(forms);
}

namespace {

IntervalLaw::Logs logs_of(const IntervalLaw& interval, const PrecisionWidths* widths,
                          const Combination& combination, double size) {
  const IntervalLaw::Logs logs = interval.at(size);
  const double width = width_of(widths, combination);
  return {width * logs.low, width * logs.high};
}

}  // namespace

Spread spread_of(const Applied& applied, const Coverage& coverage, double size) {
  const IntervalLaw& unseen =
      coverage.in_class ? applied.residual->interval : *applied.unmeasured_class;
  const Combination& combination = coverage.combination;
  IntervalLaw::Logs logs = logs_of(
      unseen, coverage.in_class ? applied.sibling_widths : applied.class_widths, combination, size);
  if (coverage.in_class && applied.residual->devices.size() == 1) {
    // No other device of the class says how far such devices differ, so the interval is that of all
    // classes. A device of a measured class is no less certain than one of a class that was not.
    const IntervalLaw::Logs most =
        logs_of(*applied.unmeasured_class, applied.class_widths, combination, size);
    logs = {std::max(logs.low, most.low), std::min(logs.high, most.high)};
  }
  Spread spread{logs.low, logs.high, unseen.common_share};
  if (!coverage.on_nearest || applied.similarity <= kNegligible) return spread;
  const double weight = applied.similarity;
  const IntervalLaw& own = applied.nearest->interval;
  const IntervalLaw::Logs own_logs = logs_of(own, &applied.nearest->widths, combination, size);
  spread.low += weight * (own_logs.low - spread.low);
  spread.high += weight * (own_logs.high - spread.high);
  spread.common_share += weight * (own.common_share - spread.common_share);
  return spread;
}

}  // namespace tilecast
