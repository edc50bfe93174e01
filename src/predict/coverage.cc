#include "predict/coverage.h"

#include <algorithm>

namespace tilecast {
namespace {

Coverage coverage_of(const Combination& combination, const Net& net, std::span<const Near> near) {
  const auto same_precision = [&](const Combination& other) {
    Combination precision = other;
    precision.software = combination.software;
    return precision == combination;
  };
  bool precision = false, anywhere = false;
  for (const DeviceResidual& c : net.residuals) {
    precision |= !c.tells_combinations() ||
                 std::any_of(c.measured.begin(), c.measured.end(), same_precision);
    anywhere |= c.covers(combination);
  }
  Coverage coverage{combination, "", {}};
  // A residual with this weight is that of the device itself.
  constexpr float kItself = 0.5f;
  bool here = true;
  for (const Near& n : near) {
    coverage.by_near.push_back(n.residual->covers(combination));
    if (n.weight >= kItself && !coverage.by_near.back()) here = false;
  }
  if (!precision) {
    coverage.missing = combination.scheme == QuantScheme::kNone ? "dtype" : "scheme";
  } else if (!anywhere) {
    coverage.missing = "software";
  } else if (!here) {
    coverage.missing = "combination";
  }
  return coverage;
}

}  // namespace

Coverages::Coverages(const Net& net, std::span<const Near> near, const Device& device)
    : net_(net), near_(near) {
  const std::vector<std::string>& vendors = net.trained_on.vendors;
  knows_vendor_ = std::find(vendors.begin(), vendors.end(), device.vendor) != vendors.end();
}

const Coverage& Coverages::of(const Combination& combination) {
  for (const Coverage& known : known_) {
    if (known.combination == combination) return known;
  }
  return known_.emplace_back(coverage_of(combination, net_, near_));
}

std::string_view Coverages::unmeasured(const Kernel& kernel, const Coverage& coverage) const {
  if (!knows_vendor_) return "vendor";
  const Forms forms = forms_of(kernel).without(net_.trained_on.forms);
  return forms.empty() ? coverage.missing : last_form_name(forms);
}

Spread spread_of(const Net& net, std::span<const Near> near, const Coverage& coverage,
                 double bound) {
  Spread spread{0, 0, 0};
  double known = 0;
  const auto add = [&](const IntervalLaw& interval, double weight) {
    const IntervalLaw::Logs logs = interval.at(bound);
    spread.low += weight * logs.low;
    spread.high += weight * logs.high;
    spread.common_share += weight * interval.common_share;
    known += weight;
  };
  for (size_t i = 0; i < near.size(); ++i) {
    if (coverage.by_near[i]) add(near[i].residual->interval, near[i].weight);
  }
  if (known < 1) add(net.interval, 1 - known);
  return {spread.low / known, spread.high / known, spread.common_share / known};
}

}  // namespace tilecast
