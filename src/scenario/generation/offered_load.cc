#include "scenario/generation/offered_load.h"

#include <algorithm>
#include <cmath>
#include <span>
#include <unordered_map>

#include "base/checked.h"
#include "ops/op_def.h"
#include "request/load.h"
#include "scenario/generation/common_prompts.h"
#include "scenario/power.h"
#include "scenario/timing.h"

namespace tilecast {
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
  const HostCosts costs = host_costs(e);
  if (!e.step_overhead_s) e.step_overhead_s = costs.step_overhead_s;
  if (!e.sequence_overhead_s) e.sequence_overhead_s = costs.sequence_overhead_s;
  if (o.kind != RequestKind::kServe) return typical;
  Load& load = typical.load;
  if (!load.server_overhead_s) load.server_overhead_s = costs.request_overhead_s;
  if (!load.request_turn_s) load.request_turn_s = costs.request_turn_s;
  typical.prompt = mean_prompt(o);
  typical.output = mean_output(o);
  if (o.load.trace.empty() && has_common_prompts(o)) {
    // A single request has no turns before it, and the whole prompt.
    load.max_prompt = longest_prompt(o);
    load.session_turns = 1;
    load.prefix_len = 0;
  }
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
  return longest > 0 ? longest : longest_prompt(o) + std::max(o.output, o.load.max_output);
}

int64_t prefill_sequences(const Request& request, int64_t batch) {
  return std::clamp<int64_t>(request.execution.max_num_batched_tokens / request.prompt, 1, batch);
}

namespace {

std::vector<RequestSpec> drawn(const Request& o, int64_t requests, double rate) {
  return draw_requests({.requests = requests,
                        .rate = rate,
                        .prompt_low = o.prompt,
                        .prompt_high = std::max(o.prompt, o.load.max_prompt),
                        .output_low = o.output,
                        .output_high = std::max(o.output, o.load.max_output)});
}

/// When conversations begin. With a warm-up, the requests that are counted come in a part of the
/// time: so as many conversations as these are begin in each such part of it.
std::vector<double> drawn_starts(const Request& o, int64_t conversations, int64_t counted) {
  const int64_t turns = o.load.session_turns;
  const double rate = o.load.rate / static_cast<double>(turns);
  const int64_t most = counted > 0 ? ceil_divide(counted, turns) : conversations;
  std::vector<double> starts;
  for (uint64_t part = 0; static_cast<int64_t>(starts.size()) < conversations; ++part) {
    const auto before = static_cast<int64_t>(starts.size());
    const int64_t count = std::min(most, conversations - before);
    const double begin = rate > 0 ? static_cast<double>(before) / rate : 0;
    for (const RequestSpec& r : draw_requests({.requests = count, .rate = rate, .seed = 1 + part}))
      starts.push_back(begin + r.arrival_s);
  }
  return starts;
}

/// Conversations as rows of a trace: they begin as a Poisson process, so that `rate` is that of
/// turns in the long run, and each turn's prompt has all that was said before.
std::vector<TraceRequest> drawn_sessions(const Request& o, int64_t count, int64_t counted) {
  const Load& load = o.load;
  const int64_t turns = load.session_turns;
  const std::vector<RequestSpec> lengths = drawn(o, count, load.rate);
  std::vector<double> starts;
  if (turns > 1) starts = drawn_starts(o, ceil_divide(count, turns), counted);
  std::vector<TraceRequest> rows;
  rows.reserve(lengths.size());
  int64_t said = 0;
  for (int64_t i = 0; i < count; ++i) {
    const RequestSpec& of = lengths[static_cast<size_t>(i)];
    const bool first = i % turns == 0;
    if (first) said = load.prefix_len;
    said = checked_add(said, of.prompt);
    rows.push_back({.arrival_s = turns > 1 ? starts[static_cast<size_t>(i / turns)] : of.arrival_s,
                    .prompt = said,
                    .output = of.output,
                    .session = i / turns,
                    .follows = !first,
                    .think_s = first ? 0 : load.session_turn_delay_s});
    said = checked_add(said, of.output);
  }
  return rows;
}

/// Each conversation keeps the adapter of its first turn; requests without one count as one each.
void draw_row_adapters(std::vector<TraceRequest>& rows, const Request& o) {
  const std::vector<int64_t> adapters =
      draw_adapters(rows.size(), o.adapters.count, o.adapters.skew);
  std::unordered_map<int64_t, int64_t> of_session;
  for (size_t i = 0; i < rows.size(); ++i)
    rows[i].adapter = rows[i].session
                          ? of_session.try_emplace(*rows[i].session, adapters[i]).first->second
                          : adapters[i];
}

/// Conversations with a rate begin without the turns before them: the first requests are not
/// counted. Sets how many, at most, and returns how many requests there are in all.
int64_t add_warmup(ServingLoad& load, const Request& o) {
  const int64_t counted = request_count(o);
  const std::optional<int64_t>& asked = o.load.warmup_request_count;
  if (!o.load.trace.empty() || o.load.rate == 0 || o.load.session_turns == 1 || asked == 0)
    return counted;
  // Guesses: enough for conversations of ten times the duration of what is counted, in a simulation
  // that takes a second at most. Recorded conversations would settle how long they last.
  constexpr int64_t kTimes = 10, kLeast = 5000, kMost = 20000;
  // A guess too: others still begin when the last ones that are counted are answered.
  constexpr int64_t kMostAfter = 10000;
  load.counted = counted;
  load.warmup = asked ? *asked : std::clamp(checked_multiply(kTimes, counted), kLeast, kMost);
  load.warms_up_fully = asked.has_value();
  const int64_t turns = o.load.session_turns;
  const int64_t all = checked_add(checked_add(counted, load.warmup), std::min(counted, kMostAfter));
  return checked_multiply(ceil_divide(all, turns), turns);
}

}  // namespace

