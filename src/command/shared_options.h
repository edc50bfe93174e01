#pragma once

// Options that several questions have. Each is made for the member that it writes to.

#include <string>
#include <vector>

#include "command/member.h"
#include "command/option.h"
#include "tilecast/request.h"

namespace tilecast {

CommandOption gpu_option(SetValue set);
CommandOption cluster_option(SetValue set);
CommandOption output_option(SetValue set);
CommandOption weights_option(SetValue set);
CommandOption calibration_option(SetValue set);
/// Values separated by commas; it may be given several times.
CommandOption list_option(const std::string& name, const std::string& default_value,
                          const std::string& help, SetValue set,
                          ValueType type = ValueType::kWhole);
/// A whole number with its range.
CommandOption whole_option(const std::string& names, const std::string& default_value,
                           const std::string& help, SetValue set, int64_t min, int64_t max);
CommandOption switch_option(const std::string& name, const std::string& help, SetValue set);

/// An option of a request.
CommandOption command_option(const OptionDef& option, SetValue set);
/// The same for the option of a kind of request; it must exist.
CommandOption request_option(const std::string& name, RequestKind kind, SetValue set);

/// Options of all requests form one group, "Options", with `first` before them. Options that only
/// share their name are in the group of each kind.
std::vector<OptionGroup> request_groups(std::vector<CommandOption> first, SetValue set,
                                        const std::vector<CommandOption>& last);

/// Weights and calibration of a question with a ForecasterSource.
template <typename Question>
std::vector<CommandOption> forecaster_options() {
  return {weights_option(into<&Question::forecaster, &ForecasterSource::weights>()),
          calibration_option(into<&Question::forecaster, &ForecasterSource::calibration>())};
}

template <typename Question>
std::vector<OptionGroup> request_groups(std::vector<CommandOption> first, SetValue set) {
  return request_groups(std::move(first), set, forecaster_options<Question>());
}

}  // namespace tilecast
