// A trace of a profiler: what it shows, what it should take, and on another GPU.

#include <fmt/format.h>

#include <array>
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
  std::string trace, host, beside, batch, dtype, cluster;
  GpuSource gpu, traced;
  ForecasterSource forecaster;
};

constexpr std::array<const char*, 4> kTraceDtypes = {"bf16", "fp16", "fp32", "tf32"};

std::vector<OptionGroup> trace_groups() {
  CommandOption gpu = gpu_option(into<&TraceQuestion::gpu>());
  gpu.required = false;
  gpu.help = "carry the trace to this GPU: " + gpu.help;
  CommandOption cluster = cluster_option(into<&TraceQuestion::cluster>());
  cluster.required = false;
  cluster.help = "carry the trace to its GPUs, and collectives to its links: " + cluster.help;
  std::vector<OptionGroup> groups = {
      {"Arguments",
       {{.names = "TRACE",
         .help = "of torch.profiler (export_chrome_trace), .json or .json.gz; what Nsight Systems "
                 "exports, .sqlite; an execution trace (Chakra), .json",
         .kind = ValueKind::kFile,
         .required = true,
         .set = into<&TraceQuestion::trace>()}}},
      {"Options",
       {gpu,
        cluster,
        {.names = "--batch",
         .value = "Nx",
         .help = "N times as many samples as in the trace, 2x or 0.5x: operators whose sizes show "
                 "the batch are forecast at the other one",
         .set = into<&TraceQuestion::batch>()},
        {.names = "--dtype",
         .help = "of the tensors that have the dtype of the trace's products",
         .choices = {kTraceDtypes.begin(), kTraceDtypes.end()},
         .set = into<&TraceQuestion::dtype>()},
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

/// Reads the option `batch`: "2x".
double batch_factor(const std::string& text) {
  if (text.empty()) return 1;
  std::optional<double> factor;
  if (text.back() == 'x') factor = parse_number<double>(text.substr(0, text.size() - 1));
  if (!factor || !std::isfinite(*factor) || *factor <= 0)
    throw OptionError("`batch`: that of a trace changes by a factor, as 2x or 0.5x; found '" +
                      shown_name(text) + "'");
  return *factor;
}

TraceQuery query_of(TraceQuestion& asked) {
  TraceQuery query{.path = asked.trace,
                   .batch_factor = batch_factor(asked.batch),
                   .dtype = asked.dtype,
                   .cluster = asked.cluster};
  set_host(query, asked.host);
  if (asked.traced.given()) query.traced = asked.traced.load();
  if (asked.gpu.given() || !asked.cluster.empty()) query.gpu = asked.gpu.load_or_of(asked.cluster);
  if (!asked.host.empty() && !query.gpu && query.batch_factor == 1 && query.dtype.empty())
    throw OptionError("`trace-host` is the host of another GPU: give it with `gpu`");
  return query;
}

Reply answer_trace(TraceQuestion&& asked, const Given& given, const Asking&) {
  TraceReport report;
  if (!asked.beside.empty()) {
    for (const char* option : {"gpu", "cluster", "batch", "dtype", "trace-host"})
      if (has(given, option))
        throw OptionError(fmt::format(
            "`beside` and `{}` are both what the trace is compared with: give one", option));
    std::optional<GpuRef> traced;
    if (asked.traced.given()) traced = asked.traced.load();
    report = compare_traces(*asked.forecaster.load(), asked.trace, asked.beside, traced);
  } else {
    const TraceQuery query = query_of(asked);
    report = report_trace(*asked.forecaster.load(), query);
  }
  std::vector<std::string> warnings = report.warnings;
  return {.answer = std::move(report), .warnings = std::move(warnings)};
}

Reply answer_trace_timeline(TraceQuestion&& asked, const Given& given, const Asking&) {
  if (has(given, "beside"))
    throw OptionError("the timeline has one trace, and what it is carried to: omit `beside`");
  const TraceQuery query = query_of(asked);
  return {.answer = timeline_of_trace(*asked.forecaster.load(), query)};
}

}  // namespace

std::vector<Question> trace_questions() {
  return {local(question_of<TraceQuestion, trace_groups, answer_trace>(
              "trace", "A profile of PyTorch: what is slow, and what it takes on another GPU",
              {{"", "TraceReport"}})),
          local(question_of<TraceQuestion, trace_groups, answer_trace_timeline>(
              "trace_timeline",
              "The operations of a profile as measured, and as carried to another GPU",
              {{"", "dict[str, Any]"}}))};
}

}  // namespace tilecast
