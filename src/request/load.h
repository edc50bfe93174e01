#pragma once

// The load of a server: traces, and how many requests are simulated.

#include <string>
#include <string_view>
#include <vector>

#include "tilecast/request.h"

namespace tilecast {

/// Parses a trace, CSV or JSONL (docs/reference/traces.md), and sorts it by arrival; `path` is its
/// name in messages. Throws Error{kInput} with path, line and column for a bad value, or if there
/// are no requests.
std::vector<TraceRequest> parse_trace(std::string_view text, const std::string& path);

/// Whether requests begin like others, as far as the request says.
bool has_common_prompts(const Request& request);

/// Tokens of the longest prompt and of the mean one of a load without a trace: with all that was
/// said before in the conversation.
int64_t longest_prompt(const Request& request);
int64_t mean_prompt(const Request& request);
int64_t mean_output(const Request& request);

/// Different low-rank adapters of the requests: those that a trace names, else as many as asked
/// for; 0: they have none.
int64_t adapter_count(const Request& request);
/// Whether the requests of a trace name their adapters.
bool names_adapters(const Load& load);

/// Clients of all replicas.
int64_t client_count(const Request& request);

/// How many requests are simulated: as given, else all of a trace, else enough for a steady part.
int64_t request_count(const Request& request);

}  // namespace tilecast
