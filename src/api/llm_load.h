#pragma once

// From the options of a continuously batching server to what its scheduler sees.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "sim/serving.h"
#include "tilecast/llm.h"

namespace tilecast {

/// The requests of a trace in the order of their arrival. `text` is CSV with the columns `arrival`
/// (or `arrival_s`, seconds), `prompt` and `output` (tokens); `path` is named in messages.
/// Throws Error{kInput} with path and line where a value is none, or where there is no request.
std::vector<TraceRequest> parse_trace(std::string_view text, const std::string& path);

/// Throws Error{kInput} where options contradict each other or would have no effect.
void check_load_options(const LlmOptions& options);

/// The options with one prompt and one output: the means of what is asked. For a static batch they
/// are as they were.
LlmOptions typical_request(const LlmOptions& options);

/// Tokens of the longest request, prompt and output together.
int64_t longest_request(const LlmOptions& options);

/// Requests that are simulated: as asked, else all of a trace, else enough for a steady part.
int64_t request_count(const LlmOptions& options);

ServingLoad make_load(const LlmOptions& options);

/// All but the blocks of the cache.
ServerLimits make_limits(const LlmOptions& options);

}  // namespace tilecast
