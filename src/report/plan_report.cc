// The output of 'tilecast plan' for training.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/text.h"
#include "report/kernel_text.h"
#include "report/plan_text.h"
#include "report/price_text.h"
#include "report/text_table.h"
#include "request/access.h"
#include "schema/plan_options.h"
#include "tilecast/view.h"

namespace tilecast {

std::string percent_interval(double value, double low, double high) {
  return fmt::format("{:.0f} +{:.0f} %", std::min(100 * (low / value - 1), -0.0),
                     std::max(100 * (high / value - 1), 0.0));
}

std::string batch_text(const TrainingPlan& plan) {
  const std::string batch = format_integer(plan.batch);
  if (!plan.counts_tokens) return batch + (plan.batch == 1 ? " image" : " images");
  return fmt::format("{} × {} tokens", batch, format_integer(plan.seq));
}

std::string failures_text(const std::map<std::string, int64_t>& failures, const TableStyle& style) {
  if (failures.empty()) return "";
  int64_t count = 0;
  for (const auto& [reason, times] : failures) count += times;
  return "\n" +
         wrapped(fmt::format("Left out: {}, whose forecasts a defect of Tilecast ended. Please "
                             "report it: {}",
                             format_integer(count), failures.begin()->first),
                 style);
}

namespace {

std::string share(double part, double whole) {
  return whole > 0 ? fmt::format("{:.1f} %", 100 * part / whole) : "";
}

/// A step's batch is counted in these.
std::string sample_word(const TrainingPlan& plan) {
  return plan.counts_tokens ? "tokens" : "images";
}

void add_winner(std::string& out, const TrainingPlan& plan, const TableStyle& style) {
  const TrainingCandidate& c = plan.candidates.front();
  const double seconds = *c.latency_s;
  Lines lines;
  lines.add("step", format_seconds(seconds), "80 % interval " + span_text(*c.ranked_s));
  lines.add(
      "  speed",
      format_integer(std::llround(plan.samples_per_s(seconds) / static_cast<double>(plan.ranks))),
      fmt::format("{}/s on each GPU; {}", sample_word(plan),
                  training_utilization_text(plan.winner_mfu_ratio, plan.winner_utilization_ratio)));
  lines.add("  computing", format_seconds(c.compute_s), share(c.compute_s, seconds));
  lines.add("  communication", format_seconds(c.exposed_communication_s),
            share(c.exposed_communication_s, seconds) + " exposed, mean of the stages");
  lines.add("  bubble", format_seconds(c.bubble_s), share(c.bubble_s, seconds));
  lines.add("memory", format_bytes(c.memory.peak_bytes),
            fmt::format("of {} that programs see; {} are left, {} asked for",
                        format_bytes(plan.device_bytes), format_bytes(c.memory.margin_bytes()),
                        format_bytes(c.reserve_bytes)));
  if (c.power_w && c.energy_j)
    lines.add(
        "power", fmt::format("{:.0f} W", *c.power_w),
        fmt::format("a GPU; {} a step, {:.3g} J for each of its {}", format_si(*c.energy_j, "J"),
                    *c.energy_j / plan.samples(), sample_word(plan)));
  if (plan.has_prices())
    lines.add("cost", currency_sign(plan.gpu_price) + fmt::format("{:.4g}", plan.cost_of_step(c)),
              fmt::format("a step; {}{:.4g} for a billion {}", currency_sign(plan.gpu_price),
                          plan.cost_of_step(c) * 1e9 / plan.samples(), sample_word(plan)));
  if (plan.gpu_price && !plan.gpu_price->table.empty())
    lines.add("  price", "", price_text(*plan.gpu_price));
  out += lines.text(style);
}

/// Whether a candidate's time says nothing certain of the order with the first.
bool ties(const TrainingPlan& plan, const TrainingCandidate& c) {
  return plan.fastest && c.latency_s && *c.latency_s <= plan.fastest_s * (1 + plan.tie_ratio);
}

/// Why the first is the first.
std::string tie_text(const TrainingPlan& plan) {
  const TrainingCandidate& best = plan.candidates.front();
  if (!plan.fastest || options_text(*plan.fastest) == options_text(best)) return "";
  return fmt::format(
      "It is the simplest of all that may be the fastest: times that differ by less than {:.1f} % "
      "tie. The fastest forecast is {:.1f} % shorter: {}",
      100 * plan.tie_ratio, 100 * (1 - plan.fastest_s / *best.latency_s),
      options_text(*plan.fastest));
}

/// Where the best one lies at a limit of the search.
std::string limit_text(const TrainingPlan& plan) {
  const TrainingCandidate& best = plan.candidates.front();
  if (best.tp < plan.gpus_per_node || plan.ranks == plan.gpus_per_node || best.tp == 1) return "";
  return fmt::format(
      "--tp ends at the {} GPUs of a node, where the best one lies; a list (--tp {}) tries more.",
      plan.gpus_per_node, 2 * best.tp);
}

/// How much worse a candidate is than the winner, and in what.
std::pair<std::string, std::string> loss_of(const TrainingPlan& plan, const TrainingCandidate& c) {
  const TrainingCandidate& best = plan.candidates.front();
  if (!c.fits()) return {"does not fit", format_bytes(c.missing_bytes()) + " too much"};
  const int64_t bytes = c.memory.peak_bytes - best.memory.peak_bytes;
  const std::string memory =
      bytes == 0 ? ""
                 : fmt::format("memory {}{}", bytes > 0 ? "+" : "-", format_bytes(std::abs(bytes)));
  if (!c.latency_s) return {"> " + format_seconds(c.bound_s), memory};
  const double more = *c.latency_s / *best.latency_s - 1;
  const std::string change = fmt::format("{}{:+.1f} %", ties(plan, c) ? "~" : "", 100 * more);
  if (more < 0.0005) return {change, memory};
  const double gaps[] = {c.compute_s - best.compute_s,
                         c.exposed_communication_s - best.exposed_communication_s,
                         c.bubble_s - best.bubble_s};
  const char* const names[] = {"computing", "communication", "bubble"};
  const auto most = static_cast<size_t>(std::max_element(gaps, gaps + 3) - gaps);
  return {change, fmt::format("{} +{}", names[most], format_seconds(gaps[most]))};
}

/// Where a candidate differs from the winner, beside the option of the row.
std::string other_options(const TrainingCandidate& best, const TrainingCandidate& c,
                          const std::string& but) {
  std::vector<std::string> parts;
  for (const TrainingOption& option : training_plan_options()) {
    const std::string_view name = option.name;
    // Without a pipeline there is no schedule, without ranks that share tensors no sequence to
    // divide.
    if (name == but || (name == "pipeline-schedule" && c.pp == 1) ||
        (name == "sequence-parallel" && c.tp == 1))
      continue;
    if (const std::string text = option.shown(c); text != option.shown(best))
      parts.push_back(fmt::format("{} {}", option.column, text));
  }
  return join(parts, ", ");
}

/// The name of an option in tables.
std::string short_name(const std::string& name) {
  for (const TrainingOption& option : training_plan_options()) {
    if (option.name == name) return option.column;
  }
  return name;
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
                          other_options(plan.candidates.front(), c, a.option)});
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

