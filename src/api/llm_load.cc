#include "api/llm_load.h"

#include <algorithm>
#include <cmath>

#include "api/timing.h"
#include "request/load.h"

namespace tilecast {
namespace {

int64_t mean(int64_t low, int64_t high) { return high > low ? low + (high - low) / 2 : low; }

}  // namespace

Request typical_request(const Request& o) {
  Request typical = o;
  complete(typical.execution, Software::kVllm);
  if (o.kind != RequestKind::kServe) return typical;
  typical.prompt = mean(o.prompt, o.load.max_prompt);
  typical.output = mean(o.output, o.load.max_output);
  if (o.load.trace.empty()) return typical;
  double prompts = 0, outputs = 0;
  for (const TraceRequest& r : o.load.trace) {
    prompts += static_cast<double>(r.prompt);
    outputs += static_cast<double>(r.output);
  }
  const auto count = static_cast<double>(o.load.trace.size());
  typical.prompt = std::max<int64_t>(1, std::llround(prompts / count));
  typical.output = std::max<int64_t>(1, std::llround(outputs / count));
  return typical;
}

int64_t longest_request(const Request& o) {
  int64_t longest = 0;
  for (const TraceRequest& r : o.load.trace) longest = std::max(longest, r.prompt + r.output);
  return longest > 0
             ? longest
             : std::max(o.prompt, o.load.max_prompt) + std::max(o.output, o.load.max_output);
}

ServingLoad make_load(const Request& o) {
  ServingLoad load;
  load.concurrency = client_count(o);
  const int64_t count = request_count(o);
  if (o.load.trace.empty()) {
    load.requests = draw_requests({.requests = count,
                                   .rate = o.load.rate,
                                   .prompt_low = o.prompt,
                                   .prompt_high = std::max(o.prompt, o.load.max_prompt),
                                   .output_low = o.output,
                                   .output_high = std::max(o.output, o.load.max_output)});
    return load;
  }
  for (int64_t i = 0; i < count; ++i) {
    const TraceRequest& r = o.load.trace[static_cast<size_t>(i)];
    load.requests.push_back({r.arrival_s, r.prompt, r.output});
  }
  return load;
}

ServerLimits make_limits(const Request& o) {
  ServerLimits limits{.software = o.execution.software.value_or(Software::kVllm)};
  limits.max_num_seqs = o.load.max_num_seqs.value_or(kDefaultMaxNumSeqs);
  limits.max_num_batched_tokens = o.execution.max_num_batched_tokens;
  limits.prefix_hit_rate = o.load.prefix_hit_rate;
  limits.overhead_s = o.load.server_overhead_s;
  limits.block_tokens = default_block_tokens(limits.software);
  return limits;
}

}  // namespace tilecast
