#pragma once

// Warnings that follow from a timeline, and those that a file's reader wrote.

#include <optional>
#include <string>
#include <vector>

#include "api/timing.h"
#include "tilecast/warning.h"

namespace tilecast {

/// Below this share of the time nothing is said.
inline constexpr double kNoticedShare = 0.05;

/// The kernels' time that is outside the training range; nullopt where it is little.
std::optional<Warning> extrapolation_warning(const std::string& subject, const Timeline& timeline,
                                             const std::vector<KernelTime>& times);

/// The kernels of which the weights hold no model; nullopt where there are none.
std::optional<Warning> no_model_warning(const std::string& subject,
                                        const std::vector<KernelForecast>& kernels);

/// What the GPU waits for the host; nullopt where it is little.
std::optional<Warning> host_wait_warning(const std::string& subject, const Totals& totals);

void add_warning(std::vector<Warning>& warnings, std::optional<Warning> warning);

/// Messages of a file's reader.
void add_messages(std::vector<Warning>& warnings, WarningCode code, const std::string& subject,
                  const std::vector<std::string>& messages);

}  // namespace tilecast
