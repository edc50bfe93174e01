// Warnings as sentences.

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "base/check.h"
#include "base/text.h"
#include "tilecast/result.h"

namespace tilecast {
namespace {

/// nullptr where the warning has no such fact.
template <typename T>
const T* find_fact(const Warning& warning, std::string_view name) {
  for (const WarningFact& fact : warning.facts) {
    if (fact.name == name) return std::get_if<T>(&fact.value);
  }
  return nullptr;
}

template <typename T>
const T& fact(const Warning& warning, std::string_view name) {
  const T* found = find_fact<T>(warning, name);
  TILECAST_CHECK(found != nullptr) << name;
  return *found;
}

const std::string& text(const Warning& warning, std::string_view name) {
  return fact<std::string>(warning, name);
}

/// "34 %"; "less than 1 %" where rounding would say 0 %.
std::string share_text(double share) {
  return share < 0.005 ? "less than 1 %" : fmt::format("{:.0f} %", 100 * share);
}

/// "prefill: "; "" for a whole pass.
std::string step_prefix(const Warning& warning) {
  return warning.subject.empty() ? "" : warning.subject + ": ";
}

std::string message(const Warning& w) { return text(w, "message"); }

std::string dtype_replaced(const Warning& w) {
  return fmt::format("{} does not support {}: forecast in {} instead", w.subject,
                     text(w, "requested"), text(w, "used"));
}

std::string quantization_ignored(const Warning& w) {
  return fmt::format("training is forecast in {}: the checkpoint's {} ({}) is for inference only",
                     text(w, "used"), text(w, "scheme"), text(w, "source"));
}

std::string scheme_replaced(const Warning& w) {
  return fmt::format(
      "the checkpoint is in {} ({}), but {} does not support {}: the weights stay in {} bits and "
      "the kernel converts them to {} ({}), {}",
      text(w, "scheme"), text(w, "source"), w.subject, text(w, "compute_dtype"),
      fact<int64_t>(w, "weight_bits"), text(w, "dtype"), text(w, "used"),
      fact<int64_t>(w, "known") != 0
          ? "as vLLM's and SGLang's Marlin kernels do"
          : "though no serving software is known to have such kernels for this GPU");
}

std::string cache_dtype_replaced(const Warning& w) {
  return fmt::format(
      "the checkpoint's KV cache is in {} ({}), but {} does not support {}: the cache is in {}",
      text(w, "requested"), text(w, "source"), w.subject, text(w, "requested"), text(w, "used"));
}

std::string extrapolated(const Warning& w) {
  return fmt::format(
      "{}{} of the time is extrapolated outside the training range; the interval is widened",
      step_prefix(w), share_text(w.share));
}

std::string no_model(const Warning& w) {
  return fmt::format(
      "{}the weights have no model for {}: {} of the time comes from the roofline of the data "
      "sheet",
      step_prefix(w), text(w, "kernels"), share_text(w.share));
}

std::string host_wait(const Warning& w) {
  std::string advice;
  if (w.subject.empty())
    advice =
        ": many short kernels; CUDA graphs or compilation would help (--host-launch-us 0 forecasts "
        "without the host)";
  else if (fact<int64_t>(w, "cuda_graphs") == 0)
    advice = "; CUDA graphs would help";
  return fmt::format("{}the GPU waits for the host {} of the time{}", step_prefix(w),
                     share_text(w.share), advice);
}

std::string unmeasured_links(const Warning& w) {
  return fmt::format(
      "{}: collectives were not measured on some of its links: {} of the time is exposed "
      "communication, in part by the law alone",
      w.subject, share_text(w.share));
}

std::string one_measured_server(const Warning& w) {
  return fmt::format(
      "{}: {} of the time is communication, in part over PCIe as it was measured on one "
      "server with L40S; PCIe of other servers may be much faster or slower: describe yours in a "
      "cluster file (--cluster FILE)",
      w.subject, share_text(w.share));
}

std::string slower_experts(const Warning& w) {
  return fmt::format("{}experts in {} take {:.0f} % longer than in {} with {} on {}",
                     step_prefix(w), text(w, "scheme"), 100 * w.share, text(w, "dtype"),
                     text(w, "software"), text(w, "device"));
}

std::string slower_precision(const Warning& w) {
  const std::string reference = text(w, "reference_dtype");
  std::vector<std::string> times;
  for (const auto& [name, words] :
       {std::pair("ttft_s", "time to first token"), std::pair("tpot_s", "time per output token")}) {
    const auto* seconds = find_fact<double>(w, name);
    if (seconds == nullptr) continue;
    times.push_back(fmt::format("{} ({}, in {} {})", words, format_seconds(*seconds), reference,
                                format_seconds(fact<double>(w, std::string("reference_") + name))));
  }
  return fmt::format("forecast to be no shorter {}in {} than in {}: {}",
                     w.subject == "cache" ? "with a cache " : "", text(w, "dtype"), reference,
                     join(times, "; "));
}

/// What a remedy costs, if its warning says so.
std::string slower(const Warning& w, const std::string& option) {
  const auto* share = find_fact<double>(w, option + "_slower_share");
  return share == nullptr ? "" : fmt::format(" (forecast {:.0f} % slower)", 100 * *share);
}

/// The single changes with which it fits, or a pair.
std::string remedies(const Warning& w) {
  std::vector<std::string> ways;
  const bool prefill = find_fact<int64_t>(w, "prefill") != nullptr;
  if (const auto* tp = find_fact<int64_t>(w, "tp_that_fits"))
    ways.push_back(fmt::format("--{}tp {}{}", prefill ? "prefill-" : "", *tp, slower(w, "tp")));
  if (const auto* dtype = find_fact<std::string>(w, "dtype_that_fits"))
    ways.push_back("--dtype " + *dtype + slower(w, "dtype"));
  if (const auto* dtype = find_fact<std::string>(w, "kv_dtype_that_fits"))
    ways.push_back("--kv-dtype " + *dtype + slower(w, "kv_dtype"));
  if (const auto* pair = find_fact<std::string>(w, "pair_that_fits")) {
    const bool both_of_prefill = prefill && pair->starts_with("--tp");
    ways.push_back((both_of_prefill ? "--prefill-" + pair->substr(2) : *pair) + slower(w, "pair"));
  }
  if (const auto* share = find_fact<double>(w, "utilization_that_fits"))
    ways.push_back(fmt::format("--gpu-memory-utilization {:.3g}", *share));
  if (const auto* tokens = find_fact<int64_t>(w, "tokens_that_fit");
      tokens != nullptr && *tokens > 0)
    ways.push_back(fmt::format("requests of at most {} tokens", *tokens));
  return ways.empty()
             ? "; no number of ranks up to 64, no lower precision and no pair of both makes it "
               "fit"
             : "; fits with " + join(ways, ", or with ");
}

std::string does_not_fit(const Warning& w) {
  const auto needed = fact<int64_t>(w, "needed_bytes"), usable = fact<int64_t>(w, "usable_bytes");
  const auto* ranks = find_fact<int64_t>(w, "ranks");  // for text generation only
  std::string result = fmt::format(
      "{}does not fit: {} are missing{}; {} needed, {} has {}",
      find_fact<int64_t>(w, "prefill") != nullptr ? "a prefill worker " : "",
      format_bytes(needed - usable), ranks != nullptr && *ranks > 1 ? " on each GPU" : "",
      format_bytes(needed), w.subject, format_bytes(fact<int64_t>(w, "device_bytes")));
  if (const auto* share = find_fact<double>(w, "utilization"); share != nullptr && *share < 1)
    result +=
        fmt::format("; {} may be used ({} {:.3g})", format_bytes(usable), text(w, "rule"), *share);
  else if (usable < fact<int64_t>(w, "device_bytes"))
    result += fmt::format(" (programs see {})", format_bytes(usable));
  if (const auto* batch = find_fact<int64_t>(w, "largest_batch"))
    result += *batch == 0 ? "; not even one sequence fits"
                          : fmt::format("; the largest batch that fits is {}", *batch);
  if (const auto* ways = find_fact<std::string>(w, "ways_that_fit"))
    result += "; fits with " + *ways;
  return ranks != nullptr ? result + remedies(w) : result;
}

std::string tight_memory(const Warning& w) {
  return fmt::format(
      "only {} ({:.1f} %) of the memory of {} are left: the step may run out of memory; the "
      "buffers of NCCL or RCCL, and what the caching allocator cannot use, are not counted",
      format_bytes(fact<int64_t>(w, "free_bytes")), 100 * w.share, w.subject);
}

std::string lengths_ignored(const Warning&) {
  return "--prompt and --output are not used: the trace has its own lengths";
}

std::string idle_clients(const Warning& w) {
  return fmt::format("{} clients, but only {} requests: the other clients send none",
                     fact<int64_t>(w, "clients"), fact<int64_t>(w, "requests"));
}

std::string overloaded(const Warning& w) {
  const std::string load = w.subject == "trace"
                               ? "the trace"
                               : fmt::format("{:.3g} requests a second", fact<double>(w, "rate"));
  return fmt::format(
      "the server does not keep up with {}: it answers {:.3g} requests a second, and the queue "
      "grows; waiting times depend on how long the load lasts",
      load, fact<double>(w, "answered"));
}

std::string does_not_start(const Warning& w) {
  const std::string longest = format_integer(fact<int64_t>(w, "max_model_len"));
  const auto tokens = fact<int64_t>(w, "tokens_that_fit");
  return tokens > 0
             ? fmt::format(
                   "the server does not start, so no load is simulated: its cache holds {} tokens, "
                   "fewer than one sequence of --max-model-len {}; use --max-model-len {} or less",
                   format_integer(tokens), longest, format_integer(tokens))
             : "the server does not start, so no load is simulated: no memory is left for the "
               "cache";
}

struct WarningDef {
  WarningCode code;
  std::string_view name;
  std::string (*text)(const Warning&);
};

constexpr WarningDef kWarnings[] = {
    {WarningCode::kModelFile, "model_file", message},
    {WarningCode::kCheckpoint, "checkpoint", message},
    {WarningCode::kDeviceFile, "device_file", message},
    {WarningCode::kDtypeReplaced, "dtype_replaced", dtype_replaced},
    {WarningCode::kQuantizationIgnored, "quantization_ignored", quantization_ignored},
    {WarningCode::kSchemeReplaced, "scheme_replaced", scheme_replaced},
    {WarningCode::kCacheDtypeReplaced, "cache_dtype_replaced", cache_dtype_replaced},
    {WarningCode::kExtrapolated, "extrapolated", extrapolated},
    {WarningCode::kUnmeasuredOperators, "unmeasured_operators", message},
    {WarningCode::kNoModel, "no_model", no_model},
    {WarningCode::kHostWait, "host_wait", host_wait},
    {WarningCode::kUnmeasuredLinks, "unmeasured_links", unmeasured_links},
    {WarningCode::kOneMeasuredServer, "one_measured_server", one_measured_server},
    {WarningCode::kSlowerExperts, "slower_experts", slower_experts},
    {WarningCode::kSlowerPrecision, "slower_precision", slower_precision},
    {WarningCode::kDoesNotFit, "does_not_fit", does_not_fit},
    {WarningCode::kTightMemory, "tight_memory", tight_memory},
    {WarningCode::kLengthsIgnored, "lengths_ignored", lengths_ignored},
    {WarningCode::kIdleClients, "idle_clients", idle_clients},
    {WarningCode::kOverloaded, "overloaded", overloaded},
    {WarningCode::kDoesNotStart, "does_not_start", does_not_start}};

const WarningDef& def_of(WarningCode code) {
  const auto* found =
      std::find_if(std::begin(kWarnings), std::end(kWarnings),
                   [code](const WarningDef& definition) { return definition.code == code; });
  TILECAST_CHECK(found != std::end(kWarnings)) << static_cast<int>(code);
  return *found;
}

}  // namespace

std::string_view warning_code_name(WarningCode code) { return def_of(code).name; }

std::string warning_text(const Warning& warning) { return def_of(warning.code).text(warning); }

std::vector<std::string> warning_texts(const std::vector<Warning>& warnings) {
  std::vector<std::string> texts;
  texts.reserve(warnings.size());
  for (const Warning& warning : warnings) texts.push_back(warning_text(warning));
  return texts;
}

std::vector<std::string> warning_code_names(const std::vector<Warning>& warnings) {
  std::vector<std::string> names;
  names.reserve(warnings.size());
  for (const Warning& warning : warnings) names.emplace_back(warning_code_name(warning.code));
  return names;
}

}  // namespace tilecast
