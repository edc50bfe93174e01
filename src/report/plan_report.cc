// The output of 'tilecast plan' for training.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/json.h"
#include "base/text.h"
#include "report/options_json.h"
#include "report/text_table.h"
#include "request/access.h"
#include "tilecast/plan_report.h"

namespace tilecast {
namespace {

std::string on_off(bool value) { return value ? "on" : "off"; }

std::string schedule_text(const TrainingCandidate& c) {
  if (c.pp == 1) return "-";
  if (c.virtual_stages == 1) return choice_name(c.schedule);
  return fmt::format("interleaved {}", c.virtual_stages);
}

double tokens_per_s(const TrainingPlan& plan, double seconds) {
  return static_cast<double>(plan.batch) * static_cast<double>(plan.seq) / seconds;
}

/// As options of 'tilecast forecast'.
std::string options_text(const TrainingCandidate& c) {
  std::string text = fmt::format("--dp {} --tp {} --pp {}", c.dp, c.tp, c.pp);
  if (c.cp > 1) text += fmt::format(" --cp {}", c.cp);
  if (c.ep > 1) text += fmt::format(" --ep {}", c.ep);
  text += fmt::format(" --micro-batch-size {} --dtype {}", c.micro_batch_size, c.dtype);
  if (c.sequence_parallel) text += " --sequence-parallel on";
  if (c.zero != Zero::kNone) text += " --zero " + choice_name(c.zero);
  if (c.checkpointing != Checkpointing::kNone)
    text += " --checkpointing " + choice_name(c.checkpointing);
  if (c.pp > 1) text += " --pipeline-schedule " + choice_name(c.schedule);
  if (c.layers_per_virtual_stage)
    text += fmt::format(" --num-layers-per-virtual-pipeline-stage {}", *c.layers_per_virtual_stage);
  return text;
}

std::string share(double part, double whole) {
  return whole > 0 ? fmt::format("{:.1f} %", 100 * part / whole) : "";
}

void add_winner(std::string& out, const TrainingPlan& plan, const TableStyle& style) {
  const TrainingCandidate& c = plan.candidates.front();
  const double seconds = *c.latency_s;
  Lines lines;
  lines.add("step", format_seconds(seconds),
            fmt::format("80 % interval {} to {}", format_seconds(plan.winner_low_s),
                        format_seconds(plan.winner_high_s)));
  lines.add("  speed",
            format_integer(std::llround(tokens_per_s(plan, seconds) /
                                        static_cast<double>(plan.ranks))),
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
  if (c.tp > 1) add("sp", on_off(best.sequence_parallel), on_off(c.sequence_parallel));
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
    out += "\n" +
           title_lines("Why: the best candidates with another value of one option", style) + "\n" +
           format_text_table(table, style, 2);
}

/// A table of candidates; options that all of them share are left out.
class CandidatesTable {
 public:
  explicit CandidatesTable(std::vector<std::string> more) : more_(std::move(more)) {}

  void add(const TrainingCandidate& c, std::vector<std::string> more) {
    options_.push_back({std::to_string(c.dp), std::to_string(c.tp), std::to_string(c.pp),
                        std::to_string(c.cp), std::to_string(c.ep),
                        std::to_string(c.micro_batch_size), schedule_text(c), choice_name(c.zero),
                        on_off(c.sequence_parallel), choice_name(c.checkpointing), c.dtype});
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

void add_ranking(std::string& out, const TrainingPlan& plan, const TableStyle& style) {
  std::vector<std::string> names = {"step", "exposed", "bubble", "memory"};
  if (plan.price_per_gpu_hour) names.push_back("cost");
  CandidatesTable table(names);
  for (size_t i = 0; i < plan.ranked; ++i) {
    const TrainingCandidate& c = plan.candidates[i];
    std::vector<std::string> more = {
        format_seconds(*c.latency_s), share(c.exposed_communication_s, *c.latency_s),
        share(c.bubble_s, *c.latency_s), format_bytes(c.peak_bytes)};
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
  out += "\n" +
         title_lines(fmt::format("{} do not fit into {}: half of them lack {} or more, one {}. The "
                                 "nearest:",
                                 format_integer(static_cast<int64_t>(missed)),
                                 format_bytes(plan.device_bytes),
                                 format_bytes(-middle.margin_bytes),
                                 format_bytes(-last.margin_bytes)),
                     style) +
         "\n" + table.text(style, false);
}

void add_impossible(std::string& out, const TrainingPlan& plan, const TableStyle& style) {
  if (plan.impossible.empty()) return;
  int64_t count = 0;
  for (const auto& [reason, times] : plan.impossible) count += times;
  const auto most = std::max_element(
      plan.impossible.begin(), plan.impossible.end(),
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

Json candidate_json(const TrainingPlan& plan, const TrainingCandidate& c, size_t rank) {
  Json json = {{"rank", nullptr},
               {"fits", c.fits()},
               {"dp", c.dp},
               {"tp", c.tp},
               {"pp", c.pp},
               {"cp", c.cp},
               {"ep", c.ep},
               {"micro_batch_size", c.micro_batch_size},
               {"microbatches", c.microbatches},
               {"pipeline_schedule", choice_name(c.schedule)},
               {"virtual_stages", c.virtual_stages},
               {"num_layers_per_virtual_pipeline_stage", nullptr},
               {"zero", choice_name(c.zero)},
               {"checkpointing", choice_name(c.checkpointing)},
               {"sequence_parallel", c.sequence_parallel},
               {"dtype", c.dtype},
               {"latency_s", nullptr},
               {"bound_s", c.bound_s},
               {"peak_bytes", c.peak_bytes},
               {"margin_bytes", c.margin_bytes},
               {"weights_bytes", c.weights_bytes},
               {"gradients_bytes", c.gradients_bytes},
               {"optimizer_bytes", c.optimizer_bytes},
               {"activations_bytes", c.activations_bytes}};
  if (c.layers_per_virtual_stage)
    json["num_layers_per_virtual_pipeline_stage"] = *c.layers_per_virtual_stage;
  if (rank < plan.ranked) json["rank"] = rank + 1;
  if (c.latency_s) {
    json["latency_s"] = *c.latency_s;
    json["compute_s"] = c.compute_s;
    json["exposed_communication_s"] = c.exposed_communication_s;
    json["bubble_s"] = c.bubble_s;
    json["tokens_per_s"] = tokens_per_s(plan, *c.latency_s);
    if (plan.price_per_gpu_hour) json["cost_of_step"] = plan.cost_of_step(*c.latency_s);
  }
  return json;
}

}  // namespace

std::string plan_table(const TrainingPlan& plan, const TableStyle& style) {
  std::string out = title_lines(
      fmt::format("{}: training on {} GPUs, {} node{} of {}, batch {} × {} tokens", plan.model,
                  format_integer(plan.ranks), format_integer(plan.nodes),
                  plan.nodes == 1 ? "" : "s", plan.cluster_name, format_integer(plan.batch),
                  format_integer(plan.seq)),
      style);
  std::string counts = fmt::format("{} configurations, {} fit. ",
                                   format_integer(static_cast<int64_t>(plan.candidates.size())),
                                   format_integer(static_cast<int64_t>(plan.fitting)));
  if (plan.simulated == plan.fitting && plan.fitting > 0) counts += "All of these were simulated. ";
  if (plan.simulated < plan.fitting)
    counts += fmt::format("{} were simulated; {}. ",
                          format_integer(static_cast<int64_t>(plan.simulated)),
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
  add_reasons(out, plan, style);
  add_ranking(out, plan, style);
  add_misses(out, plan, style);
  add_impossible(out, plan, style);
  const std::string legend =
      "mbs: micro-batch size; schedule: of the pipeline, interleaved with its parts on each stage; "
      "sp: sequence parallel; ckpt: checkpointing. --format json and csv have all candidates.";
  out += "\n";
  for (const std::string& line : wrap_text(legend, static_cast<size_t>(style.width)))
    out += line + "\n";
  return out;
}

std::string plan_json(const TrainingPlan& plan) {
  Json candidates = Json::array(), alternatives = Json::array(), impossible = Json::array();
  for (size_t i = 0; i < plan.candidates.size(); ++i)
    candidates.push_back(candidate_json(plan, plan.candidates[i], i));
  for (const PlanAlternative& a : plan.alternatives)
    alternatives.push_back(
        {{"option", a.option}, {"value", a.value}, {"candidate", a.candidate}});
  for (const auto& [reason, count] : plan.impossible)
    impossible.push_back({{"reason", reason}, {"count", count}});
  Json json = {{"schema_version", 1},
               {"kind", "training"},
               {"model", plan.model},
               {"gpu", plan.gpu},
               {"cluster", plan.cluster},
               {"nodes", plan.nodes},
               {"ranks", plan.ranks},
               {"batch", plan.batch},
               {"seq", plan.seq},
               {"parameters", plan.parameters},
               {"device_bytes", plan.device_bytes},
               {"objective", choice_name(plan.objective)},
               {"price_per_gpu_hour", nullptr},
               {"winner", nullptr},
               {"warnings", warning_texts(plan.warnings)},
               {"fitting", plan.fitting},
               {"simulated", plan.simulated},
               {"ranked", plan.ranked},
               {"candidates", candidates},
               {"alternatives", alternatives},
               {"impossible", impossible},
               {"options", options_json(plan.used)}};
  if (plan.price_per_gpu_hour) json["price_per_gpu_hour"] = *plan.price_per_gpu_hour;
  if (plan.fitting > 0)
    json["winner"] = {{"options", options_text(plan.candidates.front())},
                      {"latency_low_s", plan.winner_low_s},
                      {"latency_high_s", plan.winner_high_s},
                      {"utilization_ratio", plan.winner_utilization_ratio}};
  return json.dump(1) + "\n";
}

std::string plan_csv(const TrainingPlan& plan) {
  std::string out =
      "rank,fits,dp,tp,pp,cp,ep,micro_batch_size,pipeline_schedule,virtual_stages,zero,"
      "checkpointing,sequence_parallel,dtype,latency_s,bound_s,peak_bytes,margin_bytes\n";
  for (size_t i = 0; i < plan.candidates.size(); ++i) {
    const TrainingCandidate& c = plan.candidates[i];
    out += fmt::format("{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{}\n",
                       i < plan.ranked ? std::to_string(i + 1) : "", c.fits(), c.dp, c.tp, c.pp,
                       c.cp, c.ep, c.micro_batch_size, choice_name(c.schedule), c.virtual_stages,
                       choice_name(c.zero), choice_name(c.checkpointing),
                       on_off(c.sequence_parallel), c.dtype,
                       c.latency_s ? fmt::format("{}", *c.latency_s) : "", c.bound_s,
                       c.peak_bytes, c.margin_bytes);
  }
  return out;
}

}  // namespace tilecast
