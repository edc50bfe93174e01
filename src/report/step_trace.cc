// {"traceEvents": [{"name": "forward 0", "ph": "X", "pid": 0, "tid": 0, "ts": 0, "dur": 1200}, …]}

#include <fmt/format.h>

#include <map>
#include <string>

#include "base/json.h"
#include "tilecast/view.h"

namespace tilecast {

namespace {

constexpr double kMicroseconds = 1e6;

/// A counter of each rank: what its GPU draws from then on. Between operations it is idle.
void add_power(Json& events, const std::vector<StepOperation>& operations) {
  std::map<int64_t, std::map<double, double>> watts;  // of a rank by time
  for (const StepOperation& op : operations)
    if (op.power_w) watts[op.rank].try_emplace(op.start_s + op.duration_s, *op.idle_w);
  // One that starts where another ends replaces the wait.
  for (const StepOperation& op : operations)
    if (op.power_w) watts[op.rank][op.start_s] = *op.power_w;
  for (const auto& [rank, by_time] : watts)
    for (const auto& [seconds, value] : by_time)
      events.push_back({{"name", "power"},
                        {"ph", "C"},
                        {"pid", rank},
                        {"ts", seconds * kMicroseconds},
                        {"args", {{"W", value}}}});
}

}  // namespace

std::string step_trace_json(const std::vector<StepOperation>& operations) {
  Json events = Json::array();
  // Streams of a rank are its threads, the compute stream first.
  std::map<int64_t, std::map<std::string, int>> streams;
  for (const StepOperation& op : operations) {
    if (!op.communication) streams[op.rank][op.stream] = 0;
  }
  for (const StepOperation& op : operations) {
    auto& known = streams[op.rank];
    const auto next = static_cast<int>(known.size());
    const int stream = known.try_emplace(op.stream, next).first->second;
    events.push_back({{"name", op.name},
                      {"cat", op.communication ? "communication" : "compute"},
                      {"ph", "X"},
                      {"pid", op.rank},
                      {"tid", stream},
                      {"ts", op.start_s * kMicroseconds},
                      {"dur", op.duration_s * kMicroseconds},
                      {"args", {{"critical", op.critical}}}});
  }
  add_power(events, operations);
  for (const auto& [rank, names] : streams) {
    events.push_back({{"name", "process_name"},
                      {"ph", "M"},
                      {"pid", rank},
                      {"args", {{"name", fmt::format("rank {}", rank)}}}});
    for (const auto& [name, stream] : names)
      events.push_back({{"name", "thread_name"},
                        {"ph", "M"},
                        {"pid", rank},
                        {"tid", stream},
                        {"args", {{"name", name}}}});
  }
  return Json{{"displayTimeUnit", "ms"}, {"traceEvents", std::move(events)}}.dump() + "\n";
}

}  // namespace tilecast
