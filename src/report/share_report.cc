// Jobs that share a GPU:
//
//   job        step alone  wants  turn     speed  80 %          steps/s  memory
//   resnet-50      152 ms   93 %  20.0 ms   0.54  0.45 to 0.63     3.55  4.20 GiB
//
//   sum of speeds  1.07  ...

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/text.h"
#include "report/kernel_text.h"
#include "report/text_table.h"
#include "tilecast/share.h"
#include "tilecast/view.h"

namespace tilecast {
namespace {

std::string rounded_percent(double share) { return fmt::format("{:.0f} %", 100 * share); }

std::string jobs_table(const ShareForecast& f, const TableStyle& style) {
  const bool slices = f.how == "mig";
  TextTable table{.header = {"job", slices ? "slice" : "mode", "step alone", "wants",
                             slices ? "SMs" : "turn", "speed", "80 %", "steps/s", "memory"},
                  .right = {false, false, true, true, true, true, true, true, true},
                  .fit = {Fit::kEnd}};
  for (const SharedJob& job : f.jobs) {
    const Interval& r = job.relative_speed;
    table.rows.push_back(
        {job.name, slices ? job.slice : job.mode,
         format_seconds(job.alone.step_s) + (job.alone.measured ? "*" : ""),
         rounded_percent(job.alone.gpu_share),
         slices ? rounded_percent(job.alone.sm_share) : format_seconds(job.alone.turn_s),
         fmt::format("{:.2f}", r.value), fmt::format("{:.2f}-{:.2f}", r.low, r.high),
         format_count(job.steps_per_s), format_bytes(job.memory_bytes)});
  }
  std::string out =
      format_text_table(in_one_line(std::move(table), style, 2, {"mode", "turn", "SMs"}), style, 2);
  if (std::any_of(f.jobs.begin(), f.jobs.end(),
                  [](const SharedJob& job) { return job.alone.measured; }))
    out += "  * measured (steps_per_s)\n";
  return out;
}

/// Whether it is worth it: the jobs one after the other, each in its turn alone, make a sum of 1.
std::string verdict(const ShareForecast& f) {
  const Interval& sum = f.sum_of_relative_speeds;
  if (f.jobs.size() == 1) return f.how == "mig" ? "of the whole GPU" : "alone";
  constexpr double kShown = 0.005;
  const double gain = sum.value - 1;
  std::string more = std::abs(gain) < kShown
                         ? "as much work as one job at a time"
                         : fmt::format("{:.0f} % {} work than one job at a time",
                                       100 * std::abs(gain), gain < 0 ? "less" : "more");
  if (sum.low > 1) return more;
  if (sum.high < 1) return more + ": not worth it";
  return more + "; not certain";
}

}  // namespace

std::string share_table(const ShareForecast& f, const TableStyle& style) {
  Lines lines;
  const Interval& sum = f.sum_of_relative_speeds;
  lines.add("sum of speeds", fmt::format("{:.2f}", sum.value),
            fmt::format("80 % {:.2f}-{:.2f}; {}", sum.low, sum.high, verdict(f)));
  lines.add("GPU time", rounded_percent(f.gpu_demand),
            f.gpu_demand > 1 && f.jobs.size() > 1
                ? "wanted by all jobs together: they fight over it"
                : "wanted by all jobs together");
  lines.add("SMs", rounded_percent(f.sm_demand), "filled by all jobs, each alone");
  lines.add("DRAM bandwidth", rounded_percent(f.dram_demand), "taken by all jobs, each alone");
  lines.add("memory", format_bytes(f.memory_bytes),
            fmt::format("of {} that programs see{}{}", format_bytes(f.usable_bytes),
                        f.how == "mig" ? ", on the fullest slice" : "",
                        f.fits ? f.memory_is_tight ? "; tight" : "" : ": does not fit"),
            f.fits ? Color::kNone : Color::kRed);
  return title_lines(
             fmt::format("{} on {}, {}", counted(static_cast<int64_t>(f.jobs.size()), "job"),
                         f.gpu_name, f.how),
             style) +
         assumes_lines(f.assumptions, style) + "\n" + jobs_table(f, style) + "\n" +
         lines.text(style);
}

}  // namespace tilecast
