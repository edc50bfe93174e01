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
std::string step_table(const StepForecast& step, const std::string& title,
                       const TableStyle& style) {
  std::vector<const KernelForecast*> rows;
  for (const KernelForecast& k : step.kernels) rows.push_back(&k);
  const auto seconds = [](const KernelForecast& k) {
    return k.latency_s * static_cast<double>(k.count);
  };
  std::sort(rows.begin(), rows.end(), [&](const KernelForecast* a, const KernelForecast* b) {
    return seconds(*a) > seconds(*b);
  });
  TextTable table;
  table.header = {title, "share", "each", "count", "bound", "use", "kernel", "sizes"};
  table.right = {false, true, true, true, false, true, false};
  table.fit = kernel_columns_fit();
  table.least = kernel_columns_least();
  constexpr size_t kBound = 4;
  table.color = [&rows](size_t row, size_t column) {
    return column == kBound ? limit_color(rows[row]->limit) : Color::kNone;
  };
  double all = 0;
  for (const KernelForecast* k : rows) all += seconds(*k);
  for (size_t i = 0; i < std::min(style.rows, rows.size()); ++i) {
    const KernelForecast& k = *rows[i];
    table.rows.push_back({k.name, fmt::format("{:.1f} %", 100 * seconds(k) / all),
                          format_seconds(k.latency_s) + (k.extrapolated ? "*" : " "),
                          format_integer(k.count), k.limit,
                          fmt::format("{:.0f} %", 100 * k.utilization_ratio), k.op,
                          sizes_text(k) + (style.width >= kRoomForMore ? " " + k.dtype : "")});
  }
  return format_text_table(table, style);
}

Json estimate_json(const Estimate& e) {
  return {{"seconds", e.seconds}, {"low_s", e.low_s}, {"high_s", e.high_s}};
}

Json step_json(const StepForecast& step) {
  Json kernels = Json::array();
  for (const KernelForecast& k : step.kernels) kernels.push_back(kernel_object(k));
  Json limits = Json::object();
  for (const auto& [limit, share] : step.limits) limits[limit] = share;
  return {
      {"latency_s", step.time.seconds},  {"low_s", step.time.low_s}, {"high_s", step.time.high_s},
      {"host_wait_s", step.host_wait_s}, {"limits", limits},         {"kernels", kernels}};
}

}  // namespace

std::string llm_table(const LlmForecast& f, const TableStyle& style) {
  const std::string title =
      fmt::format("{} on {}{}: prompt {}, output {}, batch {}, {}{}, {}'s kernels", f.model,
                  f.tp > 1 ? fmt::format("{} x ", f.tp) : "", f.gpu_name, format_integer(f.prompt),
                  format_integer(f.output), format_integer(f.batch), f.dtype,
                  f.kv_dtype == f.dtype ? "" : fmt::format(" (cache {})", f.kv_dtype), f.software);
  TextTable table;
  table.fit = {Fit::kWhole, Fit::kWhole, Fit::kWrap};
  table.color = [&](size_t row, size_t column) {
    return column == 2 ? note_color(table.rows[row][column]) : Color::kNone;
  };
  const auto line = [&](const std::string& name, const std::string& value,
                        const std::string& more) { table.rows.push_back({name, value, more}); };
  line("time to first token", format_seconds(f.first_token.seconds),
       fmt::format("80 % interval {}; {}", interval(f.first_token), limits_text(f.prefill)));
  line("time per output token", format_seconds(f.per_token.seconds),
       fmt::format("80 % interval {}; {}", interval(f.per_token), limits_text(f.decode)));
  std::vector<std::string> course;
  for (const auto& [tokens, e] : f.course)
    course.push_back(fmt::format("{} at {}", format_seconds(e.seconds), format_integer(tokens)));
  line("  over the cache's length", "", join(course, ", "));
  line("whole request", format_seconds(f.request.seconds),
       fmt::format("80 % interval {}", interval(f.request)));
  line("throughput", format_count(f.tokens_per_s) + " tokens/s", "written, of all sequences");
  line("parameters", format_si(static_cast<double>(f.parameters), ""),
       f.active_parameters == f.parameters
           ? ""
           : fmt::format("{} active", format_si(static_cast<double>(f.active_parameters), "")));
  line("memory", format_bytes(f.peak_bytes),
       fmt::format("of {}{}; largest batch that fits: {}", format_bytes(f.device_bytes),
                   f.tp > 1 ? " on each GPU" : "", format_integer(f.largest_batch)));
  line("  weights", format_bytes(f.weights_bytes), "");
  line("  cache", format_bytes(f.cache_bytes),
       fmt::format("{} a token{}", format_bytes(f.kv_bytes_per_token), f.tp > 1 ? " on all" : ""));
  line("  activations", format_bytes(f.activations_bytes), "");
  if (f.serving) {
    const LlmForecast::Serving& s = *f.serving;
    line("", "", "");
    line("continuous batching",
         s.rate > 0 ? format_count(s.rate) + " requests/s"
                    : format_integer(s.concurrency) + " clients",
         fmt::format("{:.1f} sequences in a step, at most {}; busy {:.0f} %", s.mean_batch,
                     s.most_sequences, 100 * s.busy_share));
    line("  first token, median", format_seconds(s.first_token_median.seconds),
         fmt::format("p99 {}", format_seconds(s.first_token_p99.seconds)));
    line("  per token, median", format_seconds(s.per_token_median.seconds),
         fmt::format("p99 {}", format_seconds(s.per_token_p99.seconds)));
    line("  throughput", format_count(s.tokens_per_s) + " tokens/s",
         format_count(s.requests_per_s) + " requests/s");
  }
  std::string out = title_lines(title, style) + "\n" + format_text_table(table, style, 2);
  out += fmt::format("\n{}\n{}", step_table(f.prefill, "prefill step", style),
                     step_table(f.decode, "decode step", style));
  const auto marked = [](const StepForecast& step) {
    return std::any_of(step.kernels.begin(), step.kernels.end(),
                       [](const KernelForecast& k) { return k.extrapolated; });
  };
  if (marked(f.prefill) || marked(f.decode)) out += "* extrapolated\n";
  return out;
}

