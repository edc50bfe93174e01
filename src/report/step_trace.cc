// {"traceEvents": [{"name": "forward 0", "ph": "X", "pid": 0, "tid": 0, "ts": 0, "dur": 1200}, …]}

#include <fmt/format.h>

#include <set>

#include "base/json.h"
#include "tilecast/report.h"

namespace tilecast {

std::string step_trace_json(const std::vector<StepOperation>& operations) {
  constexpr double kMicroseconds = 1e6;
  Json events = Json::array();
  std::set<int64_t> ranks;
  for (const StepOperation& op : operations) {
    ranks.insert(op.rank);
    events.push_back({{"name", op.name},
                      {"cat", op.communication ? "communication" : "compute"},
                      {"ph", "X"},
                      {"pid", op.rank},
                      {"tid", op.communication ? 1 : 0},
                      {"ts", op.start_s * kMicroseconds},
                      {"dur", op.duration_s * kMicroseconds},
                      {"args", {{"critical", op.critical}}}});
  }
  for (const int64_t rank : ranks) {
    events.push_back({{"name", "process_name"},
                      {"ph", "M"},
                      {"pid", rank},
                      {"args", {{"name", fmt::format("rank {}", rank)}}}});
    for (const int stream : {0, 1})
      events.push_back({{"name", "thread_name"},
                        {"ph", "M"},
                        {"pid", rank},
                        {"tid", stream},
                        {"args", {{"name", stream == 0 ? "compute" : "communication"}}}});
  }
  return Json{{"displayTimeUnit", "ms"}, {"traceEvents", std::move(events)}}.dump() + "\n";
}

}  // namespace tilecast
