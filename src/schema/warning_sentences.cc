#include "schema/warning_sentences.h"

#include <fmt/format.h>

#include <utility>
#include <vector>

#include "base/check.h"
#include "base/text.h"

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

}  // namespace

std::string slower_precision_text(const Warning& w) {
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

std::string does_not_fit_text(const Warning& w) {
  const auto needed = fact<int64_t>(w, "needed_bytes"), usable = fact<int64_t>(w, "usable_bytes");
  const auto* ranks = find_fact<int64_t>(w, "ranks");  // for text generation only
  std::string result = fmt::format(
      "{}does not fit: {} are missing{}; {} needed, programs see {} of {}",
      find_fact<int64_t>(w, "prefill") != nullptr  ? "a prefill worker "
      : find_fact<int64_t>(w, "encode") != nullptr ? "an encode worker "
                                                   : "",
      format_bytes(needed - usable), ranks != nullptr && *ranks > 1 ? " on each GPU" : "",
      format_bytes(needed), format_bytes(fact<int64_t>(w, "device_bytes")), w.subject);
  if (const auto* share = find_fact<double>(w, "utilization"); share != nullptr && *share < 1)
    result +=
        fmt::format("; {} may be used ({} {:.3g})", format_bytes(usable), text(w, "rule"), *share);
  if (const auto* batch = find_fact<int64_t>(w, "largest_batch"))
    result += *batch == 0 ? "; not even one sequence fits"
                          : fmt::format("; the largest batch that fits is {}", *batch);
  if (const auto* ways = find_fact<std::string>(w, "ways_that_fit"))
    result += "; fits with " + *ways;
  return ranks != nullptr ? result + remedies(w) : result;
}

std::string does_not_start_text(const Warning& w) {
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

}  // namespace tilecast
