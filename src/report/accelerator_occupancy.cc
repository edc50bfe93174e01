// Which object of an accelerator holds which instruction when, as text, SVG and trace:
//
// conv1 of alexnet on Gemmini: k 64, c 3, …
// 400 of 33.1 k instructions in 2214 cycles; a column is 36.9 cycles
// load_controller  mmmmmmm....

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>

#include "base/json.h"
#include "base/text.h"
#include "report/svg.h"
#include "tilecast/result.h"
#include "tilecast/view.h"

namespace tilecast {
namespace {

std::string count_text(const AcceleratorOccupancy& picture) {
  return fmt::format("{} of {} instructions", picture.shown.size(),
                     format_si(picture.instructions, ""));
}

std::string as_text(const AcceleratorOccupancy& picture) {
  constexpr size_t kColumns = 60;
  const double end = picture.cycles;
  std::string text =
      fmt::format("{}\n{} in {:.0f} cycles; a column is {:.1f} cycles\n", printable(picture.title),
                  count_text(picture), end, end / kColumns);
  for (size_t object = 0; object < picture.objects.size(); ++object) {
    std::string line(kColumns, '.');
    for (const OccupiedObject& one : picture.shown) {
      if (one.object != object) continue;
      const auto first = static_cast<size_t>(one.start_cycles / end * kColumns);
      const auto last = static_cast<size_t>(one.end_cycles / end * kColumns);
      for (size_t i = first; i <= std::min(last, kColumns - 1); ++i) line[i] = one.operation[0];
    }
    text += fmt::format("{:<16} {}\n", picture.objects[object].substr(0, 16), line);
  }
  return text;
}

/// 1, 2 or 5 times a power of ten; about ten of them cover the time.
double tick_step(double end) {
  const double least = end / 10, power = std::pow(10, std::floor(std::log10(least)));
  for (const double factor : {1.0, 2.0, 5.0})
    if (factor * power >= least) return factor * power;
  return 10 * power;
}

/// By the place of the operation among those shown.
std::string_view colour_of(const AcceleratorOccupancy& picture, const std::string& operation) {
  // Tableau 10, a palette for categories.
  static constexpr std::array<std::string_view, 8> kColours = {
      "#4e79a7", "#f28e2b", "#59a14f", "#e15759", "#76b7b2", "#b07aa1", "#edc948", "#9c755f"};
  std::vector<std::string> seen;
  for (const OccupiedObject& one : picture.shown) {
    if (one.operation == operation) break;
    if (std::find(seen.begin(), seen.end(), one.operation) == seen.end())
      seen.push_back(one.operation);
  }
  return kColours[seen.size() % kColours.size()];
}

std::string as_svg(const AcceleratorOccupancy& picture) {
  constexpr double kWidth = 1000, kRow = 24, kLeft = 150, kTop = 56, kRight = 40, kAxis = 46;
  const double scale = kWidth / picture.cycles;
  const double bottom = kTop + kRow * static_cast<double>(picture.objects.size());
  SvgPicture svg(kLeft + kWidth + kRight, bottom + kAxis);
  svg.text(4, 18, printable(picture.title), "font-size=\"14\"");
  svg.text(4, 38, "the first " + count_text(picture) + "; a row is an object");
  const double step = tick_step(picture.cycles);
  for (double cycle = 0; cycle <= picture.cycles; cycle += step) {
    const double x = kLeft + cycle * scale;
    svg.line(x, kTop, x, bottom + 4, "stroke=\"#ddd\"");
    svg.text(x, bottom + 18, fmt::format("{:g}", cycle), "text-anchor=\"middle\"");
  }
  svg.text(kLeft + kWidth / 2, bottom + 38,
           fmt::format("time in cycles; {} cycles take {} at {}",
                       format_integer(std::llround(picture.cycles)),
                       format_seconds(picture.cycles / picture.clock_hz),
                       format_si(picture.clock_hz, "Hz")),
           "text-anchor=\"middle\"");
  for (size_t object = 0; object < picture.objects.size(); ++object)
    svg.text(4, kTop + kRow * (static_cast<double>(object) + 0.7), picture.objects[object]);
  for (const OccupiedObject& one : picture.shown) {
    const double y = kTop + kRow * static_cast<double>(one.object) + 3;
    svg.add(fmt::format(
        "<rect x=\"{:.2f}\" y=\"{}\" width=\"{:.2f}\" height=\"{}\" fill=\"{}\" stroke=\"white\" "
        "stroke-width=\"0.3\"><title>",
        kLeft + one.start_cycles * scale, y,
        std::max(0.3, (one.end_cycles - one.start_cycles) * scale), kRow - 6,
        colour_of(picture, one.operation)));
    svg.add_text(
        fmt::format("{}: cycle {:.1f} to {:.1f}", one.operation, one.start_cycles, one.end_cycles));
    svg.add("</title></rect>\n");
  }
  return svg.done();
}

/// Chrome's trace format, which Perfetto reads; a cycle is shown as a microsecond.
std::string as_trace(const AcceleratorOccupancy& picture) {
  Json events = Json::array();
  events.push_back(
      {{"ph", "M"}, {"name", "process_name"}, {"pid", 0}, {"args", {{"name", picture.title}}}});
  for (size_t object = 0; object < picture.objects.size(); ++object)
    events.push_back({{"ph", "M"},
                      {"name", "thread_name"},
                      {"pid", 0},
                      {"tid", object},
                      {"args", {{"name", picture.objects[object]}}}});
  for (const OccupiedObject& one : picture.shown)
    events.push_back({{"ph", "X"},
                      {"name", one.operation},
                      {"pid", 0},
                      {"tid", one.object},
                      {"ts", one.start_cycles},
                      {"dur", one.end_cycles - one.start_cycles}});
  return Json{{"traceEvents", events}}.dump() + "\n";
}

}  // namespace

std::string occupancy_picture(const AcceleratorOccupancy& occupancy, const std::string& format) {
  if (format == "svg") return as_svg(occupancy);
  return format == "perfetto" ? as_trace(occupancy) : as_text(occupancy);
}

}  // namespace tilecast
