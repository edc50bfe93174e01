// Power over time: table, and the trace for Perfetto. The picture: power_svg.cc.
//
//   llama-3.2-1b on NVIDIA H100 SXM5 80GB: power over a training step of 191 ms
//
//   rank  mean   highest  lowest  energy
//   0     668 W  681 W    430 W   128 J

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/text.h"
#include "report/kernel_text.h"
#include "report/power_timeline_text.h"
#include "report/text_table.h"
#include "tilecast/view.h"

namespace tilecast {
namespace {

constexpr double kTraceMicroseconds = 1e6;

double end_of_point(const PowerTimeline& t, const RankPower& rank, size_t i) {
  return i + 1 < rank.points.size() ? rank.points[i + 1].start_s : t.seconds;
}

/// Time and energy of what a GPU computes, by its first words.
struct PowerOfWork {
  double seconds = 0, joules = 0;
};

/// "decode" of "decode of 32 sequences", "forward" of "forward 3", "prompts and decode" of a step
/// that has both.
std::string kind_of_work(const std::string& what) {
  if (what.empty()) return "waits";
  if (what.starts_with("prompts") && what.find("decode") != std::string::npos)
    return "prompts and decode";
  return what.substr(0, what.find(' '));
}

std::string rank_rows(const PowerTimeline& t, const TableStyle& style) {
  TextTable table{.header = {"rank", "mean", "highest", "lowest", "energy"},
                  .right = {true, true, true, true, true}};
  for (const RankPower& rank : t.ranks) {
    double joules = 0, highest = 0, lowest = t.limit_w;
    for (size_t i = 0; i < rank.points.size(); ++i) {
      const PowerPoint& point = rank.points[i];
      joules += (end_of_point(t, rank, i) - point.start_s) * point.power_w;
      highest = std::max(highest, point.power_w);
      lowest = std::min(lowest, point.power_w);
    }
    table.rows.push_back({fmt::to_string(rank.rank), fmt::format("{:.0f} W", joules / t.seconds),
                          fmt::format("{:.0f} W", highest), fmt::format("{:.0f} W", lowest),
                          format_si(joules, "J")});
  }
  return format_text_table(table, style, 2);
}

std::string work_rows(const PowerTimeline& t, const TableStyle& style) {
  std::map<std::string, PowerOfWork> by_work;
  PowerOfWork all;
  for (const RankPower& rank : t.ranks) {
    for (size_t i = 0; i < rank.points.size(); ++i) {
      const double seconds = end_of_point(t, rank, i) - rank.points[i].start_s;
      PowerOfWork& of = by_work[kind_of_work(rank.points[i].what)];
      for (PowerOfWork* sum : {&of, &all}) {
        sum->seconds += seconds;
        sum->joules += seconds * rank.points[i].power_w;
      }
    }
  }
  TextTable table{.header = {"the GPU", "mean", "of the time", "of the energy"},
                  .right = {false, true, true, true}};
  for (const auto& [work, of] : by_work) {
    if (of.seconds <= 0) continue;
    table.rows.push_back({work, fmt::format("{:.0f} W", of.joules / of.seconds),
                          fmt::format("{:.1f} %", 100 * of.seconds / all.seconds),
                          fmt::format("{:.1f} %", 100 * of.joules / all.joules)});
  }
  return format_text_table(table, style, 2);
}

Json counter(int64_t rank, double seconds, double watts) {
  return {{"name", "power"},
          {"ph", "C"},
          {"pid", rank},
          {"ts", seconds * kTraceMicroseconds},
          {"args", {{"W", watts}}}};
}

}  // namespace

std::string power_title(const PowerTimeline& t) {
  return fmt::format("{} on {}: power over {} of a {}", t.model, t.gpu_name,
                     format_seconds(t.seconds), t.work);
}

std::string power_table(const PowerTimeline& t, const TableStyle& style) {
  return title_lines(power_title(t), style) + "\n" + rank_rows(t, style) + "\n" +
         work_rows(t, style) + "\n" +
         wrapped(fmt::format("mean of all: {:.0f} W; idle at its clock {:.0f} W, limit {:.0f} W. "
                             "--power-timeline svg has the picture, perfetto the trace.",
                             t.mean_w(), t.idle_w, t.limit_w),
                 style);
}

std::string power_trace_json(const PowerTimeline& t) {
  Json events = Json::array();
  for (const RankPower& rank : t.ranks) {
    events.push_back({{"name", "process_name"},
                      {"ph", "M"},
                      {"pid", rank.rank},
                      {"args", {{"name", fmt::format("rank {}", rank.rank)}}}});
    for (size_t i = 0; i < rank.points.size(); ++i) {
      const PowerPoint& point = rank.points[i];
      events.push_back(counter(rank.rank, point.start_s, point.power_w));
      if (point.what.empty()) continue;
      events.push_back({{"name", point.what},
                        {"cat", kind_of_work(point.what)},
                        {"ph", "X"},
                        {"pid", rank.rank},
                        {"tid", 0},
                        {"ts", point.start_s * kTraceMicroseconds},
                        {"dur", (end_of_point(t, rank, i) - point.start_s) * kTraceMicroseconds}});
    }
    // A counter keeps its value until it gets another one.
    if (!rank.points.empty())
      events.push_back(counter(rank.rank, t.seconds, rank.points.back().power_w));
  }
  return Json{{"displayTimeUnit", "ms"}, {"traceEvents", std::move(events)}}.dump() + "\n";
}

}  // namespace tilecast
