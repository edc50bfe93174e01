// The output of 'tilecast plan' for training.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/text.h"
#include "report/kernel_text.h"
#include "report/plan_text.h"
#include "report/text_table.h"
#include "request/access.h"
#include "tilecast/view.h"

namespace tilecast {

std::string percent_interval(double value, double low, double high) {
  return fmt::format("{:.0f} +{:.0f} %", std::min(100 * (low / value - 1), -0.0),
                     std::max(100 * (high / value - 1), 0.0));
}

namespace {

std::string switch_text(bool value) { return value ? "on" : "off"; }

std::string schedule_text(const TrainingCandidate& c) {
  if (c.pp == 1) return "-";
  if (c.virtual_stages == 1) return choice_name(c.schedule);
  return fmt::format("interleaved {}", c.virtual_stages);
}

std::string share(double part, double whole) {
  return whole > 0 ? fmt::format("{:.1f} %", 100 * part / whole) : "";
}

void add_winner(std::string& out, const TrainingPlan& plan, const TableStyle& style) {
  const TrainingCandidate& c = plan.candidates.front();
  const double seconds = *c.latency_s;
  Lines lines;
  lines.add("step", format_seconds(seconds),
            fmt::format("80 % interval {} to {}", format_seconds(*c.latency_low_s),
                        format_seconds(*c.latency_high_s)));
  lines.add(
      "  speed",
      format_integer(std::llround(plan.tokens_per_s(seconds) / static_cast<double>(plan.ranks))),
      fmt::format("tokens/s on each GPU; {:.0f} % of the peak FLOP/s",
                  100 * plan.winner_utilization_ratio));
  lines.add("  computing", format_seconds(c.compute_s), share(c.compute_s, seconds));
  lines.add("  communication", format_seconds(c.exposed_communication_s),
            share(c.exposed_communication_s, seconds) + " exposed, mean of the stages");
  lines.add("  bubble", format_seconds(c.bubble_s), share(c.bubble_s, seconds));
  lines.add("memory", format_bytes(c.peak_bytes),
            fmt::format("of {}; {} are left", format_bytes(plan.device_bytes),
                        format_bytes(c.margin_bytes)));
  if (plan.price_per_gpu_hour)
    lines.add("cost", fmt::format("${:.4g}", plan.cost_of_step(seconds)),
              fmt::format("a step; ${:.4g} for a billion tokens",
                          plan.cost_of_step(seconds) * 1e9 /
                              (static_cast<double>(plan.batch) * static_cast<double>(plan.seq))));
  out += lines.text(style);
}

/// A step whose memory is nearly full is at the mercy of what no plan of memory counts: the first
/// of the ranked ones that leaves more.
std::string room_text(const TrainingPlan& plan) {
  constexpr double kRoom = 0.05;  // a guess; docs/accuracy.md has the errors of memory plans
  const auto has_room = [&](const TrainingCandidate& c) {
    return static_cast<double>(c.margin_bytes) >= kRoom * static_cast<double>(plan.device_bytes);
  };
  const TrainingCandidate& best = plan.candidates.front();
  if (has_room(best)) return "";
  const auto begin = plan.candidates.begin(),
             end = begin + static_cast<std::ptrdiff_t>(plan.ranked);
  const auto found = std::find_if(begin, end, has_room);
  if (found == end)
    return "It leaves less than 5 % of the memory, as do all of the first; --top N ranks more.";
  return fmt::format(
      "It leaves less than 5 % of the memory. The first that leaves more ({:+.1f} %): {}",
      100 * (*found->latency_s / *best.latency_s - 1), options_text(*found));
}

/// How much worse a candidate is than the winner, and in what.
std::pair<std::string, std::string> loss_of(const TrainingPlan& plan, const TrainingCandidate& c) {
  const TrainingCandidate& best = plan.candidates.front();
  if (!c.fits()) return {"does not fit", format_bytes(-c.margin_bytes) + " too much"};
  const int64_t bytes = c.peak_bytes - best.peak_bytes;
  const std::string memory =
      bytes == 0 ? ""
                 : fmt::format("memory {}{}", bytes > 0 ? "+" : "-", format_bytes(std::abs(bytes)));
  if (!c.latency_s) return {"> " + format_seconds(c.bound_s), memory};
  const double more = *c.latency_s / *best.latency_s - 1;
  const std::string change = fmt::format("{:+.1f} %", 100 * more);
  if (more < 0.0005) return {change, memory};
  const double gaps[] = {c.compute_s - best.compute_s,
                         c.exposed_communication_s - best.exposed_communication_s,
                         c.bubble_s - best.bubble_s};
  const char* const names[] = {"computing", "communication", "bubble"};
  const auto most = static_cast<size_t>(std::max_element(gaps, gaps + 3) - gaps);
  return {change, fmt::format("{} +{}", names[most], format_seconds(gaps[most]))};
}

/// Where a candidate differs from the winner.
std::string other_options(const TrainingCandidate& best, const TrainingCandidate& c,
                          const std::string& but) {
  std::string text;
  const auto add = [&](const char* name, const std::string& own, const std::string& other) {
    if (own == other || but == name) return;
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", name, other);
  };
  const auto number = [](int64_t value) { return std::to_string(value); };
  add("dp", number(best.dp), number(c.dp));
  add("tp", number(best.tp), number(c.tp));
  add("pp", number(best.pp), number(c.pp));
  add("cp", number(best.cp), number(c.cp));
  add("ep", number(best.ep), number(c.ep));
  add("mbs", number(best.micro_batch_size), number(c.micro_batch_size));
  if (c.pp > 1) add("schedule", schedule_text(best), schedule_text(c));
  add("zero", choice_name(best.zero), choice_name(c.zero));
  if (c.tp > 1) add("sp", switch_text(best.sequence_parallel), switch_text(c.sequence_parallel));
  add("ckpt", choice_name(best.checkpointing), choice_name(c.checkpointing));
  add("dtype", best.dtype, c.dtype);
  return text;
}

/// The name of an option in tables.
std::string short_name(const std::string& option) {
  constexpr std::pair<const char*, const char*> kNames[] = {{"micro-batch-size", "mbs"},
                                                            {"pipeline-schedule", "schedule"},
                                                            {"checkpointing", "ckpt"},
                                                            {"sequence-parallel", "sp"}};
  for (const auto& [name, text] : kNames) {
    if (option == name) return text;
  }
  return option;
}

void add_reasons(std::string& out, const TrainingPlan& plan, const TableStyle& style) {
  TextTable table;
  table.header = {"instead", "", "step", "mostly", "with"};
  table.right = {false, false, true, false, false};
  table.fit = {Fit::kWhole, Fit::kWhole, Fit::kWhole, Fit::kWhole, Fit::kWrap};
  table.min_widths = {0, 0, 0, 0, 14};
  std::string before;
  size_t shown = 0;
  for (const PlanAlternative& a : plan.alternatives) {
    constexpr size_t kShown = 4;  // of each option, the best ones
    shown = a.option == before ? shown + 1 : 1;
    if (shown > kShown || a.option == "dp") continue;  // dp is what the other degrees leave
    const TrainingCandidate& c = plan.candidates[a.candidate];
    const auto [loss, mostly] = loss_of(plan, c);
    const std::string name = short_name(a.option);
    table.rows.push_back({a.option == before ? "" : name, a.value, loss, mostly,
                          other_options(plan.candidates.front(), c, name)});
    before = a.option;
  }
  if (!table.rows.empty())
    out += "\n" + title_lines("Why: the best candidates with another value of one option", style) +
           "\n" + format_text_table(table, style, 2);
}

/// A table of candidates; options that all of them share are left out.
class CandidatesTable {
 public:
  explicit CandidatesTable(std::vector<std::string> more) : more_(std::move(more)) {}