std::string llm_json(const LlmForecast& f) {
  Json course = Json::array();
  for (const auto& [tokens, e] : f.course) {
    Json point = estimate_json(e);
    point["kv_tokens"] = tokens;
    course.push_back(point);
  }
  Json object = {{"schema_version", 1},
                 {"model", f.model},
                 {"gpu", f.gpu},
                 {"prompt", f.prompt},
                 {"output", f.output},
                 {"batch", f.batch},
                 {"tp", f.tp},
                 {"dtype", f.dtype},
                 {"kv_dtype", f.kv_dtype},
                 {"software", f.software},
                 {"time_to_first_token", estimate_json(f.first_token)},
                 {"time_per_output_token", estimate_json(f.per_token)},
                 {"request", estimate_json(f.request)},
                 {"course", course},
                 {"tokens_per_s", f.tokens_per_s},
                 {"parameters", f.parameters},
                 {"active_parameters", f.active_parameters},
                 {"multiplied_parameters", f.multiplied_parameters},
                 {"flops_per_token", f.flops_per_token},
                 {"attention_flops_per_token", f.attention_flops_per_token},
                 {"kv_bytes_per_token", f.kv_bytes_per_token},
                 {"memory",
                  {{"peak_bytes", f.peak_bytes},
                   {"weights_bytes", f.weights_bytes},
                   {"cache_bytes", f.cache_bytes},
                   {"activations_bytes", f.activations_bytes},
                   {"overhead_bytes", f.overhead_bytes},
                   {"device_bytes", f.device_bytes},
                   {"largest_batch", f.largest_batch}}},
                 {"prefill", step_json(f.prefill)},
                 {"decode", step_json(f.decode)},
                 {"warnings", f.warnings}};
  if (f.serving) {
    const LlmForecast::Serving& s = *f.serving;
    object["serving"] = {{"rate", s.rate},
                         {"concurrency", s.concurrency},
                         {"time_to_first_token_median", estimate_json(s.first_token_median)},
                         {"time_to_first_token_p99", estimate_json(s.first_token_p99)},
                         {"time_per_output_token_median", estimate_json(s.per_token_median)},
                         {"time_per_output_token_p99", estimate_json(s.per_token_p99)},
                         {"requests_per_s", s.requests_per_s},
                         {"tokens_per_s", s.tokens_per_s},
                         {"mean_batch", s.mean_batch},
                         {"busy_share", s.busy_share},
                         {"most_sequences", s.most_sequences},
                         {"keeps_up", s.keeps_up}};
  }
  return object.dump(1) + "\n";
}

}  // namespace tilecast
