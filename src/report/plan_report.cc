// The output of 'tilecast plan' for training.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/json.h"
#include "base/text.h"
#include "report/options_json.h"
#include "report/text_table.h"
#include "request/access.h"
#include "tilecast/report.h"

namespace tilecast {
namespace {

std::string on_off(bool value) { return value ? "on" : "off"; }

std::string schedule_text(const TrainingCandidate& c) {
  if (c.pp == 1) return "-";
  if (c.virtual_stages == 1) return choice_name(c.schedule);
  return fmt::format("interleaved {}", c.virtual_stages);
}

std::string seconds_text(const TrainingCandidate& c) {
  return c.latency_s ? format_seconds(*c.latency_s) : "> " + format_seconds(c.bound_s);
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
            fmt::format("{} tokens/s on each GPU",
                        format_integer(static_cast<int64_t>(std::llround(
                            tokens_per_s(plan, seconds) / static_cast<double>(plan.ranks))))));
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

/// Text of what a candidate with another value of an option costs.
std::string loss_text(const TrainingPlan& plan, const TrainingCandidate& c) {
  const TrainingCandidate& best = plan.candidates.front();
  if (!c.fits()) return fmt::format("does not fit: {} too much", format_bytes(-c.margin_bytes));
  if (!c.latency_s) return "slower than " + format_seconds(c.bound_s);
  const double more = *c.latency_s / *best.latency_s - 1;
  std::string text = more < 0.00005 ? "as fast" : fmt::format("{:.1f} % slower", 100 * more);
  const double gaps[] = {c.compute_s - best.compute_s,
                         c.exposed_communication_s - best.exposed_communication_s,
                         c.bubble_s - best.bubble_s};
  const char* const names[] = {"computing", "communication", "bubble"};
  if (more < 0) return fmt::format("{:.1f} % faster, but {} more memory", -100 * more,
                                   format_bytes(c.peak_bytes - best.peak_bytes));
  if (more < 0.0005) return text + (c.peak_bytes > best.peak_bytes
                                        ? fmt::format(", {} more memory",
                                                      format_bytes(c.peak_bytes - best.peak_bytes))
                                        : "");
  const size_t most = static_cast<size_t>(std::max_element(gaps, gaps + 3) - gaps);
  return text + fmt::format(": {} more {}", format_seconds(gaps[most]), names[most]);
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
  add("tp", number(best.tp), number(c.tp));
  add("pp", number(best.pp), number(c.pp));
  add("dp", number(best.dp), number(c.dp));
  add("cp", number(best.cp), number(c.cp));
  add("ep", number(best.ep), number(c.ep));
  add("micro-batch-size", number(best.micro_batch_size), number(c.micro_batch_size));
  add("pipeline-schedule", schedule_text(best), schedule_text(c));
  add("zero", choice_name(best.zero), choice_name(c.zero));
  add("checkpointing", choice_name(best.checkpointing), choice_name(c.checkpointing));
  add("sequence-parallel", on_off(best.sequence_parallel), on_off(c.sequence_parallel));
  add("dtype", best.dtype, c.dtype);
  return text.empty() ? "" : "with " + text;
}

void add_reasons(std::string& out, const TrainingPlan& plan, const TableStyle& style) {
  TextTable table;
  table.header = {"instead of the winner's", "", "the best candidate is", ""};
  table.fit = {Fit::kWhole, Fit::kWhole, Fit::kWrap, Fit::kWrap};
  std::string before;
  for (const PlanAlternative& a : plan.alternatives) {
    const TrainingCandidate& c = plan.candidates[a.candidate];
    table.rows.push_back({a.option == before ? "" : a.option, a.value, loss_text(plan, c),
                          other_options(plan.candidates.front(), c, a.option)});
    before = a.option;
  }
  if (!table.rows.empty())
    out += "\n" + title_lines("Why: other values of each option", style) + "\n" +
           format_text_table(table, style, 2);
}

std::vector<std::string> row_of(const TrainingCandidate& c, const std::string& first) {
  return {first,
          std::to_string(c.dp),
          std::to_string(c.tp),
          std::to_string(c.pp),
          std::to_string(c.cp),
          std::to_string(c.ep),
          std::to_string(c.micro_batch_size),
          schedule_text(c),
          choice_name(c.zero),
          on_off(c.sequence_parallel),
          choice_name(c.checkpointing),
          c.dtype};
}

TextTable candidates_table(const std::vector<std::string>& more) {
  TextTable table;
  table.header = {"", "dp", "tp", "pp", "cp", "ep", "mbs", "schedule", "zero", "sp", "ckpt",
                  "dtype"};
  table.right = {true, true, true, true, true, true, true};
  table.right.resize(table.header.size(), false);
  for (const std::string& name : more) {
    table.header.push_back(name);
    table.right.push_back(true);
  }
  return table;
}

void add_ranking(std::string& out, const TrainingPlan& plan, const TableStyle& style) {
  TextTable table = candidates_table({"step", "exposed", "bubble", "memory"});
  for (size_t i = 0; i < plan.ranked; ++i) {
    const TrainingCandidate& c = plan.candidates[i];
    std::vector<std::string> row = row_of(c, std::to_string(i + 1));
    for (const std::string& cell :
         {seconds_text(c), share(c.exposed_communication_s, *c.latency_s),
          share(c.bubble_s, *c.latency_s), format_bytes(c.peak_bytes)})
      row.push_back(cell);
    table.rows.push_back(std::move(row));
  }
  out += "\n" + title_lines("The first of those that fit", style) + "\n" +
         format_text_table(table, style, 2);
}

void add_misses(std::string& out, const TrainingPlan& plan, const TableStyle& style) {
  const size_t missed = plan.candidates.size() - plan.fitting;
  if (missed == 0) return;
  TextTable table = candidates_table({"memory", "too much"});
  constexpr size_t kShown = 3;
  for (size_t i = 0; i < std::min(kShown, missed); ++i) {
    const TrainingCandidate& c = plan.candidates[plan.fitting + i];
    std::vector<std::string> row = row_of(c, "");
    row.push_back(format_bytes(c.peak_bytes));
    row.push_back(format_bytes(-c.margin_bytes));
    table.rows.push_back(std::move(row));
  }
  out += "\n" + title_lines(fmt::format("{} do not fit into {}; the nearest:",
                                        format_integer(static_cast<int64_t>(missed)),
                                        format_bytes(plan.device_bytes)),
                            style) +
         "\n" + format_text_table(table, style, 2);
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
  const std::string counts = fmt::format(
      "{} configurations, {} fit; {} simulated, the others are slower than the last one shown by a "
      "lower bound of their time. All with: {}.",
      format_integer(static_cast<int64_t>(plan.candidates.size())),
      format_integer(static_cast<int64_t>(plan.fitting)),
      format_integer(static_cast<int64_t>(plan.simulated)), shared_text(plan));
  for (const std::string& line : wrap_text(counts, static_cast<size_t>(style.width)))
    out += line + "\n";
  if (plan.fitting == 0) {
    out += "\nNo configuration fits.\n";
    add_misses(out, plan, style);
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
               {"fitting", plan.fitting},
               {"simulated", plan.simulated},
               {"ranked", plan.ranked},
               {"candidates", candidates},
               {"alternatives", alternatives},
               {"impossible", impossible},
               {"options", options_json(plan.used)}};
  if (plan.price_per_gpu_hour) json["price_per_gpu_hour"] = *plan.price_per_gpu_hour;
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