  /// `number`: of the row; 0: none.
  void add(const TrainingCandidate& c, std::vector<std::string> more, int64_t number = 0) {
    if (number > 0) numbers_.push_back(std::to_string(number));
    std::vector<std::string> row;
    for (const TrainingOption& option : training_plan_options()) row.push_back(option.shown(c));
    options_.push_back(std::move(row));
    values_.push_back(std::move(more));
  }

  std::string text(const TableStyle& style) const {
    TextTable table;
    table.rows.resize(options_.size());
    if (!numbers_.empty()) {
      table.header = {""};
      table.right = {true};
      for (size_t i = 0; i < options_.size(); ++i) table.rows[i] = {numbers_[i]};
    }
    for (size_t column = 0; column < training_plan_options().size(); ++column) {
      const TrainingOption& option = training_plan_options()[column];
      const bool alike = std::all_of(options_.begin(), options_.end(), [&](const auto& row) {
        return row[column] == options_.front()[column];
      });
      if (alike && (!option.is_number || options_.front()[column] == "1")) continue;
      table.header.push_back(option.column);
      table.right.push_back(option.is_number);
      for (size_t i = 0; i < options_.size(); ++i) table.rows[i].push_back(options_[i][column]);
    }
    for (size_t column = 0; column < more_.size(); ++column) {
      table.header.push_back(more_[column]);
      table.right.push_back(true);
      for (size_t i = 0; i < options_.size(); ++i) table.rows[i].push_back(values_[i][column]);
    }
    constexpr size_t kIndent = 2;
    return format_text_table(
        in_one_line(std::move(table), style, kIndent, {"alike", "bubble", "exposed", "80 %"}),
        style, kIndent);
  }

 private:
  std::vector<std::string> more_;
  std::vector<std::string> numbers_;
  std::vector<std::vector<std::string>> options_, values_;
};

