#pragma once

// The kernels of a trace by operator: measured, forecast on a GPU, and carried to another one.

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "predict/predictor.h"
#include "profile/aten.h"
#include "profile/timeline.h"
#include "profile/trace.h"
#include "tilecast/profile.h"

namespace tilecast {

/// Events with one call, one collective, or with one name and neither.
struct OperatorGroup {
  int32_t call = -1;            ///< of ProfilerTrace::calls
  int32_t collective = -1;      ///< of ProfilerTrace::collectives
  int32_t kernel = 0;           ///< name of the one that takes most of the time; -1: not measured
  std::vector<int32_t> events;  ///< of ProfilerTrace::events
  double calls = 0;
  int64_t total_ns = 0;
  TracedKind kind = TracedKind::kUnknown;
  CallWork work;

  double measured_s() const { return static_cast<double>(total_ns) / calls / 1e9; }
};

/// All groups of a trace, the one that takes longest first. None without work of a GPU.
std::vector<OperatorGroup> operator_groups(const ProfilerTrace& trace);

/// What a program ran, of a trace without work of a GPU.
struct RecordedOperators {
  /// Without events: operators with known work that called no other one with known work.
  std::vector<OperatorGroup> groups;
  /// Calls of others that may run kernels, by name.
  std::map<std::string, int64_t> unknown;
};
RecordedOperators recorded_operators(const ProfilerTrace& trace);

/// What a call of each group takes on a device.
struct GroupTime {
  Interval seconds;  ///< 0: not known
  double common_share = 1;
  std::string limit, predictor;
  bool extrapolated = false;
};

/// Times of the groups' kernels on a device, at the clock that its board holds. `elapsed_s`: of
/// all of them, at least. Starts of short kernels are those that the vendor's profiler states.
std::vector<GroupTime> group_times(const std::vector<OperatorGroup>& groups,
                                   const Predictor& predictor, const Device& device,
                                   double elapsed_s);

/// The groups' times on another device, by what was measured and both forecasts.
std::vector<GroupTime> carried_times(const std::vector<OperatorGroup>& groups,
                                     const std::vector<GroupTime>& here,
                                     const std::vector<GroupTime>& there, const Device& from,
                                     const Device& to, const TraceConstants& constants);

/// A change of the work that was measured, as the number of samples: how much of the two
/// forecasts' errors, there and here, the measured time does not take away. 0: none; 1: another
/// dtype, whose errors have nothing in common.
double error_share_of_change(double batch_factor, bool other_dtype,
                             const TraceConstants& constants);

/// Widens `carried` by that share, for work that was changed: `here` is the forecast of what was
/// measured, `there` of the changed work, `same_gpu` whether the GPU stays.
void widen_by_change(const Interval& here, const Interval& there, double error_share, bool same_gpu,
                     Interval& carried);

/// The sum of all calls, with what the errors of one model have in common.
Interval sum_of(const std::vector<OperatorGroup>& groups, const std::vector<GroupTime>& times);

/// "[8192x2048] x [2048x16384]" of a call, at most some tensors.
std::string sizes_of(const OperatorCall& call);
/// The dtype of a call's first tensor; "": the trace does not state it.
std::string dtype_of(const OperatorCall& call);

/// Why calls take longer than they should, as far as a trace tells.
class Reasons {
 public:
  /// Both must outlive this object.
  Reasons(const ProfilerTrace& trace, const TraceConstants& constants);

  /// Of a group with a call, which takes `ratio` times as long as it should.
  std::string of(const OperatorGroup& group, double ratio) const;

 private:
  /// Share of a group's time while a collective ran beside it.
  double beside_collectives(const OperatorGroup& group) const;

  const ProfilerTrace& trace_;
  const TraceConstants& constants_;
  /// By device: from when to when collectives run, one span after the other.
  std::map<int32_t, std::vector<TraceSpan>> collectives_;
};

}  // namespace tilecast
