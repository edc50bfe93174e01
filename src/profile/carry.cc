#include "profile/carry.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/text.h"
#include "devices/cluster.h"
#include "profile/changed_work.h"
#include "profile/collective_calls.h"
#include "profile/replay.h"
#include "scenario/internal.h"
#include "tilecast/error.h"

namespace tilecast {
namespace {

/// Durations of a trace's events if a call of each group takes this time. `even`: the events of a
/// call share it evenly, else as they were measured.
std::vector<int64_t> event_durations(const ReadTrace& one, const std::vector<GroupTime>& times,
                                     double scale, bool even) {
  std::vector<int64_t> durations(one.trace.events.size(), 0);
  for (size_t g = 0; g < one.groups.size(); ++g) {
    const OperatorGroup& group = one.groups[g];
    const double call_s = scale * times[g].seconds;
    const double each_ns = call_s * group.calls / static_cast<double>(group.events.size()) * 1e9;
    const double measured_s = group.measured_s();
    const bool evenly = even || !(measured_s > 0);
    const double ratio = evenly ? 1 : call_s / measured_s;
    for (const int32_t i : group.events) {
      const auto measured =
          static_cast<double>(one.trace.events[static_cast<size_t>(i)].duration_ns);
      const double ns =
          std::min(evenly ? each_ns : measured * ratio, static_cast<double>(kLongestTraceNs));
      durations[static_cast<size_t>(i)] = std::llround(ns);
    }
  }
  return durations;
}

std::string host_text(const TraceQuery& query) {
  if (!query.host_trace.empty()) return "that of " + printable(query.host_trace);
  if (!std::isfinite(query.host_speed)) return "all launched in time, as from a CUDA graph";
  if (query.host_speed == 1) return "as in the trace";
  return fmt::format("{:.3g} times as fast as in the trace", query.host_speed);
}

/// Carries one trace.
class Carrier {
 public:
  Carrier(const ReadTrace& one, const Forecaster& forecaster, const TraceQuery& query)
      : one_(one),
        query_(query),
        forecaster_(forecaster),
        predictor_(*forecaster.impl().learned),
        to_(query.gpu ? query.gpu->content->device : *one.device) {
    for (const OperatorGroup& group : one.groups) total_ns_ += group.total_ns;
    total_ns_ = std::max<int64_t>(1, total_ns_);
  }

  Carried run();

 private:
  const TraceConstants& constants() const { return predictor_.laws().trace; }
  double share_of(const OperatorGroup& group) const;
  void carry_kernels();
  void carry_collectives();
  /// The share of a changed batch or dtype in the intervals.
  void widen(const std::vector<OperatorGroup>& changed, const std::vector<GroupTime>& there);
  void replay_own();
  void replay_with_host();
  /// The span for the values, low and high ends of all times.
  Interval span_of_times(const ReadTrace& replayed_trace, const std::vector<GroupTime>& times,
                         bool even);

