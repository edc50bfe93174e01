#pragma once

// Timeline, totals and rows of a program, for all kinds of forecasts.

#include <optional>
#include <string>
#include <vector>

#include "base/text_arena.h"
#include "lower/program.h"
#include "predict/predictor.h"
#include "sim/timeline.h"
#include "software/software.h"
#include "tilecast/request.h"
#include "tilecast/result.h"

namespace tilecast {

/// Totals of a program on one GPU.
struct Totals {
  Interval seconds;
  double kernels_s = 0;    ///< sum of the kernels' times
  double host_wait_s = 0;  ///< time that the GPU waits for the host
};

/// Adds the times and the work of all rows to the sums of a forecast.
void add_sums(Forecast& forecast);

/// What the software costs the request's host, whose class multiplies all of it. The software must
/// have been filled in.
HostCosts host_costs(const Execution& execution);

/// Fills in the software and what depends on it, where the request leaves them out.
void complete(Execution& execution, Software default_software);

/// Conditions that the times of kernels depend on, beside the device. Throws Error{kInput} for a
/// clock that the device cannot have, Error{kUnsupported} for one that its file does not state.
Conditions conditions_of(const Execution& execution, const Device& device);
/// The same for a single kernel.
std::optional<double> clock_of(const std::string& clocks, const Device& device);

/// Simulates the program; `times` holds the time of each kernel by its index.
Timeline run_program(const Program& program, const std::vector<KernelTime>& times,
                     double host_launch_s);

Totals totals_of(const Timeline& timeline, const std::vector<double>& kernel_counts,
                 const std::vector<KernelTime>& times);

inline Interval interval_of(const KernelTime& time) {
  return {time.seconds, time.low_s, time.high_s};
}

KernelForecast describe(const Kernel& kernel, const KernelTime& time);

/// FLOPs of one launch of a node that repeat work of the forward pass: activation checkpointing,
/// and the scores that the backward pass of fused attention computes again.
int64_t recomputed_flops(const Node& node, const Kernel& kernel);

/// A roof for each dtype that the kernels compute in and the device has a unit for.
std::vector<Roof> roofs_of(const std::vector<KernelForecast>& kernels, const Device& device);

/// One row for each event of the timeline. The names of the nodes are stored in `names`.
std::vector<KernelForecast> describe_events(const Timeline& timeline, const Program& program,
                                            const std::vector<KernelTime>& times, TextArena& names);

}  // namespace tilecast
