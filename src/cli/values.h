#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cli/command.h"
#include "tilecast/request.h"

namespace tilecast {

/// The command-line option for an option of a request.
CommandOption command_option(const OptionDef& option);
/// The same for an option of a pass; the name must exist.
CommandOption pass_option(const std::string& name);

// Options shared by several commands.
CommandOption gpu_option();
CommandOption cluster_option();
CommandOption format_option(const std::vector<std::string>& choices);
CommandOption output_option();
CommandOption weights_option();
CommandOption calibration_option();
/// Values separated by commas; it may be given several times.
CommandOption list_option(const std::string& name, const std::string& default_value,
                          const std::string& help);

/// The given value, else `default_value`.
std::string text_of(const Given& given, const std::string& key,
                    const std::string& default_value = "");
std::vector<std::string> texts_of(const Given& given, const std::string& key);

/// "1,2,4", or several of these.
std::vector<std::string> list_of(const Given& given, const std::string& key);
std::vector<int64_t> numbers_of(const Given& given, const std::string& key);

/// The given whole number, else `default_value`. Throws UsageError if it is not a whole number from
/// `min` to `max`.
int64_t integer_of(const Given& given, const std::string& key, int64_t default_value, int64_t min,
                   int64_t max);

}  // namespace tilecast
