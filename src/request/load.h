#pragma once

// The load of a server: traces, and how many requests are simulated.

#include <string>
#include <string_view>
#include <vector>

#include "tilecast/request.h"

namespace tilecast {

/// The requests of a trace in the order of their arrival. `text` is CSV with the columns `arrival`
/// (or `arrival_s`, seconds), `prompt` and `output` (tokens); `path` is named in messages.
/// Throws Error{kInput} with path and line where a value is none, or where there is no request.
std::vector<TraceRequest> parse_trace(std::string_view text, const std::string& path);

/// Requests that are simulated: as asked, else all of a trace, else enough for a steady part.
int64_t request_count(const Load& load);

}  // namespace tilecast
