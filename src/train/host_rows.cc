#include "train/host_rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>

#include "predict/learned.h"

namespace tilecast {
namespace {

// Hosts that launch without a graph take longer than this for a layer.
constexpr double kHost = 40e-6;
// Times below so many floors may be the host's.
constexpr double kNear = 1.8;
// The most that the data sheet explains of a kernel as short as the floor: the rows of a series may
// all be of long kernels.
constexpr double kExplained = 0.5;
// A kernel computes fewer rows in at most the time of more, padded. Times jitter by 10 %.
constexpr double kJitter = 1.1;
// Libraries choose kernels badly, too, rarely by more than this for the fewest rows of a layer.
constexpr double kFirstCall = 1.3;
// Rows of a layer that differ in m alone: from so many on it was measured as a sweep.
constexpr size_t kSweep = 8;
constexpr float kAssumedWeight = 0.3f;

/// Rows that one sequence of calls measured: device, operator and file, precision, software.
using Series = std::tuple<size_t, std::string, Software>;
/// And those that differ in m alone: batch, n, k, layout.
using Layer = std::tuple<Series, int64_t, int64_t, int64_t, int64_t, int64_t>;

Series series_of(const TrainingRow& row) {
  return {row.group, std::string(precision_name(row.kernel)), row.conditions.software};
}

Layer layer_of(const TrainingRow& row) {
  const Gemm gemm = gemm_of(row.kernel);
  return {series_of(row), gemm.batch, gemm.n, gemm.k, gemm.trans_a, gemm.trans_b};
}

struct Floor {
  double seconds, bound_s;

  bool is_hosts() const { return seconds > kHost && bound_s < kExplained * seconds; }
};

/// Seconds by m; after `accumulate` the least of all larger m as well.
class Sweep {
 public:
  void add(int64_t m, double seconds) {
    const auto [at, fresh] = least_.emplace(m, seconds);
    if (!fresh) at->second = std::min(at->second, seconds);
  }
  void accumulate() {
    double least = 1e30;
    for (auto at = least_.rbegin(); at != least_.rend(); ++at) {
      larger_[at->first] = least;
      least = std::min(least, at->second);
    }
  }
  /// The least time of a larger m.
  double larger(int64_t m) const { return larger_.at(m); }
  /// A sweep starts with one row. Tuned times (rocBLAS) are of sizes chosen by hand.
  bool is_sweep() const { return least_.size() >= kSweep && least_.begin()->first == 1; }

 private:
  std::map<int64_t, double> least_, larger_;
};

void assume(TrainingRow& row, double seconds) {
  row.seconds = seconds;
  row.weight = kAssumedWeight;
  row.assumed = true;
}

}  // namespace

std::vector<std::string> assume_host_rows(TrainingData& data,
                                          const std::vector<bool>& single_call) {
  std::map<Series, Floor> floors;
  std::map<Layer, Sweep> sweeps;
  std::vector<TrainingRow*> rows;
  for (TrainingRow& row : data.rows) {
    if (single_call[row.group] || !row.kernel.is<Gemm>()) continue;
    rows.push_back(&row);
    const Floor found{
        row.seconds,
        bound_of(kernel_kind(row.kernel), row.kernel, data.running(row), row.conditions).seconds()};
    const auto [floor, fresh] = floors.emplace(series_of(row), found);
    if (found.seconds < floor->second.seconds) floor->second = found;
    sweeps[layer_of(row)].add(gemm_of(row.kernel).m, row.seconds);
  }
  for (auto& [layer, sweep] : sweeps) sweep.accumulate();

  size_t hosts = 0, first = 0;
  for (TrainingRow* row : rows) {
    const Floor& floor = floors.at(series_of(*row));
    const Sweep& sweep = sweeps.at(layer_of(*row));
    const int64_t m = gemm_of(row->kernel).m;
    const double larger_s = sweep.larger(m);
    if (floor.is_hosts()) {
      // The law is taken, so that a residual learned above the floor is not carried below it.
      if (row->seconds >= kNear * floor.seconds && row->seconds <= kJitter * larger_s) continue;
      assume(*row, std::min({row->seconds, larger_s, data.law_s(*row)}));
      ++hosts;
    } else if (m == 1 && sweep.is_sweep() && row->seconds > kFirstCall * larger_s) {
      assume(*row, larger_s);
      ++first;
    }
  }
  std::vector<std::string> report;
  if (hosts > 0)
    report.push_back(
        fmt::format("took the law's time for {} rows near the floor of a host that launched "
                    "without a graph, or longer than larger products",
                    hosts));
  if (first > 0)
    report.push_back(fmt::format(
        "took the time of larger products for {} rows, the first of their layers' sweeps", first));
  return report;
}

}  // namespace tilecast
