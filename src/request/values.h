#pragma once

// Numbers of options as text. The parsing functions throw Error{kInput} that names the option in
// backquotes.

#include <cstdint>
#include <string>
#include <utility>

#include "tilecast/request.h"

namespace tilecast {

/// A whole number within the option's range.
int64_t whole_value(const OptionDef& option, const std::string& text);

/// "800" or "800:1000"; a single number N means N:N.
std::pair<int64_t, int64_t> range_value(const OptionDef& option, const std::string& text);

/// A number within the option's range.
double number_value(const OptionDef& option, const std::string& text);

/// MHz within the option's range, where words are known too; in Hz.
double clock_value(const OptionDef& option, const std::string& text);

/// The shortest text that parses to the same number.
std::string number_text(int64_t value);
std::string number_text(double value);

}  // namespace tilecast
