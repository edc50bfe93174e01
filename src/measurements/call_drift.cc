#include "measurements/call_drift.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>

#include "base/text.h"
#include "devices/registry.h"
#include "measurements/call_excess.h"
#include "predict/kernel_kinds.h"
#include "tilecast/error.h"

namespace tilecast {
namespace {

/// Rows of a window: enough that some kernels of any are much shorter than the overhead.
constexpr size_t kRowsOfWindow = 200;
constexpr size_t kMostWindows = 20;

/// Rows of one file on one GPU, in the order in which they were measured.
using Series = std::vector<KernelMeasurement*>;

std::optional<Device> known_device(const std::string& gpu) {
  try {
    return find_device(gpu);
  } catch (const Error&) {
    return std::nullopt;
  }
}

/// The overhead in the middle of each window.
std::vector<double> overheads(const Series& series, const Device& device, size_t windows) {
  const Chip chip(device, bundled_laws());
  std::vector<double> found;
  for (size_t w = 0; w < windows; ++w) {
    std::vector<LawAndExcess> calls;
    for (size_t i = series.size() * w / windows; i < series.size() * (w + 1) / windows; ++i) {
      const KernelMeasurement& m = *series[i];
      const double law_s =
          kernel_kind_def(kernel_kind(m.kernel)).law(m.kernel, chip, m.conditions).seconds;
      calls.push_back({law_s, m.measured_s - law_s});
    }
    found.push_back(smallest_excess(std::move(calls)));
  }
  return rising(found);
}

/// Between the middles of the windows, and beyond the outermost, along a line.
double at(const std::vector<double>& middles, double position) {
  const auto last = static_cast<double>(middles.size() - 2);
  const double low = std::clamp(std::floor(position), 0.0, last);
  const auto i = static_cast<size_t>(low);
  return middles[i] + (position - low) * (middles[i + 1] - middles[i]);
}

void level(const Series& series, const Device& device, MeasurementSet& set) {
  const size_t windows = std::min(kMostWindows, series.size() / kRowsOfWindow);
  if (windows < 2) return;
  const std::vector<double> middles = overheads(series, device, windows);
  const auto position = [&](size_t row) {
    return static_cast<double>(row) * static_cast<double>(windows) /
               static_cast<double>(series.size()) -
           0.5;
  };
  const double first = at(middles, position(0));
  for (size_t i = 0; i < series.size(); ++i)
    series[i]->measured_s =
        std::max(1e-7, series[i]->measured_s - (at(middles, position(i)) - first));
  set.changes.push_back(fmt::format(
      "{}: single calls slow down from the first row to the last, by {:.0f} us; this was taken off",
      printable(set.sources[series.front()->source]),
      1e6 * (at(middles, position(series.size())) - first)));
}

}  // namespace

std::vector<double> rising(const std::vector<double>& values) {
  // Pool adjacent violators: neighbours that fall are merged.
  struct Pool {
    double sum;
    size_t count;
    double mean() const { return sum / static_cast<double>(count); }
  };
  std::vector<Pool> pools;
  for (const double value : values) {
    pools.push_back({value, 1});
    while (pools.size() > 1 && pools[pools.size() - 2].mean() > pools.back().mean()) {
      pools[pools.size() - 2].sum += pools.back().sum;
      pools[pools.size() - 2].count += pools.back().count;
      pools.pop_back();
    }
  }
  std::vector<double> line;
  for (const Pool& pool : pools) line.insert(line.end(), pool.count, pool.mean());
  return line;
}

void remove_call_drift(MeasurementSet& set) {
  std::map<std::pair<size_t, std::string>, Series> all;
  for (KernelMeasurement& m : set.kernels) {
    if (m.protocol != Protocol::kSlowingCall) continue;
    m.protocol = Protocol::kSingleCall;
    if (find_kernel_kind(m.kernel)) all[{m.source, m.gpu}].push_back(&m);
  }
  for (const auto& [key, series] : all) {
    if (const std::optional<Device> device = known_device(key.second)) level(series, *device, set);
  }
}

}  // namespace tilecast
