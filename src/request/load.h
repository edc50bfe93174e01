#pragma once

// The load of a server: traces, and how many requests are simulated.

#include <string>
#include <string_view>
#include <vector>

#include "tilecast/request.h"

namespace tilecast {

/// Parses a trace and sorts it by arrival. `text` is CSV with the columns `arrival` (or
/// `arrival_s`, seconds), `prompt` and `output` (tokens); `path` is its name in messages. Throws
/// Error{kInput} with path and line for a bad value, or if there are no requests.
std::vector<TraceRequest> parse_trace(std::string_view text, const std::string& path);

/// Clients of all replicas.
int64_t client_count(const Request& request);

/// How many requests are simulated: as given, else all of a trace, else enough for a steady part.
int64_t request_count(const Request& request);

}  // namespace tilecast