ServingLoad make_load(const Request& o, int64_t image_tokens) {
  ServingLoad load;
  load.image_tokens = image_tokens;
  load.concurrency = client_count(o);
  const int64_t count = add_warmup(load, o);
  const bool draws_adapters = o.lora_rank > 0 && !names_adapters(o.load);
  const bool common = has_common_prompts(o);
  if (o.load.trace.empty() && !common && !draws_adapters) {
    load.requests = drawn(o, count, o.load.rate);
    for (RequestSpec& r : load.requests) r.images = images_in(r.prompt, o.images, image_tokens);
    return load;
  }
  std::vector<TraceRequest> own;
  std::span<const TraceRequest> rows = o.load.trace;
  if (rows.empty()) rows = own = drawn_sessions(o, count, load.counted);
  rows = rows.first(static_cast<size_t>(count));
  if (draws_adapters) {
    if (own.empty()) own.assign(rows.begin(), rows.end());
    draw_row_adapters(own, o);
    rows = own;
  }
  if (common) {
    add_common_prompts(load, rows, o);
    return load;
  }
  for (const TraceRequest& r : rows)
    load.requests.push_back({.arrival_s = r.arrival_s,
                             .prompt = r.prompt,
                             .output = r.output,
                             .adapter = r.adapter,
                             .images = images_in(r.prompt, o.images, image_tokens)});
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
  limits.prefix_caching = o.load.prefix_caching;
  limits.overhead_s = o.load.server_overhead_s.value_or(0);  // typical_request has filled them in
  limits.turn_s = o.load.request_turn_s.value_or(0);
  limits.block_tokens = default_block_tokens(limits.software);
  const Scheduling& s = o.scheduling;
  limits.poll_steps = checked_multiply(s.recv_interval, s.continuous_decode_steps);
  limits.batch_wait_steps = s.batch_wait_timeout_iters;
  limits.batch_wait_tokens =
      s.batch_wait_max_tokens_ratio * static_cast<double>(limits.max_num_batched_tokens);
  limits.rank_wait_steps = s.attention_dp_timeout_iters;
  limits.rank_batch_steps = s.attention_dp_batching_wait_iters;
  limits.schedules_ahead = s.async.value_or(software_def(limits.software).server.schedules_ahead);
  return limits;
}

}  // namespace tilecast
