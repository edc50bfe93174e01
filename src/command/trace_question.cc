// A trace of PyTorch's profiler: what it shows, what it should take, and on another GPU.

#include <cmath>
#include <limits>
#include <optional>

#include "base/number.h"
#include "base/text.h"
#include "command/question.h"
#include "command/shared_options.h"
#include "tilecast/error.h"
#include "tilecast/profile.h"

namespace tilecast {
namespace {

struct TraceQuestion {
  std::string trace, host, beside;
  GpuSource gpu, traced;
  ForecasterSource forecaster;
};

std::vector<OptionGroup> trace_groups() {
  CommandOption gpu = gpu_option(into<&TraceQuestion::gpu>());
  gpu.required = false;
  gpu.help = "carry the trace to this GPU: " + gpu.help;
  std::vector<OptionGroup> groups = {
      {"Arguments",
       {{.names = "TRACE",
         .help = "of torch.profiler (export_chrome_trace), .json or .json.gz",
         .kind = ValueKind::kFile,
         .required = true,
         .set = into<&TraceQuestion::trace>()}}},
      {"Options",
       {gpu,
        {.names = "--traced-gpu",
         .value = "GPU",
         .help = "that the trace was made on; default: the one that it names",
         .kind = ValueKind::kGpu,
         .set = into<&TraceQuestion::traced>()},
        {.names = "--trace-host",
         .value = "same|faster:N|graph|TRACE",
         .default_value = "same",
         .help = "of the other GPU: as in the trace, N times as fast, launching all kernels in "
                 "time as a CUDA graph does, or as in a trace of the same program there",
         .set = into<&TraceQuestion::host>()},
        {.names = "--beside",
         .value = "TRACE",
         .help = "another trace of the same program, operator by operator",
         .kind = ValueKind::kFile,
         .set = into<&TraceQuestion::beside>()}}}};
  const std::vector<CommandOption> last = forecaster_options<TraceQuestion>();
  groups.back().options.insert(groups.back().options.end(), last.begin(), last.end());
  return groups;
}

/// Reads the option `trace-host`.
void set_host(TraceQuery& query, const std::string& host) {
  constexpr std::string_view kFaster = "faster:";
  if (host.empty() || host == "same") return;
  if (host == "graph") {
    query.host_speed = std::numeric_limits<double>::infinity();
  } else if (host.starts_with(kFaster)) {
    const auto speed = parse_number<double>(std::string_view(host).substr(kFaster.size()));
    if (!speed || !std::isfinite(*speed) || *speed <= 0)
      throw OptionError("`trace-host`: expected a number above 0 after 'faster:', found '" +
                        shown_name(host) + "'");
    query.host_speed = *speed;
  } else {
    query.host_trace = host;
  }
}

Reply answer_trace(TraceQuestion&& asked, const Given&, const Asking&) {
  if (!asked.beside.empty() && asked.gpu.given())
    throw OptionError("`beside` and `gpu` are both what the trace is compared with: give one");
  if (!asked.host.empty() && !asked.gpu.given())
    throw OptionError("`trace-host` is the host of another GPU: give it with `gpu`");
  TraceReport report;
  if (!asked.beside.empty()) {
    std::optional<GpuRef> traced;
    if (asked.traced.given()) traced = asked.traced.load();
    report = compare_traces(*asked.forecaster.load(), asked.trace, asked.beside, traced);
  } else {
    TraceQuery query{.path = asked.trace};
    set_host(query, asked.host);
    if (asked.traced.given()) query.traced = asked.traced.load();
    if (asked.gpu.given()) query.gpu = asked.gpu.load();
    report = report_trace(*asked.forecaster.load(), query);
  }
  std::vector<std::string> warnings = report.warnings;
  return {.answer = std::move(report), .warnings = std::move(warnings)};
}

}  // namespace

Question trace_question() {
  return local(question_of<TraceQuestion, trace_groups, answer_trace>(
      "trace", "A profile of PyTorch: what is slow, and what it takes on another GPU",
      {{"", "TraceReport"}}));
}

}  // namespace tilecast
