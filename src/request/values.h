#pragma once

// Numbers of options as text. What reads them throws Error{kInput} naming the option in backquotes.

#include <cstdint>
#include <string>
#include <utility>

#include "tilecast/request.h"

namespace tilecast {

/// A whole number from the option's least to its most.
int64_t whole_value(const OptionDef& option, const std::string& text);

/// "800" or "800:1000"; one number is a range of itself.
std::pair<int64_t, int64_t> range_value(const OptionDef& option, const std::string& text);

/// A number from the option's least to its most.
double number_value(const OptionDef& option, const std::string& text);

/// The shortest text that is read back as the same number.
std::string number_text(int64_t value);
std::string number_text(double value);

}  // namespace tilecast
