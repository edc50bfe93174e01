#include <fmt/format.h>

#include <algorithm>

#include "base/json.h"
#include "base/text.h"
#include "report/kernel_text.h"
#include "report/text_table.h"
#include "tilecast/report.h"

namespace tilecast {
namespace {

std::string interval(const Estimate& e) {
  return fmt::format("{} to {}", format_seconds(e.low_s), format_seconds(e.high_s));
}

std::string limits_text(const StepForecast& step) {
  std::vector<std::string> parts;
  for (const auto& [limit, share] : step.limits) {
    if (share >= 0.05) parts.push_back(fmt::format("{} {:.0f} %", limit, 100 * share));
  }
  return join(parts, ", ");
}

/// The operators that a step spends most on.
std::string step_table(const StepForecast& step, const std::string& title) {
  std::vector<const KernelForecast*> rows;
  for (const KernelForecast& k : step.kernels) rows.push_back(&k);
  const auto seconds = [](const KernelForecast& k) {
    return k.latency_s * static_cast<double>(k.count);
  };
  std::sort(rows.begin(), rows.end(), [&](const KernelForecast* a, const KernelForecast* b) {
    return seconds(*a) > seconds(*b);
  });
  constexpr size_t kRows = 8;
  TextTable table;
  table.header = {title, "share", "each", "count", "bound", "use", ""};
  table.right = {false, true, true, true, false, true, false};
  double all = 0;
  for (const KernelForecast* k : rows) all += seconds(*k);
  for (size_t i = 0; i < std::min(kRows, rows.size()); ++i) {
    const KernelForecast& k = *rows[i];
    table.rows.push_back(
        {k.name, fmt::format("{:.1f} %", 100 * seconds(k) / all), format_seconds(k.latency_s),
         std::to_string(k.count), k.limit, fmt::format("{:.0f} %", 100 * k.utilization_ratio),
         fmt::format("{} {} {}{}", k.op, k.dtype, sizes_text(k), k.extrapolated ? " *" : "")});
  }
  return format_text_table(table, 2);
}

Json estimate_json(const Estimate& e) {
  return {{"seconds", e.seconds}, {"low_s", e.low_s}, {"high_s", e.high_s}};
}

Json step_json(const StepForecast& step) {
  Json limits = Json::object();
  for (const auto& [limit, share] : step.limits) limits[limit] = share;
  return {{"latency_s", step.time.seconds},
          {"low_s", step.time.low_s},
          {"high_s", step.time.high_s},
          {"host_wait_s", step.host_wait_s},
          {"limits", limits},
          {"kernels", kernel_list(step.kernels)}};
}

/// What is forecast, in one line.
std::string title(const LlmForecast& f) {
  const char* mean = f.lengths_vary ? "mean " : "";
  return fmt::format("{} on {}{}: {}prompt {}, {}output {}, {}{}{}, {}\n\n", f.model,
                     f.tp > 1 ? fmt::format("{} x ", f.tp) : "", f.gpu_name, mean, f.prompt, mean,
                     f.output, f.continuous ? "" : fmt::format("batch {}, ", f.batch), f.dtype,
                     f.kv_dtype == f.dtype ? "" : fmt::format(" (cache {})", f.kv_dtype),
                     f.continuous ? fmt::format("served by {}", f.software)
                                  : fmt::format("{}'s kernels", f.software));
}

/// Name, value, remark.
struct Lines {
  TextTable table;
  void add(const std::string& name, const std::string& value, const std::string& more) {
    table.rows.push_back({name, value, more});
  }
};

void add_batch_times(Lines& lines, const LlmForecast& f) {
  lines.add("time to first token", format_seconds(f.first_token.seconds),
            fmt::format("80 % interval {}; {}", interval(f.first_token), limits_text(f.prefill)));
  lines.add("time per output token", format_seconds(f.per_token.seconds),
            fmt::format("80 % interval {}; {}", interval(f.per_token), limits_text(f.decode)));
  std::vector<std::string> course;
  for (const auto& [tokens, e] : f.course)
    course.push_back(fmt::format("{} at {}", format_seconds(e.seconds), tokens));
  lines.add("  over the cache's length", "", join(course, ", "));
  lines.add("whole request", format_seconds(f.request.seconds),
            fmt::format("80 % interval {}", interval(f.request)));
  lines.add("throughput", fmt::format("{:.4g} tokens/s", f.tokens_per_s),
            f.continuous ? "written" : "written, of all sequences");
}

void add_memory(Lines& lines, const LlmForecast& f) {
  lines.add(
      "parameters", format_si(static_cast<double>(f.parameters), ""),
      f.active_parameters == f.parameters
          ? ""
          : fmt::format("{} active", format_si(static_cast<double>(f.active_parameters), "")));
  lines.add(
      "memory", format_bytes(f.peak_bytes),
      fmt::format("{} {}{}; largest batch that fits: {}", f.fits ? "of" : "DOES NOT FIT into",
                  format_bytes(f.device_bytes), f.tp > 1 ? " on each GPU" : "", f.largest_batch));
  lines.add("  weights", format_bytes(f.weights_bytes), "");
  lines.add(
      "  cache", format_bytes(f.cache_bytes),
      fmt::format("{} a token{}", format_bytes(f.kv_bytes_per_token), f.tp > 1 ? " on all" : ""));
  lines.add("  activations", format_bytes(f.activations_bytes), "");
}

std::string load_text(const LlmForecast::Serving& s) {
  if (s.trace) return fmt::format("{} requests of a trace", s.all.requests);
  if (s.rate > 0) return fmt::format("{:.4g} requests a second, {} in all", s.rate, s.all.requests);
  return fmt::format("{} client{}, {} requests", s.concurrency, s.concurrency == 1 ? "" : "s",
                     s.all.requests);
}

/// What clients see: over all requests, and over the steady part.
std::string served_table(const LlmForecast::Serving& s) {
  TextTable table;
  table.header = {"", "all requests", "steady part"};
  table.right = {false, true, true};
  const auto add = [&](const std::string& name, const auto& text) {
    table.rows.push_back({name, text(s.all), s.steady ? text(*s.steady) : "-"});
  };
  const auto number = [](double value) {
    return value >= 1000 ? fmt::format("{:.0f}", value) : fmt::format("{:.4g}", value);
  };
  add("requests", [](const ServedPart& p) { return std::to_string(p.requests); });
  const std::pair<const char*, Distribution ServedPart::*> times[] = {
      {"time to first token", &ServedPart::ttft},
      {"time per output token", &ServedPart::tpot},
      {"end to end", &ServedPart::e2e}};
  const std::pair<const char*, Estimate Distribution::*> values[] = {
      {"mean", &Distribution::mean},
      {"median", &Distribution::median},
      {"p99", &Distribution::p99}};
  for (const auto& [name, time] : times) {
    for (const auto& [which, value] : values)
      add(fmt::format("{}, {}", name, which),
          [&](const ServedPart& p) { return format_seconds((p.*time.*value).seconds); });
  }
  add("requests/s", [&](const ServedPart& p) { return number(p.requests_per_s); });
  add("output tokens/s", [&](const ServedPart& p) { return number(p.output_tokens_per_s); });
  add("total tokens/s", [&](const ServedPart& p) { return number(p.total_tokens_per_s); });
  return format_text_table(table, 2);
}

std::string limits_text(const LlmForecast::Serving& s) {
  std::vector<std::string> parts;
  if (s.ttft_limit_s) parts.push_back("first token within " + format_seconds(*s.ttft_limit_s));
  if (s.tpot_limit_s) parts.push_back("each token within " + format_seconds(*s.tpot_limit_s));
  return join(parts, ", ");
}

std::string serving_text(const LlmForecast::Serving& s) {
  Lines lines;
  lines.add("load", load_text(s),
            fmt::format("at most {} sequences and {} tokens in a step", s.max_num_seqs,
                        s.max_num_batched_tokens));
  lines.add("mean batch", fmt::format("{:.1f} sequences", s.mean_batch),
            fmt::format("decode in a step; busy {:.0f} % of the time", 100 * s.busy_share));
  lines.add(
      "cache", fmt::format("{} tokens", s.cache_tokens),
      fmt::format("used {:.0f} % on average; {} preemptions", 100 * s.cache_use, s.preemptions));
  if (s.goodput_requests_per_s)
    lines.add("goodput", fmt::format("{:.4g} requests/s", *s.goodput_requests_per_s),
              limits_text(s));
  const std::string steady =
      s.steady ? fmt::format(
                     "all but the first and the last {} to arrive, as many as were in flight "
                     "at once",
                     s.most_in_flight)
               : fmt::format(
                     "none: {} were in flight at once, and {} are too few to leave out as "
                     "many at both ends",
                     s.most_in_flight, s.all.requests);
  return fmt::format("{}\n{}  steady part: {}\n\n", format_text_table(lines.table, 2),
                     served_table(s), steady);
}

Json distribution_json(const Distribution& d) {
  return {{"mean", estimate_json(d.mean)},
          {"median", estimate_json(d.median)},
          {"p99", estimate_json(d.p99)}};
}

Json part_json(const ServedPart& p) {
  return {{"requests", p.requests},
          {"time_to_first_token", distribution_json(p.ttft)},
          {"time_per_output_token", distribution_json(p.tpot)},
          {"end_to_end", distribution_json(p.e2e)},
          {"requests_per_s", p.requests_per_s},
          {"output_tokens_per_s", p.output_tokens_per_s},
          {"total_tokens_per_s", p.total_tokens_per_s}};
}

template <typename T>
Json or_null(const std::optional<T>& value) {
  return value ? Json(*value) : Json(nullptr);
}

Json serving_json(const LlmForecast::Serving& s) {
  return {{"rate", s.rate > 0 ? Json(s.rate) : Json(nullptr)},
          {"concurrency", s.concurrency > 0 ? Json(s.concurrency) : Json(nullptr)},
          {"trace", s.trace},
          {"requests", s.all.requests},
          {"max_num_seqs", s.max_num_seqs},
          {"max_num_batched_tokens", s.max_num_batched_tokens},
          {"cache_tokens", s.cache_tokens},
          {"most_sequences", s.most_sequences},
          {"most_in_flight", s.most_in_flight},
          {"all", part_json(s.all)},
          {"steady", s.steady ? part_json(*s.steady) : Json(nullptr)},
          {"requests_per_s", s.all.requests_per_s},
          {"tokens_per_s", s.all.output_tokens_per_s},
          {"goodput_requests_per_s", or_null(s.goodput_requests_per_s)},
          {"ttft_s", or_null(s.ttft_limit_s)},
          {"tpot_s", or_null(s.tpot_limit_s)},
          {"mean_batch", s.mean_batch},
          {"busy_share", s.busy_share},
          {"cache_use", s.cache_use},
          {"preemptions", s.preemptions},
          {"keeps_up", s.keeps_up}};
}

Json memory_json(const LlmForecast& f) {
  return {{"peak_bytes", f.peak_bytes},
          {"weights_bytes", f.weights_bytes},
          {"gradients_bytes", 0},
          {"optimizer_bytes", 0},
          {"cache_bytes", f.cache_bytes},
          {"activations_bytes", f.activations_bytes},
          {"workspace_bytes", f.workspace_bytes},
          {"framework_bytes", f.framework_bytes},
          {"overhead_bytes", f.overhead_bytes},
          {"device_bytes", f.device_bytes},
          {"usable_bytes", f.usable_bytes},
          {"fits", f.fits},
          {"largest_batch", f.largest_batch}};
}

Json course_json(const LlmForecast& f) {
  Json course = Json::array();
  for (const auto& [tokens, e] : f.course) {
    Json point = estimate_json(e);
    point["kv_tokens"] = tokens;
    course.push_back(point);
  }
  return course;
}

}  // namespace

std::string llm_table(const LlmForecast& f) {
  std::string out = title(f);
  if (f.serving) out += serving_text(*f.serving);
  if (f.continuous) out += "  one request that has the server for itself\n";
  Lines lines;
  add_batch_times(lines, f);
  add_memory(lines, f);
  out += format_text_table(lines.table, 2);
  out += fmt::format("\n{}\n{}", step_table(f.prefill, "prefill step"),
                     step_table(f.decode, "decode step"));
  for (const std::string& warning : f.warnings) out += fmt::format("\nwarning: {}", warning);
  if (!f.warnings.empty()) out += "\n";
  return out;
}

std::string llm_json(const LlmForecast& f) {
  Json object = {{"schema_version", 1},
                 {"model", f.model},
                 {"gpu", f.gpu},
                 {"mode", "inference"},
                 {"schedule", f.continuous ? "continuous" : "static"},
                 {"prompt", f.prompt},
                 {"output", f.output},
                 {"batch", f.batch},
                 {"seq", f.prompt + f.output},
                 {"tp", f.tp},
                 {"dtype", f.dtype},
                 {"kv_dtype", f.kv_dtype},
                 {"software", f.software},
                 {"latency_s", f.latency.seconds},
                 {"latency_low_s", f.latency.low_s},
                 {"latency_high_s", f.latency.high_s},
                 {"forward_s", f.request.seconds},
                 {"backward_s", 0.0},
                 {"optimizer_s", 0.0},
                 {"time_to_first_token", estimate_json(f.first_token)},
                 {"time_per_output_token", estimate_json(f.per_token)},
                 {"request", estimate_json(f.request)},
                 {"course", course_json(f)},
                 {"tokens_per_s", f.tokens_per_s},
                 {"flops", f.flops},
                 {"bytes", f.bytes},
                 {"utilization_ratio", f.utilization_ratio},
                 {"parameters", f.parameters},
                 {"active_parameters", f.active_parameters},
                 {"multiplied_parameters", f.multiplied_parameters},
                 {"flops_per_token", f.flops_per_token},
                 {"attention_flops_per_token", f.attention_flops_per_token},
                 {"kv_bytes_per_token", f.kv_bytes_per_token},
                 {"memory", memory_json(f)},
                 {"prefill", step_json(f.prefill)},
                 {"decode", step_json(f.decode)},
                 {"kernels", kernel_list(f.kernels)},
                 {"warnings", f.warnings}};
  if (f.tp > 1) {
    object["ranks"] = f.tp;
    object["communication_s"] = f.communication_s;
    object["exposed_communication_s"] = f.communication_s;
    object["bubble_s"] = 0.0;
  }
  if (f.continuous) object["serving"] = f.serving ? serving_json(*f.serving) : Json(nullptr);
  return object.dump(1) + "\n";
}

std::string llm_csv(const LlmForecast& f) { return kernels_csv(f.kernels); }

}  // namespace tilecast