  const ReadTrace& one_;
  const TraceQuery& query_;
  const Forecaster& forecaster_;
  const Predictor& predictor_;
  const Device to_;
  int64_t total_ns_ = 0;  ///< of all groups
  Carried carried_;
};

double Carrier::share_of(const OperatorGroup& group) const {
  return static_cast<double>(group.total_ns) / static_cast<double>(total_ns_);
}

void Carrier::carry_kernels() {
  const WorkChange change{query_.batch_factor, query_.dtype};
  CarriedTrace& totals = carried_.totals;
  const ChangedWork changed =
      change.any() ? changed_work(one_.trace, one_.groups, change, query_.path)
                   : ChangedWork{.groups = one_.groups,
                                 .kept = std::vector<bool>(one_.groups.size(), false)};
  const std::vector<GroupTime> there =
      group_times(changed.groups, predictor_, to_, seconds_of(one_.span.ns()));
  carried_.times = carried_times(one_.groups, one_.times, there, *one_.device, to_, constants());
  widen(changed.groups, there);
  for (size_t i = 0; i < there.size(); ++i) {
    if (!(there[i].seconds > 0) && one_.groups[i].kind != TracedKind::kTransfer &&
        one_.groups[i].kind != TracedKind::kCollective)
      totals.unknown_share += share_of(one_.groups[i]);
    if (changed.kept[i]) totals.kept_share += share_of(one_.groups[i]);
  }
  if (!change.any()) return;
  totals.traced_batch = changed.traced_batch;
  totals.batch = changed.batch;
  totals.traced_dtype = changed.traced_dtype;
  totals.dtype = query_.dtype;
}

void Carrier::widen(const std::vector<OperatorGroup>& changed,
                    const std::vector<GroupTime>& there) {
  const double share =
      error_share_of_change(query_.batch_factor, !query_.dtype.empty(), constants());
  for (size_t i = 0; i < changed.size(); ++i) {
    if (changed[i].work.kernels == one_.groups[i].work.kernels) continue;
    widen_by_change(one_.times[i].seconds, there[i].seconds, share, to_.id == one_.device->id,
                    carried_.times[i].seconds);
  }
}

void Carrier::carry_collectives() {
  double stated = 0, all = 0;
  std::optional<Cluster> cluster;
  if (!query_.cluster.empty()) cluster = find_cluster(query_.cluster);
  if (cluster) carried_.totals.cluster = cluster->id;
  for (size_t i = 0; i < one_.groups.size(); ++i) {
    const OperatorGroup& group = one_.groups[i];
    if (group.kind != TracedKind::kCollective) continue;
    all += share_of(group);
    if (!cluster || group.collective < 0) continue;
    const std::optional<Interval> time =
        collective_there(one_.trace.collectives[static_cast<size_t>(group.collective)],
                         one_.trace.world_size, *cluster);
    if (!time) continue;
    stated += share_of(group);
    carried_.times[i] = {.seconds = *time, .predictor = "collective"};
  }
  if (all == 0) {
    if (cluster)
      carried_.warnings.emplace_back(
          "the trace has no collectives: only the GPUs of the cluster matter to it");
    return;
  }
  if (!cluster) {
    carried_.assumptions.push_back(fmt::format(
        "collectives ({:.1f} % of the time) keep their measured time, in which they also wait for "
        "other ranks, as no cluster is given",
        100 * all));
    return;
  }
  carried_.assumptions.push_back(
      "collectives take their forecast on the cluster: that they wait for other ranks is left out");
  if (stated < all)
    carried_.warnings.push_back(
        fmt::format("collectives with {:.1f} % of the time do not state kind, size and ranks: they "
                    "keep their measured time",
                    100 * (all - stated)));
}

Interval Carrier::span_of_times(const ReadTrace& trace, const std::vector<GroupTime>& times,
                                bool even) {
  // Errors cancel in the sum; the ends of the span are those of all kernels, scaled to that sum's.
  const Interval& sum = carried_.totals.kernels_s;
  carried_.durations_ns = event_durations(trace, times, 1, even);
  const auto span = [&](double scale) {
    return seconds_of(replayed_span_ns(trace.trace, event_durations(trace, times, scale, even),
                                       query_.host_speed, constants()));
  };
  const double value = std::max(sum.value, 1e-12);
  return {span(1), span(sum.low / value), span(sum.high / value)};
}

void Carrier::replay_own() {
  carried_.totals.kernels_s = sum_of(one_.groups, carried_.times);
  carried_.totals.span_s = span_of_times(one_, carried_.times, false);
}

void Carrier::replay_with_host() {
  carried_.host = read_trace(forecaster_, query_.host_trace, query_.gpu);
  const ReadTrace& host = *carried_.host;
  check_gpu_work(host.trace, query_.host_trace, "replay");
  warn_of_file(carried_.warnings, host.trace, query_.host_trace);
  const std::vector<int32_t> matched = matched_groups(one_, host);
  std::vector<GroupTime> times(host.groups.size());
  double unmatched_s = 0, total_s = 0;
  for (size_t i = 0; i < matched.size(); ++i) {
    const double measured_s = host.groups[i].measured_s();
    total_s += measured_s * host.groups[i].calls;
    if (matched[i] >= 0) {
      times[i] = carried_.times[static_cast<size_t>(matched[i])];
    } else {
      times[i].seconds = {measured_s, measured_s, measured_s};
      unmatched_s += measured_s * host.groups[i].calls;
    }
  }
  carried_.assumptions.push_back(fmt::format(
      "{:.1f} % of the kernels' time of {} has the same operator in this trace, the "
      "rest is as measured there",
      100 * (1 - unmatched_s / std::max(total_s, 1e-12)), printable(query_.host_trace)));
  carried_.totals.kernels_s = sum_of(host.groups, times);
  carried_.totals.span_s = span_of_times(host, times, true);
}

/// Of operators that were recorded without times: their forecasts there.
Carried forecast_of_recorded(const ReadTrace& one, const Predictor& predictor,
                             const TraceQuery& query) {
  const Device& to = query.gpu ? query.gpu->content->device : *one.device;
  const WorkChange change{query.batch_factor, query.dtype};
  Carried carried;
  carried.totals.gpu = to.id;
  carried.totals.gpu_name = to.name;
  carried.totals.host = "not in the trace";
  std::vector<OperatorGroup> groups = one.groups;
  if (change.any()) {
    ChangedWork changed = changed_work(one.trace, one.groups, change, query.path);
    groups = std::move(changed.groups);
    carried.totals.traced_batch = changed.traced_batch;
    carried.totals.batch = changed.batch;
    carried.totals.traced_dtype = changed.traced_dtype;
    carried.totals.dtype = query.dtype;
  }
  carried.times = group_times(groups, predictor, to, 0);
  carried.totals.kernels_s = sum_of(groups, carried.times);
  carried.totals.span_s = carried.totals.kernels_s;
  return carried;
}

Carried Carrier::run() {
  carried_.totals.gpu = to_.id;
  carried_.totals.gpu_name = to_.name;
  carried_.totals.host = host_text(query_);
  carry_kernels();
  carry_collectives();
  if (query_.host_trace.empty())
    replay_own();
  else
    replay_with_host();
  return std::move(carried_);
}

}  // namespace

bool asks_to_carry(const TraceQuery& query) {
  return query.gpu || query.batch_factor != 1 || !query.dtype.empty() || !query.cluster.empty();
}

Carried carry(const ReadTrace& one, const Forecaster& forecaster, const TraceQuery& query) {
  const bool recorded = one.unmeasured() && !one.groups.empty();
  if (!recorded) check_gpu_work(one.trace, query.path, "carry to another one");
  if (recorded && !query.host_trace.empty())
    throw Error(ErrorKind::kInput,
                "`trace-host`: the trace has no times that could be carried to another host");
  if (!one.device && !(recorded && query.gpu))
    throw Error(ErrorKind::kInput,
                "the GPU of the trace must be known to carry it: give it by `traced-gpu`");
  if (recorded) return forecast_of_recorded(one, *forecaster.impl().learned, query);
  return Carrier(one, forecaster, query).run();
}

}  // namespace tilecast
