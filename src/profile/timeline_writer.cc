#include "profile/timeline_writer.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/budget.h"
#include "base/json.h"
#include "base/text.h"

namespace tilecast {
namespace {

std::string quoted(const std::string& text) { return Json(printable(text)).dump(); }

/// The measured times as a replay has them.
ReplayedTrace measured_times(const ReadTrace& one) {
  ReplayedTrace times;
  for (const DeviceEvent& event : one.trace.events) {
    times.begin_ns.push_back(event.start_ns);
    times.end_ns.push_back(event.end_ns());
  }
  for (const RuntimeCall& call : one.trace.runtime) {
    times.call_begin_ns.push_back(call.start_ns);
    times.call_end_ns.push_back(call.end_ns());
  }
  times.start_ns = one.span.start_ns;
  times.span_ns = one.span.ns();
  return times;
}

/// For each name of a trace, as JSON.
std::vector<std::string> quoted_names(const ProfilerTrace& trace) {
  std::vector<std::string> names;
  for (size_t i = 0; i < trace.names.size(); ++i)
    names.push_back(quoted(trace.names[static_cast<int32_t>(i)]));
  return names;
}

/// For each call of an operator, its name and sizes as members of JSON.
std::vector<std::string> call_arguments(const ProfilerTrace& trace) {
  std::vector<std::string> arguments;
  for (const OperatorCall& call : trace.calls)
    arguments.push_back(
        fmt::format(R"("operator":{},"sizes":{})", quoted(call.name), quoted(sizes_of(call))));
  return arguments;
}

}  // namespace

TimelineWriter::TimelineWriter() : out_(R"({"displayTimeUnit":"ms","traceEvents":[)") {}

void TimelineWriter::begin_process(const std::string& title) {
  ++process_;
  threads_.clear();
  if (process_ > 1) out_ += ',';
  out_ += fmt::format(
      "\n{{\"ph\":\"M\",\"name\":\"process_name\",\"pid\":{0},\"args\":{{\"name\":{1}}}}},"
      "\n{{\"ph\":\"M\",\"name\":\"process_sort_index\",\"pid\":{0},\"args\":{{\"sort_index\":{0}}}"
      "}}",
      process_, quoted(title));
}

int64_t TimelineWriter::thread_of(bool is_host, int32_t device, int32_t number) {
  const auto next = static_cast<int64_t>(threads_.size()) + 1;
  const auto [entry, added] = threads_.emplace(std::pair{is_host, std::pair{device, number}}, next);
  if (added)
    out_ += fmt::format(
        ",\n{{\"ph\":\"M\",\"name\":\"thread_name\",\"pid\":{},\"tid\":{},\"args\":{{\"name\":{}}}}"
        "}",
        process_, next,
        quoted(is_host ? fmt::format("host thread {}", number)
                       : fmt::format("GPU {} stream {}", device, number)));
  return entry->second;
}

void TimelineWriter::add_slice(int64_t thread, int64_t begin_ns, int64_t end_ns,
                               const std::string& name, const std::string& arguments) {
  out_ += fmt::format(
      ",\n{{\"ph\":\"X\",\"name\":{},\"pid\":{},\"tid\":{},\"ts\":{:.3f},\"dur\":{:.3f}{}}}", name,
      process_, thread, static_cast<double>(begin_ns) / 1e3,
      static_cast<double>(end_ns - begin_ns) / 1e3,
      arguments.empty() ? "" : ",\"args\":{" + arguments + "}");
}

void TimelineWriter::add_all(const ReadTrace& one, const ReplayedTrace& times,
                             const std::string& title) {
  const ProfilerTrace& trace = one.trace;
  const std::vector<std::string> names = quoted_names(trace), calls = call_arguments(trace);
  begin_process(title);
  for (size_t i = 0; i < trace.events.size(); ++i) {
    const DeviceEvent& event = trace.events[i];
    add_slice(thread_of(false, event.device, event.stream), times.begin_ns[i] - times.start_ns,
              times.end_ns[i] - times.start_ns, names[static_cast<size_t>(event.name)],
              event.call < 0 ? "" : calls[static_cast<size_t>(event.call)]);
    go_on("writing a timeline");
  }
  // Of the host's calls, what lies within the span.
  for (size_t i = 0; i < trace.runtime.size(); ++i) {
    const RuntimeCall& call = trace.runtime[i];
    const int64_t begin = times.call_begin_ns[i] - times.start_ns;
    if (begin < 0 || begin > times.span_ns) continue;
    add_slice(thread_of(true, 0, call.thread), begin,
              std::clamp(times.call_end_ns[i] - times.start_ns, begin, times.span_ns),
              names[static_cast<size_t>(call.name)], "");
  }
}

void TimelineWriter::add_measured(const ReadTrace& one, const std::string& title) {
  add_all(one, measured_times(one), title);
}

void TimelineWriter::add_replayed(const ReadTrace& one, const ReplayedTrace& times,
                                  const std::string& title) {
  add_all(one, times, title);
}

std::string TimelineWriter::finish() { return std::move(out_) + "\n]}\n"; }

}  // namespace tilecast
