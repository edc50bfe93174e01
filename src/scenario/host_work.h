#pragma once

// The host's part of a training step with `optimizer-offload`.

#include <vector>

#include "lower/program.h"
#include "predict/predictor.h"
#include "scenario/pass/pass.h"

namespace tilecast {

/// What one GPU of a node gets, while all update their parameters at once.
struct HostRates {
  double link_bytes_per_s = 0;    ///< of copies, in one direction
  double memory_bytes_per_s = 0;  ///< 0: the host does nothing
};

/// Without such work, none. Throws Error{kUnsupported} if the device's file names no link to a
/// host.
HostRates host_rates(const PassSetup& setup, const LawConstants& laws);

/// Gives copies to and from the host, and the step there, their times: one after the other, nothing
/// of it beside computing. The copies before and after an update wait for each other.
void price_host_work(const Program& program, const HostRates& rates,
                     std::vector<KernelTime>& times);

}  // namespace tilecast
