#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cli/command.h"
#include "tilecast/request.h"

namespace tilecast {

/// The flag of a request's option.
CommandOption command_option(const OptionDef& option);
/// That of a pass; the name must be of one.
CommandOption pass_option(const std::string& name);

// Options that several commands have.
CommandOption gpu_option();
CommandOption format_option(const std::vector<std::string>& choices);
CommandOption output_option();
CommandOption weights_option();
CommandOption calibration_option();

/// The value that was given, else `initial`.
std::string text_of(const Given& given, const std::string& key,
                    const std::string& default_value = "");
std::vector<std::string> texts_of(const Given& given, const std::string& key);

/// The whole number that was given, else `initial`. Throws UsageError where it is none or not from
/// `least` to `most`.
int64_t integer_of(const Given& given, const std::string& key, int64_t default_value, int64_t min,
                   int64_t max);

}  // namespace tilecast