  void add(const TrainingCandidate& c, std::vector<std::string> more) {
    options_.push_back({std::to_string(c.dp), std::to_string(c.tp), std::to_string(c.pp),
                        std::to_string(c.cp), std::to_string(c.ep),
                        std::to_string(c.micro_batch_size), schedule_text(c), choice_name(c.zero),
                        switch_text(c.sequence_parallel), choice_name(c.checkpointing), c.dtype});
    values_.push_back(std::move(more));
  }

  std::string text(const TableStyle& style, bool numbered) const {
    TextTable table;
    table.rows.resize(options_.size());
    if (numbered) {
      table.header = {""};
      table.right = {true};
      for (size_t i = 0; i < options_.size(); ++i) table.rows[i] = {std::to_string(i + 1)};
    }
    for (size_t column = 0; column < std::size(kNames); ++column) {
      const bool alike = std::all_of(options_.begin(), options_.end(), [&](const auto& row) {
        return row[column] == options_.front()[column];
      });
      if (alike && column >= kDegrees) continue;
      if (alike && (options_.front()[column] == "1")) continue;
      table.header.push_back(kNames[column]);
      table.right.push_back(column < kDegrees);
      for (size_t i = 0; i < options_.size(); ++i) table.rows[i].push_back(options_[i][column]);
    }
    for (size_t column = 0; column < more_.size(); ++column) {
      table.header.push_back(more_[column]);
      table.right.push_back(true);
      for (size_t i = 0; i < options_.size(); ++i) table.rows[i].push_back(values_[i][column]);
    }
    return format_text_table(table, style, 2);
  }

