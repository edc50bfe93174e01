#pragma once

// Warnings about a timeline, and warnings from reading files.

#include <optional>
#include <string>
#include <vector>

#include "devices/cluster.h"
#include "scenario/timing.h"
#include "tilecast/result.h"

namespace tilecast {

/// Smaller shares of the time cause no warning.
inline constexpr double kNoticedShare = 0.05;

/// The share of the time outside the training range; nullopt if it is small.
std::optional<Warning> extrapolation_warning(const std::string& subject, const Timeline& timeline,
                                             const std::vector<KernelTime>& times);
std::optional<Warning> extrapolation_warning(const std::string& subject,
                                             const std::vector<KernelForecast>& kernels);

/// Kernels for which the weights have no model; nullopt if there are none.
std::optional<Warning> no_model_warning(const std::string& subject,
                                        const std::vector<KernelForecast>& kernels);

/// The time that the GPU waits for the host; nullopt if it is small.
std::optional<Warning> host_wait_warning(const std::string& subject, double wait_s, double all_s);

/// Warnings about the links of a cluster: where no collective was measured on some of them, and
/// where PCIe was measured on one server only. `ranks`: the GPUs that are used. `share`: of the
/// time, in communication.
struct LinkOrigins {
  bool unmeasured = false, one_server = false;
};
std::vector<Warning> link_warnings(const Cluster& cluster, int64_t ranks, const LinkOrigins& links,
                                   double share);

/// A timeline, and how often its forward and backward pass, and its optimizer step, run.
struct CountedTimeline {
  const Timeline& timeline;
  const Program& program;
  int64_t passes = 1, steps = 1;
};

/// A message about operators of PyTorch that an imported graph has and Tilecast does not know, with
/// their share of the time; empty if there are none.
std::vector<std::string> unmapped_operators(const std::vector<CountedTimeline>& timelines);

/// A message about operators without any measured kernel (OpDef::unmeasured), with their share of
/// the time; empty if that is small.
std::optional<Warning> unmeasured_operators(const std::vector<CountedTimeline>& timelines);

void add_warning(std::vector<Warning>& warnings, std::optional<Warning> warning);

/// Messages from reading a file.
void add_messages(std::vector<Warning>& warnings, WarningCode code, const std::string& subject,
                  const std::vector<std::string>& messages);

}  // namespace tilecast
