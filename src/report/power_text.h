#pragma once

#include <string_view>

#include "report/text_table.h"
#include "tilecast/result.h"

namespace tilecast {

/// The line of power, and that of what it costs where prices were given. `work`: what energy is of,
/// "step".
void add_power(Lines& lines, const PowerForecast& power, std::string_view work);

}  // namespace tilecast
