#include "api/llm_load.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <tuple>

#include "base/csv.h"
#include "base/file.h"
#include "base/text.h"
#include "tilecast/error.h"

namespace tilecast {
namespace {

/// Each option that a static batch has no use for, and whether it was given.
void check_static(const LlmOptions& o) {
  const std::pair<const char*, bool> given[] = {{"rate", o.rate > 0},
                                                {"concurrency", o.concurrency > 0},
                                                {"trace", !o.trace.empty()},
                                                {"requests", o.requests > 0},
                                                {"max-num-seqs", o.max_num_seqs.has_value()},
                                                {"prefix-hit-rate", o.prefix_hit_rate > 0},
                                                {"server-overhead-s", o.server_overhead_s > 0},
                                                {"ttft-s", o.ttft_s.has_value()},
                                                {"tpot-s", o.tpot_s.has_value()}};
  for (const auto& [name, is_given] : given) {
    if (is_given)
      throw Error(ErrorKind::kInput, fmt::format("--{} needs --schedule continuous", name));
  }
  for (const auto& [name, low, high] : {std::tuple{"prompt", o.prompt, o.prompt_most},
                                        std::tuple{"output", o.output, o.output_most}}) {
    if (high > low)
      throw Error(ErrorKind::kInput,
                  fmt::format("--{} {}:{}: all sequences of a static batch are alike; give one "
                              "number, or use --schedule continuous",
                              name, low, high));
  }
}

int64_t mean(int64_t low, int64_t high) { return high > low ? low + (high - low) / 2 : low; }

}  // namespace

std::vector<TraceRequest> read_trace(const std::string& path) {
  return parse_trace(read_file(path), path);
}

std::vector<TraceRequest> parse_trace(std::string_view text, const std::string& path) {
  const CsvTable table = parse_csv(text, path);
  const auto column = [&](std::string_view name, std::string_view other) {
    const std::optional<size_t> found = table.column(other);
    return found ? *found : table.require_column(name);
  };
  const size_t arrival = column("arrival_s", "arrival"), prompt = table.require_column("prompt"),
               output = table.require_column("output");
  std::vector<TraceRequest> trace;
  for (size_t row = 0; row < table.rows.size(); ++row) {
    const auto fail = [&](size_t at, const char* expected) {
      throw Error(ErrorKind::kInput,
                  fmt::format("{}:{}: '{}': expected {}, found '{}'", path, table.lines[row],
                              table.header[at], expected, shown_name(table.rows[row][at])));
    };
    const auto number = [&](size_t at, const char* expected, double least, double most) {
      double value = least - 1;
      try {
        value = table.number(row, at);
      } catch (const Error&) {
        fail(at, expected);
      }
      if (value < least || value > most) fail(at, expected);
      return value;
    };
    constexpr double kMost = 1e9;
    const auto tokens = [&](size_t at) {
      constexpr const char* kExpected = "a whole number of tokens, 1 or more";
      const double value = number(at, kExpected, 1, kMost);
      if (value != std::floor(value)) fail(at, kExpected);
      return static_cast<int64_t>(value);
    };
    trace.push_back(
        {number(arrival, "seconds, 0 or more", 0, kMost), tokens(prompt), tokens(output)});
  }
  if (trace.empty())
    throw Error(ErrorKind::kInput,
                path + ": expected a line for each request after the header, found none");
  std::stable_sort(trace.begin(), trace.end(), [](const TraceRequest& a, const TraceRequest& b) {
    return a.arrival_s < b.arrival_s;
  });
  return trace;
}

void check_load_options(const LlmOptions& o) {
  if (!o.continuous) return check_static(o);
  const auto refuse = [](const std::string& message) { throw Error(ErrorKind::kInput, message); };
  const int loads = (o.rate > 0 ? 1 : 0) + (o.concurrency > 0 ? 1 : 0) + (o.trace.empty() ? 0 : 1);
  if (loads != 1)
    refuse(fmt::format("--schedule continuous needs one of --rate, --concurrency and --trace{}",
                       loads == 0 ? "" : ", found more than one"));
  if (o.batch != 1)
    refuse(
        "--batch does not go with --schedule continuous, whose batches follow from the load; "
        "use --concurrency");
  if (o.software == "pytorch")
    refuse(
        "--schedule continuous: PyTorch has no scheduler of requests; use --software vllm, "
        "sglang or trtllm, or --schedule static");
  if (const auto all = static_cast<int64_t>(o.trace.size()); all > 0 && o.requests > all)
    refuse(fmt::format("--requests {}: the trace has {}", o.requests, all));
  if (request_count(o) > kMostServedRequests)
    refuse(
        fmt::format("{} requests are too many to simulate; ask for the first ones with --requests, "
                    "{} at most",
                    request_count(o), kMostServedRequests));
}

LlmOptions typical_request(const LlmOptions& o) {
  LlmOptions typical = o;
  if (!o.continuous) return typical;
  typical.prompt = mean(o.prompt, o.prompt_most);
  typical.output = mean(o.output, o.output_most);
  if (o.trace.empty()) return typical;
  double prompts = 0, outputs = 0;
  for (const TraceRequest& r : o.trace) {
    prompts += static_cast<double>(r.prompt);
    outputs += static_cast<double>(r.output);
  }
  const auto count = static_cast<double>(o.trace.size());
  typical.prompt = std::max<int64_t>(1, std::llround(prompts / count));
  typical.output = std::max<int64_t>(1, std::llround(outputs / count));
  return typical;
}

int64_t longest_request(const LlmOptions& o) {
  int64_t longest = 0;
  for (const TraceRequest& r : o.trace) longest = std::max(longest, r.prompt + r.output);
  return longest > 0 ? longest
                     : std::max(o.prompt, o.prompt_most) + std::max(o.output, o.output_most);
}

int64_t request_count(const LlmOptions& o) {
  if (o.requests > 0) return o.requests;
  if (!o.trace.empty()) return static_cast<int64_t>(o.trace.size());
  // A closed loop: four rounds between the first and the last. An open one: enough that the 99th
  // percentile is the mean of ten requests.
  constexpr int64_t kRounds = 6, kFewest = 200, kMost = 20000, kOpen = 1000;
  return o.rate > 0 ? kOpen : std::clamp(kRounds * std::min(o.concurrency, kMost), kFewest, kMost);
}

ServingLoad make_load(const LlmOptions& o) {
  ServingLoad load;
  load.concurrency = o.concurrency;
  const int64_t count = request_count(o);
  if (o.trace.empty()) {
    load.requests = draw_requests({.requests = count,
                                   .rate = o.rate,
                                   .prompt_low = o.prompt,
                                   .prompt_high = std::max(o.prompt, o.prompt_most),
                                   .output_low = o.output,
                                   .output_high = std::max(o.output, o.output_most)});
    return load;
  }
  for (int64_t i = 0; i < count; ++i) {
    const TraceRequest& r = o.trace[static_cast<size_t>(i)];
    load.requests.push_back({r.arrival_s, r.prompt, r.output});
  }
  return load;
}

ServerLimits make_limits(const LlmOptions& o) {
  ServerLimits limits;
  limits.max_num_seqs = o.max_num_seqs.value_or(kDefaultMaxNumSeqs);
  limits.max_num_batched_tokens = o.max_num_batched_tokens;
  limits.prefix_hit_rate = o.prefix_hit_rate;
  limits.overhead_s = o.server_overhead_s;
  // Tokens of a block: vllm/config (CacheConfig.block_size), sglang server_args.py (page_size),
  // tensorrt_llm llmapi (KvCacheConfig.tokens_per_block).
  constexpr int64_t kVllmBlock = 16, kSglangPage = 1, kTrtllmBlock = 32;
  if (o.software == "sglang") {
    limits.policy = SchedulerPolicy::kSglang;
    limits.block_tokens = kSglangPage;
  } else if (o.software == "trtllm") {
    limits.policy = SchedulerPolicy::kTensorRtLlm;
    limits.block_tokens = kTrtllmBlock;
  } else {
    limits.policy = SchedulerPolicy::kVllm;
    limits.block_tokens = kVllmBlock;
  }
  return limits;
}

}  // namespace tilecast
