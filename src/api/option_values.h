#pragma once

// How the values of options are read from text. All throw Error{kInput} naming the option.

#include <cstdint>
#include <string>
#include <utility>

namespace tilecast {

/// A whole number from 1 to 2^31: no batch or length beyond this is meant.
int64_t positive_value(const std::string& option, const std::string& text);

/// The same, up to `most`.
int64_t positive_value(const std::string& option, const std::string& text, int64_t most);

/// "800" or "800:1000"; one number is a range of itself.
std::pair<int64_t, int64_t> range_value(const std::string& option, const std::string& text);

/// A number from `least` to `most`.
double number_value(const std::string& option, const std::string& text, double least, double most);

/// Seconds, given in microseconds.
double microseconds_value(const std::string& option, const std::string& text);

}  // namespace tilecast
