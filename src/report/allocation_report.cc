// Which job goes where:
//
//   12 jobs on 2 H100, 4 A100: the highest throughput
//
//   job        runs on             time   steps/s  of best  done in   cost
//   resnet-50  nvidia-l4 63 %, …   100 %     3.55     0.54    3.2 h   4.10
//
//   sum of speeds  9.81  8.02 without telling kinds apart (+22 %)
//   nvidia-h100    2     98 % in use

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <tuple>

#include "base/text.h"
#include "report/kernel_text.h"
#include "report/price_text.h"
#include "report/text_table.h"
#include "tilecast/allocate.h"
#include "tilecast/view.h"

namespace tilecast {
namespace {

/// How an objective and its value are worded.
struct ObjectiveText {
  std::string_view name, title, value;
  bool less_is_better, is_time;
};

constexpr std::array kObjectiveTexts = {
    ObjectiveText{"throughput", "the highest throughput", "sum of relative speeds", false, false},
    ObjectiveText{"makespan", "the earliest end of the last job", "last job ends in", true, true},
    ObjectiveText{"fairness", "the fairest speeds", "least speed / equal share", false, false},
    ObjectiveText{"finish-time", "the fairest times to the end", "longest time / equal share", true,
                  false},
    ObjectiveText{"cost", "the lowest cost", "cost of all steps", true, false},
    ObjectiveText{"deadline", "the most deadlines met", "deadlines met (weights)", false, false},
    ObjectiveText{"energy", "the least energy", "joules of all steps", true, false}};

const ObjectiveText& text_of(const std::string& objective) {
  return *std::find_if(kObjectiveTexts.begin(), kObjectiveTexts.end(),
                       [&](const ObjectiveText& text) { return text.name == objective; });
}

std::string share_text(double share) {
  constexpr double kShown = 0.005;
  return share > 0 && share < kShown ? "<1 %" : fmt::format("{:.0f} %", 100 * share);
}

std::string hours(double seconds) {
  constexpr double kHour = 3600;
  return seconds < kHour ? format_seconds(seconds) : format_count(seconds / kHour) + " h";
}

std::string value_text(const ObjectiveText& text, double value) {
  return text.is_time ? hours(value) : fmt::format("{:.4g}", value);
}

std::string pool_text(const std::vector<PoolUse>& pool) {
  std::vector<std::string> kinds;
  for (const PoolUse& kind : pool)
    kinds.push_back(fmt::format("{}{} of {}", kind.gpus,
                                !kinds.empty()   ? ""
                                : kind.gpus == 1 ? " GPU"
                                                 : " GPUs",
                                kind.gpu));
  return join(kinds, ", ");
}

std::string job_count(size_t jobs) { return jobs == 1 ? "1 job" : fmt::format("{} jobs", jobs); }

/// "2 x nvidia-h100 bf16 beside gpt2 63 %".
std::string place_text(const AllocatedPlace& place) {
  std::string text = place.gpus > 1 ? fmt::format("{} x ", place.gpus) : "";
  text += place.gpu;
  if (!place.dtype.empty()) text += " " + place.dtype;
  if (!place.beside.empty()) text += " beside " + place.beside;
  constexpr double kAll = 0.995;
  if (place.share < kAll) text += " " + share_text(place.share);
  if (place.begin_s > 0) text += " from " + hours(place.begin_s);
  return text;
}

/// Each place once, with its share of the time in which the job has it, from its first to its last
/// span.
std::string places_text(const AllocatedJob& job) {
  if (job.places.empty()) return job.fits_nowhere() ? "nowhere" : "waits";
  std::vector<AllocatedPlace> places;
  for (const AllocatedPlace& place : job.places) {
    const auto same = std::find_if(places.begin(), places.end(), [&](const AllocatedPlace& other) {
      return std::tie(other.gpu, other.gpus, other.dtype, other.beside) ==
             std::tie(place.gpu, place.gpus, place.dtype, place.beside);
    });
    if (same == places.end()) {
      places.push_back(place);
    } else if (same->end_s && place.end_s) {
      const double time = same->share * (*same->end_s - same->begin_s) +
                          place.share * (*place.end_s - place.begin_s);
      same->end_s = std::max(*same->end_s, *place.end_s);
      same->share = time / (*same->end_s - same->begin_s);
    }
  }
  constexpr size_t kShown = 4;
  std::vector<std::string> texts;
  for (size_t i = 0; i < std::min(kShown, places.size()); ++i)
    texts.push_back(place_text(places[i]));
  if (places.size() > kShown) texts.push_back(fmt::format("{} more", places.size() - kShown));
  return join(texts, ", ");
}

std::string jobs_table(const AllocationForecast& f, const TableStyle& style) {
  TextTable table{.header = {"job", "runs on", "time", "steps/s", "of fastest", "done in", "cost"},
                  .right = {false, false, true, true, true, true, true},
                  .fit = {Fit::kEnd, Fit::kWrap}};
  const size_t shown = style.rows == 0 ? f.jobs.size() : std::min(style.rows, f.jobs.size());
  for (size_t i = 0; i < shown; ++i) {
    const AllocatedJob& job = f.jobs[i];
    const bool runs = !job.places.empty();
    const bool late = job.meets_deadline && !*job.meets_deadline;
    table.rows.push_back({job.name, places_text(job), runs ? share_text(job.time_share) : "",
                          runs ? format_count(job.steps_per_s) : "",
                          runs ? fmt::format("{:.2f}", job.relative_speed) : "",
                          job.finish_s ? hours(*job.finish_s) + (late ? " late" : "")
                          : late       ? "late"
                                       : "",
                          job.cost ? fmt::format("{:.2f}", *job.cost) : ""});
  }
  const auto has = [&](size_t column) {
    return std::any_of(table.rows.begin(), table.rows.end(),
                       [&](const auto& row) { return !row[column].empty(); });
  };
  for (const size_t column : {size_t{6}, size_t{5}}) {
    if (has(column)) continue;
    table.header.erase(table.header.begin() + static_cast<std::ptrdiff_t>(column));
    for (auto& row : table.rows) row.erase(row.begin() + static_cast<std::ptrdiff_t>(column));
  }
  std::string out = format_text_table(table, style, 2);
  if (shown < f.jobs.size()) out += fmt::format("  {} more jobs\n", f.jobs.size() - shown);
  return out;
}

std::string notes(const AllocationForecast& f, const TableStyle& style) {
  constexpr size_t kShown = 8;
  std::string out;
  size_t count = 0;
  for (const AllocatedJob& job : f.jobs) {
    if (job.note.empty()) continue;
    if (++count <= kShown) out += wrapped(fmt::format("{}: {}", job.name, job.note), style);
  }
  if (count > kShown)
    out += fmt::format("{} more jobs have notes: see --format json\n", count - kShown);
  return out.empty() ? "" : "\n" + out;
}

void add_pool(const std::vector<PoolUse>& pool, Lines& lines) {
  for (const PoolUse& kind : pool)
    lines.add(
        kind.gpu, share_text(kind.utilization()),
        fmt::format("of {} in use{}", kind.gpus,
                    kind.price_per_gpu_hour
                        ? fmt::format(", {:.4g} an hour each", *kind.price_per_gpu_hour)
                        : "") +
            (kind.gpu_price && !kind.gpu_price->table.empty() ? "; " + price_text(*kind.gpu_price)
                                                              : ""));
}

}  // namespace

std::string allocation_table(const AllocationForecast& f, const TableStyle& style) {
  const ObjectiveText& objective = text_of(f.objective);
  Lines lines;
  if (f.value) {
    std::string blind = "";
    if (f.blind_value) {
      const double gain =
          objective.less_is_better ? *f.blind_value / *f.value : *f.value / *f.blind_value;
      blind = fmt::format("{} without telling kinds apart", value_text(objective, *f.blind_value));
      constexpr double kSame = 1.005;
      if (gain >= kSame && std::isfinite(gain))
        blind += fmt::format(": {:.2f} times as good", gain);
    }
    lines.add(std::string(objective.value), value_text(objective, *f.value), blind);
  }
  if (f.cost && f.objective != "cost")
    lines.add("cost of all steps", fmt::format("{:.4g}", *f.cost), "");
  if (f.makespan_s && f.objective != "makespan")
    lines.add("last job ends in", hours(*f.makespan_s), "");
  add_pool(f.pool, lines);
  return title_lines(fmt::format("{} on {}: {}", job_count(f.jobs.size()), pool_text(f.pool),
                                 objective.title),
                     style) +
         assumes_lines(f.assumptions, style) + "\n" + jobs_table(f, style) + "\n" +
         lines.text(style) + notes(f, style);
}

std::string simulation_table(const ClusterSimulation& c, const TableStyle& style) {
  TextTable table{
      .header = {"policy", "mean", "median", "p95", "last ends", "in use", "cost", "deadlines"},
      .right = {false, true, true, true, true, true, true, true},
      .fit = {}};
  for (const PolicyOutcome& policy : c.policies)
    table.rows.push_back(
        {policy.policy, hours(policy.mean_s), hours(policy.median_s), hours(policy.p95_s),
         hours(policy.makespan_s), share_text(policy.utilization),
         policy.cost ? fmt::format("{:.2f}", *policy.cost) : "-",
         c.deadlines > 0 ? fmt::format("{} of {}", policy.met_deadlines, c.deadlines) : "-"});
  Lines lines;
  const PolicyOutcome& ours = c.policies.back();
  for (size_t i = 0; i + 1 < c.policies.size(); ++i) {
    const std::string times = fmt::format("{:.2f}", c.policies[i].mean_s / ours.mean_s);
    const bool shorter = c.policies[i].mean_s < ours.mean_s && times != "1.00";
    lines.add(c.policies[i].policy + " takes", times,
              fmt::format("times as long as {} from arrival to end, mean{}", ours.policy,
                          shorter ? " (shorter)" : ""));
  }
  return title_lines(
             fmt::format("{} over time on {}: {}", job_count(static_cast<size_t>(c.arrivals)),
                         pool_text(c.pool), text_of(c.objective).title),
             style) +
         assumes_lines(c.assumptions, style) + "\n" + format_text_table(table, style, 2) + "\n" +
         lines.text(style);
}

}  // namespace tilecast