 private:
  static constexpr const char* kNames[] = {"dp",       "tp",   "pp", "cp",   "ep",   "mbs",
                                           "schedule", "zero", "sp", "ckpt", "dtype"};
  static constexpr size_t kDegrees = 6;
  std::vector<std::string> more_;
  std::vector<std::vector<std::string>> options_, values_;
};

bool any_extrapolated(const TrainingPlan& plan) {
  return std::any_of(plan.candidates.begin(), plan.candidates.end(),
                     [](const TrainingCandidate& c) { return c.extrapolated; });
}

void add_ranking(std::string& out, const TrainingPlan& plan, const TableStyle& style) {
  std::vector<std::string> names = {"step", "80 %", "exposed", "bubble", "memory"};
  if (plan.price_per_gpu_hour) names.push_back("cost");
  const bool marks = any_extrapolated(plan);
  CandidatesTable table(names);
  for (size_t i = 0; i < plan.ranked; ++i) {
    const TrainingCandidate& c = plan.candidates[i];
    std::vector<std::string> more = {
        format_seconds(*c.latency_s) + (marks ? c.extrapolated ? "*" : " " : ""),
        percent_interval(*c.latency_s, *c.latency_low_s, *c.latency_high_s),
        share(c.exposed_communication_s, *c.latency_s), share(c.bubble_s, *c.latency_s),
        format_bytes(c.peak_bytes)};
    if (plan.price_per_gpu_hour)
      more.push_back(fmt::format("{:.4g}", plan.cost_of_step(*c.latency_s)));
    table.add(c, std::move(more));
  }
  const size_t missed = plan.candidates.size() - plan.fitting;
  out += "\n" +
         title_lines(fmt::format("The first {} of the {} that fit", plan.ranked,
                                 format_integer(static_cast<int64_t>(plan.fitting))),
                     style) +
         "\n" + table.text(style, true);
  if (missed == 0) out += "\nAll fit.\n";
}

void add_misses(std::string& out, const TrainingPlan& plan, const TableStyle& style) {
  const size_t missed = plan.candidates.size() - plan.fitting;
  if (missed == 0) return;
  CandidatesTable table({"memory", "too much"});
  constexpr size_t kShown = 3;
  for (size_t i = plan.fitting; i < plan.fitting + std::min(kShown, missed); ++i) {
    const TrainingCandidate& c = plan.candidates[i];
    table.add(c, {format_bytes(c.peak_bytes), format_bytes(-c.margin_bytes)});
  }
  const TrainingCandidate& last = plan.candidates.back();
  const TrainingCandidate& middle = plan.candidates[plan.fitting + missed / 2];
  out +=
      "\n" +
      title_lines(
          fmt::format("{} do not fit into {}: half of them lack {} or more, one {}. The "
                      "nearest:",
                      format_integer(static_cast<int64_t>(missed)), format_bytes(plan.device_bytes),
                      format_bytes(-middle.margin_bytes), format_bytes(-last.margin_bytes)),
          style) +
      "\n" + table.text(style, false);
}

void add_impossible(std::string& out, const TrainingPlan& plan, const TableStyle& style) {
  if (plan.impossible.empty()) return;
  int64_t count = 0;
  for (const auto& [reason, times] : plan.impossible) count += times;
  const auto most =
      std::max_element(plan.impossible.begin(), plan.impossible.end(),
                       [](const auto& a, const auto& b) { return a.second < b.second; });
  out += "\n";
  for (const std::string& line :
       wrap_text(fmt::format("Not possible and not counted: {}, {} of them because of: {}",
                             format_integer(count), format_integer(most->second),
                             options_as_flags(most->first)),
                 static_cast<size_t>(style.width)))
    out += line + "\n";
}

/// The options that all candidates share, as far as they decide the times.
std::string shared_text(const TrainingPlan& plan) {
  std::string text;
  for (const char* name : {"attention", "fusion", "optimizer", "optimizer-impl", "loss",
                           "main-params-dtype", "overlap-grad-reduce"})
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", name,
                        find_option(name, RequestKind::kPass)
                            ->access.get(plan.used, *find_option(name, RequestKind::kPass)));
  return text;
}

/// Explains the short names that the tables have.
std::string legend_of(const std::string& tables) {
  constexpr std::pair<const char*, const char*> kMeanings[] = {
      {"mbs", "micro-batch size"},
      {"schedule", "of the pipeline, interleaved with its parts on each stage"},
      {"sp", "sequence parallel"},
      {"ckpt", "checkpointing"}};
  std::vector<std::string> meanings;
  for (const auto& [name, meaning] : kMeanings) {
    // As a column or the name of a reason: with a space on each side.
    if (tables.find(fmt::format(" {} ", name)) != std::string::npos)
      meanings.push_back(fmt::format("{}: {}", name, meaning));
  }
  const std::string text = join(meanings, "; ");
  return text + (text.empty() ? "" : ". ") + "--format json and csv have all candidates.";
}

}  // namespace

