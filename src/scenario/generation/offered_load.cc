#include "scenario/generation/offered_load.h"

#include <algorithm>
#include <cmath>

#include "ops/op_def.h"
#include "request/load.h"
#include "scenario/power.h"
#include "scenario/timing.h"

namespace tilecast {
namespace {

int64_t mean(int64_t low, int64_t high) { return high > low ? low + (high - low) / 2 : low; }

}  // namespace

int64_t served_skew(const Request& request, const Graph& modules) {
  if (request.execution.skew_percent) return *request.execution.skew_percent;
  if (request.deployment.all2all == All2All::kDeepEp) return 0;
  // Mixtral's tokens choose 2 of 8 experts, which get about as many each; gpt-oss's, 4 of 128.
  constexpr int64_t kManyToChooseOf = 8;
  static const OpId op = require_op("experts");
  const auto experts = std::find_if(modules.nodes.begin(), modules.nodes.end(),
                                    [](const Node& node) { return node.op == op; });
  if (experts == modules.nodes.end()) return 0;
  const int64_t count = modules.tensor(experts->inputs[1]).shape[0];
  const auto chosen = attribute<int64_t>(*experts, "top_k");
  return count >= kManyToChooseOf * chosen ? kServedSkew : 0;
}

Request typical_request(const Request& o) {
  Request typical = o;
  Execution& e = typical.execution;
  complete(e, default_server());
  const HostCosts& costs = software_def(*e.software).costs;
  if (!e.step_overhead_s) e.step_overhead_s = costs.step_overhead_s;
  if (!e.sequence_overhead_s) e.sequence_overhead_s = costs.sequence_overhead_s;
  if (o.kind != RequestKind::kServe) return typical;
  Load& load = typical.load;
  if (!load.server_overhead_s) load.server_overhead_s = costs.request_overhead_s;
  if (!load.request_turn_s) load.request_turn_s = costs.request_turn_s;
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

int64_t prefill_sequences(const Request& request, int64_t batch) {
  return std::clamp<int64_t>(request.execution.max_num_batched_tokens / request.prompt, 1, batch);
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

Request with_limits(const Request& request, const Device& device) {
  Request result = request;
  complete_clocks(result, device, bundled_laws(), "boost");
  std::optional<int64_t>& most = result.load.max_num_seqs;
  if (most) return result;
  const SoftwareDef& asked = software_def(request.execution.software.value_or(default_server()));
  const SoftwareDef& server = asked.serves() ? asked : software_def(default_server());
  constexpr int64_t kLarge = int64_t{70} << 30;
  const bool large = device.memory_bytes >= kLarge && device.matmul_peak(DType::kFp8) > 0;
  most = large ? server.server.max_num_seqs_large : server.server.max_num_seqs;
  return result;
}

ServerLimits make_limits(const Request& o) {
  ServerLimits limits{.software = o.execution.software.value_or(default_server())};
  limits.max_num_seqs = *o.load.max_num_seqs;
  limits.max_num_batched_tokens = o.execution.max_num_batched_tokens;
  limits.prefix_hit_rate = o.load.prefix_hit_rate;
  limits.overhead_s = o.load.server_overhead_s.value_or(0);  // typical_request has filled them in
  limits.turn_s = o.load.request_turn_s.value_or(0);
  limits.block_tokens = default_block_tokens(limits.software);
  return limits;
}

}  // namespace tilecast