bool any_extrapolated(const TrainingPlan& plan) {
  return std::any_of(plan.candidates.begin(), plan.candidates.end(),
                     [](const TrainingCandidate& c) { return c.extrapolated; });
}

void add_ranking(std::string& out, const TrainingPlan& plan, const TableStyle& style) {
  std::vector<std::string> names = {"time", "80 %", "exposed", "bubble", "memory"};
  if (plan.fastest) names.push_back("alike");
  const bool by_energy = plan.objective == PlanObjective::kEnergy;
  if (by_energy) names.push_back("energy");
  if (plan.has_prices()) names.push_back("cost");
  const bool marks = any_extrapolated(plan);
  CandidatesTable table(names);
  for (size_t i = 0; i < plan.ranked; ++i) {
    const TrainingCandidate& c = plan.candidates[i];
    std::vector<std::string> more = {
        format_seconds(*c.latency_s) + (marks ? c.extrapolated ? "*" : " " : ""),
        percent_interval(*c.latency_s, c.ranked_s->low, c.ranked_s->high),
        share(c.exposed_communication_s, *c.latency_s), share(c.bubble_s, *c.latency_s),
        format_bytes(c.memory.peak_bytes)};
    if (plan.fastest) more.push_back(format_integer(c.alike));
    if (by_energy) more.push_back(format_si(c.energy_j.value_or(0), "J"));
    if (plan.has_prices()) more.push_back(fmt::format("{:.4g}", plan.cost_of_step(c)));
    table.add(c, std::move(more), plan.fastest ? c.step : static_cast<int64_t>(i) + 1);
  }
  const size_t missed = plan.candidates.size() - plan.fitting;
  const std::string title =
      plan.fastest && plan.ranked == 1 ? "The only layout"
      : plan.fastest
          ? "The best of each layout; which of those with equal numbers is faster is not "
            "certain"
      : plan.objective == PlanObjective::kMemory
          ? fmt::format("The first {} of the {} that fit", plan.ranked,
                        format_integer(static_cast<int64_t>(plan.fitting)))
          : fmt::format("The fastest {} layouts, {} first", plan.ranked,
                        by_energy ? "that of least energy" : "the cheapest");
  out += "\n" + title_lines(title, style) + "\n" + table.text(style);
  if (missed == 0) out += "\nAll fit.\n";
}

void add_misses(std::string& out, const TrainingPlan& plan, const TableStyle& style) {
  const size_t missed = plan.candidates.size() - plan.fitting;
  if (missed == 0) return;
  const bool reserves = plan.memory_reserve > 0;
  std::vector<std::string> names = {"memory", "too much"};
  if (reserves) names.insert(names.begin() + 1, "reserve");
  CandidatesTable table(std::move(names));
  constexpr size_t kShown = 3;
  for (size_t i = plan.fitting; i < plan.fitting + std::min(kShown, missed); ++i) {
    const TrainingCandidate& c = plan.candidates[i];
    std::vector<std::string> more = {format_bytes(c.memory.peak_bytes),
                                     format_bytes(c.missing_bytes())};
    if (reserves) more.insert(more.begin() + 1, format_bytes(c.reserve_bytes));
    table.add(c, std::move(more));
  }
  const std::string reserve =
      reserves ? fmt::format(" with {:.3g} % of the peak free", 100 * plan.memory_reserve) : "";
  const TrainingCandidate& last = plan.candidates.back();
  const TrainingCandidate& middle = plan.candidates[plan.fitting + missed / 2];
  out +=
      "\n" +
      title_lines(
          fmt::format("{} do{} not fit into {}{}{}:", format_integer(static_cast<int64_t>(missed)),
                      missed == 1 ? "es" : "", format_bytes(plan.device_bytes), reserve,
                      missed <= kShown
                          ? ""
                          : fmt::format(": half of them lack {} or more, one {}. The nearest",
                                        format_bytes(middle.missing_bytes()),
                                        format_bytes(last.missing_bytes()))),
          style) +
      "\n" + table.text(style);
}

void add_impossible(std::string& out, const TrainingPlan& plan, const TableStyle& style) {
  out += failures_text(plan.failures, style);
  if (plan.impossible.empty()) return;
  int64_t count = 0;
  for (const auto& [reason, times] : plan.impossible) count += times;
  const auto most =
      std::max_element(plan.impossible.begin(), plan.impossible.end(),
                       [](const auto& a, const auto& b) { return a.second < b.second; });
  const std::string share =
      plan.impossible.size() == 1 ? "" : format_integer(most->second) + " of them ";
  out += "\n" + wrapped(fmt::format("Not possible and not counted: {}, {}because of: {}",
                                    format_integer(count), share, options_as_flags(most->first)),
                        style);
}

