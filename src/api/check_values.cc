// What the fields of options may hold: the same as their options take from the command line, which
// the setters of the option tables check.

#include <fmt/format.h>

#include <cmath>

#include "api/internal.h"
#include "base/check.h"
#include "tilecast/error.h"
#include "tilecast/llm.h"

namespace tilecast {
namespace {

/// Throws as the setter of the option does.
template <typename Options>
void check(const std::vector<OptionDef<Options>>& table, const std::string& name,
           const std::string& text) {
  const OptionDef<Options>* option = find_option(table, name);
  TILECAST_CHECK(option != nullptr) << name;
  Options scratch;
  set_option(scratch, *option, text);
}

std::string in_microseconds(double seconds) { return fmt::format("{}", seconds * 1e6); }

/// 0 as the high end: there is none.
std::string range_text(int64_t low, int64_t high) {
  return high == 0 ? std::to_string(low) : fmt::format("{}:{}", low, high);
}

}  // namespace

void check_predictor(const std::string& name) { check(forecast_options(), "predictor", name); }

void check_values(const ForecastOptions& o) {
  const auto& table = forecast_options();
  check(table, "batch", std::to_string(o.batch));
  if (o.seq) check(table, "seq", std::to_string(*o.seq));
  if (!o.dtype.empty()) check(table, "dtype", o.dtype);
  check(table, "attention", o.attention);
  check(table, "fusion", o.fusion);
  check(table, "optimizer", o.optimizer);
  check(table, "predictor", o.predictor);
  check(table, "software", o.software);
  check(table, "host-launch-us", in_microseconds(o.host_launch_s));
  check(table, "dp", std::to_string(o.dp));
  check(table, "tp", std::to_string(o.tp));
  check(table, "pp", std::to_string(o.pp));
  check(table, "microbatches", std::to_string(o.microbatches));
}

void check_values(const LlmOptions& o) {
  const auto& table = llm_options();
  check(table, "prompt", range_text(o.prompt, o.prompt_most));
  check(table, "output", range_text(o.output, o.output_most));
  check(table, "batch", std::to_string(o.batch));
  if (!o.dtype.empty()) check(table, "dtype", o.dtype);
  check(table, "tp", std::to_string(o.tp));
  check(table, "software", o.software);
  check(table, "predictor", o.predictor);
  check(table, "host-launch-us", in_microseconds(o.host_launch_s));
  check(table, "max-num-batched-tokens", std::to_string(o.max_num_batched_tokens));
  check(table, "gpu-memory-utilization", fmt::format("{}", o.gpu_memory_utilization));
  check(table, "prefix-hit-rate", fmt::format("{}", o.prefix_hit_rate));
  check(table, "server-overhead-s", fmt::format("{}", o.server_overhead_s));
  if (o.max_num_seqs) check(table, "max-num-seqs", std::to_string(*o.max_num_seqs));
  if (o.ttft_s) check(table, "ttft-s", fmt::format("{}", *o.ttft_s));
  if (o.tpot_s) check(table, "tpot-s", fmt::format("{}", *o.tpot_s));
  check(table, "skew", std::to_string(o.skew_percent));
  // 0: not given.
  if (o.rate != 0) check(table, "rate", fmt::format("{}", o.rate));
  if (o.concurrency != 0) check(table, "concurrency", std::to_string(o.concurrency));
  if (o.requests != 0) check(table, "requests", std::to_string(o.requests));
  for (const TraceRequest& r : o.trace) {
    if (!(r.arrival_s >= 0) || !std::isfinite(r.arrival_s) || r.prompt < 1 || r.output < 1)
      throw Error(ErrorKind::kInput,
                  "trace: expected arrivals of 0 s or more and lengths of 1 token or more");
  }
}

void check_values(const KernelOptions& options) {
  check(forecast_options(), "software", options.software);
}

}  // namespace tilecast
