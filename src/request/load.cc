#include "request/load.h"

#include <algorithm>
#include <set>

#include "base/checked.h"

namespace tilecast {
namespace {

int64_t mean(int64_t low, int64_t high) { return high > low ? low + (high - low) / 2 : low; }

}  // namespace

bool has_common_prompts(const Request& request) {
  const Load& load = request.load;
  if (load.trace.empty()) return load.session_turns > 1 || load.prefix_len > 0;
  return std::any_of(load.trace.begin(), load.trace.end(), [](const TraceRequest& r) {
    return r.session.has_value() || !r.hash_ids.empty();
  });
}

int64_t longest_prompt(const Request& request) {
  const Load& load = request.load;
  const int64_t prompt = std::max(request.prompt, load.max_prompt),
                output = std::max(request.output, load.max_output);
  return checked_add(load.prefix_len,
                     checked_add(checked_multiply(load.session_turns, prompt),
                                 checked_multiply(load.session_turns - 1, output)));
}

int64_t mean_prompt(const Request& request) {
  const Load& load = request.load;
  const int64_t turns = load.session_turns;
  return load.prefix_len + mean(request.prompt, load.max_prompt) * (turns + 1) / 2 +
         mean_output(request) * (turns - 1) / 2;
}

int64_t mean_output(const Request& request) {
  return mean(request.output, request.load.max_output);
}

bool names_adapters(const Load& load) {
  return std::any_of(load.trace.begin(), load.trace.end(),
                     [](const TraceRequest& r) { return r.adapter.has_value(); });
}

int64_t adapter_count(const Request& request) {
  if (request.lora_rank == 0) return 0;
  if (!names_adapters(request.load)) return request.adapters.count;
  std::set<int64_t> named;
  for (const TraceRequest& r : request.load.trace) {
    if (r.adapter) named.insert(*r.adapter);
  }
  return static_cast<int64_t>(named.size());
}

int64_t client_count(const Request& request) {
  return checked_multiply(request.load.concurrency, request.deployment.replicas);
}

int64_t request_count(const Request& request) {
  const Load& load = request.load;
  if (load.requests > 0) return load.requests;
  if (!load.trace.empty()) return static_cast<int64_t>(load.trace.size());
  // With clients: four requests per client between the first and the last. With a rate: enough that
  // ten requests are slower than the 99th percentile.
  constexpr int64_t kRounds = 6, kMin = 200, kMax = 20000, kOpen = 1000;
  return load.rate > 0 ? kOpen
                       : std::clamp(kRounds * std::min(client_count(request), kMax), kMin, kMax);
}

}  // namespace tilecast