std::string plan_table(const TrainingPlan& plan, const TableStyle& style) {
  std::string out = title_lines(
      fmt::format("{}: training on {} GPUs, {} node{} of {}, batch {} × {} tokens{}", plan.model,
                  format_integer(plan.ranks), format_integer(plan.nodes),
                  plan.nodes == 1 ? "" : "s", plan.cluster_name, format_integer(plan.batch),
                  format_integer(plan.seq), clock_text(plan.used.execution.clocks)),
      style);
  std::string counts =
      fmt::format("{} configuration{}, {} fit{}. ",
                  format_integer(static_cast<int64_t>(plan.candidates.size())),
                  plan.candidates.size() == 1 ? "" : "s",
                  format_integer(static_cast<int64_t>(plan.fitting)), plan.fitting == 1 ? "s" : "");
  if (plan.simulated == plan.fitting && plan.fitting > 0) counts += "All of these were simulated. ";
  if (plan.simulated < plan.fitting)
    counts +=
        fmt::format("{} were simulated; {}. ", format_integer(static_cast<int64_t>(plan.simulated)),
                    plan.objective == PlanObjective::kMemory
                        ? "the others need more memory"
                        : "lower bounds of their times show that the others are slower");
  counts += fmt::format("All with: {}.", shared_text(plan));
  for (const std::string& line : wrap_text(counts, static_cast<size_t>(style.width)))
    out += line + "\n";
  if (plan.fitting == 0) {
    add_misses(out, plan, style);
    add_impossible(out, plan, style);
    return out;
  }
  out += "\n";
  for (const std::string& line : wrap_text("Best: " + options_text(plan.candidates.front()),
                                           static_cast<size_t>(style.width)))
    out += line + "\n";
  out += "\n";
  add_winner(out, plan, style);
  if (const std::string room = room_text(plan); !room.empty()) {
    out += "\n";
    for (const std::string& line : wrap_text(room, static_cast<size_t>(style.width)))
      out += line + "\n";
  }
  add_reasons(out, plan, style);
  add_ranking(out, plan, style);
  add_misses(out, plan, style);
  add_impossible(out, plan, style);
  const std::string legend =
      "80 %: interval of the step. " +
      std::string(any_extrapolated(plan) ? "*: part of the time is extrapolated. " : "") +
      legend_of(out);
  out += "\n";
  for (const std::string& line : wrap_text(legend, static_cast<size_t>(style.width)))
    out += line + "\n";
  return out;
}

}  // namespace tilecast