/// The options that all candidates share, as far as they decide the times.
std::string shared_text(const TrainingPlan& plan) {
  constexpr size_t kAlways = 7;  // the others where they are not the default
  std::vector<std::string> words;
  for (const char* name :
       {"attention", "fusion", "optimizer", "optimizer-impl", "loss", "main-params-dtype",
        "overlap-grad-reduce", "optimizer-offload", "host-memory-gb-s", "cross-entropy",
        "packed-sequence-length", "cp-comm-type"}) {
    const OptionDef& option = *find_option(name, RequestKind::kPass);
    const std::string value = option.access.get(plan.used, option);
    if (words.size() < kAlways || value != option.access.get(Request{}, option))
      words.push_back(fmt::format("{} {}", name, value));
  }
  return join(words, ", ");
}

/// Explains the short names that the tables have.
std::string legend_of(const std::string& tables) {
  constexpr std::pair<const char*, const char*> kMeanings[] = {
      {"mbs", "micro-batch size"},
      {"schedule", "of the pipeline, interleaved with its parts on each stage"},
      {"sp", "sequence parallel"},
      {"ckpt", "checkpointing"},
      {"alike", "others of the layout that may be as fast"}};
  std::vector<std::string> meanings;
  for (const auto& [name, meaning] : kMeanings) {
    // As a column or the name of a reason: with a space on each side.
    if (tables.find(fmt::format(" {} ", name)) != std::string::npos)
      meanings.push_back(fmt::format("{}: {}", name, meaning));
  }
  const std::string text = join(meanings, "; ");
  return text + (text.empty() ? "" : ". ") + "--format json and csv have all candidates.";
}

/// How many configurations there are, and what all of them share.
std::string counts_text(const TrainingPlan& plan) {
  const auto number = [](auto count) { return format_integer(static_cast<int64_t>(count)); };
  std::string text = fmt::format(
      "{} configuration{}, {} fit{} and leave{} {:.3g} % of the peak free "
      "(--memory-reserve). ",
      number(plan.candidates.size()), plan.candidates.size() == 1 ? "" : "s", number(plan.fitting),
      plan.fitting == 1 ? "s" : "", plan.fitting == 1 ? "s" : "", 100 * plan.memory_reserve);
  if (plan.skipped > 0)
    text += fmt::format("{} more were not tried: with a smaller micro-batch, none of them fits. ",
                        number(plan.skipped));
  if (plan.simulated == plan.fitting && plan.fitting > 0) text += "All of these were simulated. ";
  if (plan.simulated < plan.fitting)
    text += fmt::format("{} were simulated; {}. ", number(plan.simulated),
                        plan.objective == PlanObjective::kMemory
                            ? "the others need more memory"
                            : "lower bounds of their times show that the others are slower");
  return text + fmt::format("All with: {}.", shared_text(plan));
}

}  // namespace

std::string plan_table(const TrainingPlan& plan, const TableStyle& style) {
  std::string out = title_lines(
      fmt::format("{}: training on {} GPU{}, {} node{} of {}, batch {}{}", plan.model,
                  format_integer(plan.ranks), plan.ranks == 1 ? "" : "s",
                  format_integer(plan.nodes), plan.nodes == 1 ? "" : "s", plan.cluster_name,
                  batch_text(plan), clock_text(plan.used.execution.clocks)),
      style);
  out += wrapped(counts_text(plan), style);
  if (plan.fitting == 0) {
    add_misses(out, plan, style);
    add_impossible(out, plan, style);
    return out;
  }
  out += "\n" + wrapped("Best: " + options_text(plan.candidates.front()), style) + "\n";
  add_winner(out, plan, style);
  for (const std::string& text : {tie_text(plan), limit_text(plan)}) {
    if (!text.empty()) out += "\n" + wrapped(text, style);
  }
  out += launch_text(launch_lines(plan), style);
  add_reasons(out, plan, style);
  add_ranking(out, plan, style);
  add_misses(out, plan, style);
  add_impossible(out, plan, style);
  const std::string legend =
      "80 %: interval of the time. " +
      std::string(plan.fastest ? "~: ties with the fastest. " : "") +
      std::string(any_extrapolated(plan) ? "*: part of the time is extrapolated. " : "") +
      legend_of(out);
  return out + "\n" + wrapped(legend, style);
}

}  // namespace tilecast
