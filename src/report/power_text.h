#pragma once

#include <string_view>

#include "report/text_table.h"
#include "tilecast/result.h"

namespace tilecast {

/// The line of power, and that of what it costs where prices were given. `work`: what energy is of,
/// "step". `served`: the cost of tokens is that of a server under load.
void add_power(Lines& lines, const PowerForecast& power, std::string_view work,
               bool served = false);

}  // namespace tilecast
