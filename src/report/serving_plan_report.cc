// The output of 'tilecast plan' for serving.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/text.h"
#include "report/kernel_text.h"
#include "report/plan_text.h"
#include "report/price_text.h"
#include "report/serving_plan_text.h"
#include "report/text_table.h"
#include "request/access.h"
#include "tilecast/view.h"

namespace tilecast {
namespace {

using Candidate = ServingCandidate;

void drop_column(TextTable& table, std::ptrdiff_t column) {
  table.header.erase(table.header.begin() + column);
  table.right.erase(table.right.begin() + column);
  for (auto& row : table.rows) row.erase(row.begin() + column);
}

/// "1,024"; "150 to 440" for lengths that are drawn.
std::string length_text(int64_t least, int64_t most) {
  return most > least ? fmt::format("{} to {}", format_integer(least), format_integer(most))
                      : format_integer(least);
}

/// A time, marked where it misses a limit.
std::string limited(double seconds, const std::optional<double>& limit) {
  return format_seconds(seconds) + (limit && seconds > *limit ? " !" : "");
}

/// "~498*"
std::string throughput_text(const ServingPlan& plan, const Candidate& c) {
  return fmt::format("{}{}{}", order_is_uncertain(plan, c) ? "~" : "",
                     format_count(c.gpu_tokens_per_s),
                     c.intervals && c.intervals->extrapolated ? "*" : "");
}

/// "TPOT 22.8 ms to 35.2 ms around the limit of 30.0 ms"; "": the intervals cross no limit.
std::string crossed_limits(const ServingPlan& plan, const ServingIntervals& of) {
  std::vector<std::string> parts;
  const auto add = [&](const char* name, const Interval& time, const std::optional<double>& limit) {
    if (ServingPlan::crosses(time, limit))
      parts.push_back(fmt::format("{} {} around the limit of {}", name, span_text(time),
                                  format_seconds(*limit)));
  };
  add("TTFT", of.ttft, plan.ttft_s);
  add("TPOT", of.tpot, plan.tpot_s);
  return plan.limits_are_certain(of) ? "" : join(parts, ", ");
}

/// A table of candidates; columns in which all are alike are left out.
std::string candidates_table(const ServingPlan& plan, const std::vector<size_t>& rows,
                             const TableStyle& style, bool numbered) {
  TextTable table;
  table.rows.resize(rows.size());
  if (numbered) {
    table.header = {""};
    table.right = {true};
    for (size_t i = 0; i < rows.size(); ++i) table.rows[i] = {std::to_string(i + 1)};
  }
  const auto add = [&](const std::string& name, bool right, auto text) {
    table.header.push_back(name);
    table.right.push_back(right);
    for (size_t i = 0; i < rows.size(); ++i)
      table.rows[i].push_back(text(plan.candidates[rows[i]]));
  };
  const auto differ = [&](auto value) {
    return std::any_of(rows.begin(), rows.end(), [&](size_t i) {
      return value(plan.candidates[i]) != value(plan.candidates[rows.front()]);
    });
  };
  for (const ServingOption& option : serving_plan_options()) {
    const auto value = [&](const Candidate& c) { return shown_text(plan, option, c); };
    if (option.name == std::string_view("tp") || differ(value))
      add(option.column, option.is_number, value);
  }
  const auto replicas = [](const Candidate& c) { return format_integer(c.replicas); };
  if (differ(replicas)) add("repl", true, replicas);
  if (plan.sized())
    add("GPUs", true, [](const Candidate& c) {
      return format_integer(c.gpus()) + (c.intervals && c.intervals->extrapolated ? "*" : "");
    });
  if (plan.used.load.rate == 0)
    add("clients", true, [](const Candidate& c) { return format_integer(c.concurrency); });
  add("TTFT", true, [&](const Candidate& c) { return limited(c.ttft_s, plan.ttft_s); });
  add("TPOT", true, [&](const Candidate& c) { return limited(c.tpot_s, plan.tpot_s); });
  add("user/s", true, [](const Candidate& c) { return format_count(c.user_tokens_per_s); });
  if (!plan.sized())
    add("GPU/s", true, [&](const Candidate& c) { return throughput_text(plan, c); });
  if (plan.ranks_by_energy())
    add("J/tok", true, [&](const Candidate& c) {
      if (!c.energy_per_token_j) return std::string("-");
      return fmt::format("{}{:.3g}", plan.sized() && order_is_uncertain(plan, c) ? "~" : "",
                         *c.energy_per_token_j);
    });
  const std::string sign = currency_sign(plan.prices);
  if (plan.sized() && !plan.prices.empty())
    add(sign + "/h", true,
        [&](const Candidate& c) { return format_count(plan.price_per_hour(c)); });
  else if (!plan.prices.empty())
    add(sign + "/M tok", true,
        [&](const Candidate& c) { return fmt::format("{:.3g}", plan.cost_of_million_tokens(c)); });
  constexpr size_t kIndent = 2;
  return format_text_table(in_one_line(std::move(table), style, kIndent, {"user/s", "repl"}), style,
                           kIndent);
}

/// What "~" stands for, as far as candidates have it.
std::string uncertain_orders(const ServingPlan& plan) {
  std::vector<std::string> kinds;
  const auto any = [&](bool same_gpu) {
    return std::any_of(plan.candidates.begin(), plan.candidates.end(), [&](const Candidate& c) {
      return (c.hardware == plan.candidates.front().hardware) == same_gpu &&
             order_is_uncertain(plan, c);
    });
  };
  if (any(true))
    kinds.push_back(
        fmt::format("on the same GPUs, less than {:.0f} % apart", 100 * ServingPlan::kTieRatio));
  if (any(false)) kinds.push_back("on other GPUs, 80 % intervals that overlap");
  return kinds.empty() ? ""
                       : fmt::format("~: whether the best is better is not certain ({}); ",
                                     join(kinds, "; "));
}

/// Explains the columns and marks that the tables of these rows have.
std::string legend(const ServingPlan& plan, const std::vector<size_t>& first,
                   const std::string& tables) {
  const auto shown = [&](auto value) {
    const auto differs = [&](const std::vector<size_t>& rows) {
      return std::any_of(rows.begin(), rows.end(), [&](size_t i) {
        return value(plan.candidates[i]) != value(plan.candidates[rows.front()]);
      });
    };
    return differs(first) || differs(plan.front);
  };
  // Narrow tables leave columns out.
  const auto has = [&](const char* column) {
    return tables.find(fmt::format(" {} ", column)) != std::string::npos;
  };
  const bool misses = std::any_of(plan.front.begin(), plan.front.end(),
                                  [&](size_t i) { return !plan.candidates[i].meets; });
  // Reasons list the best of other kinds, which need not be in the tables.
  const auto marked = [&](auto is) {
    return std::any_of(plan.candidates.begin(), plan.candidates.end(), is);
  };
  return fmt::format(
      "{}{}{}{}{}{}{}. --format json and csv have all candidates, -o "
      "FILE.svg the picture of the front.",
      has("clients") ? "clients: of each replica; " : "",
      shown([](const Candidate& c) { return c.replicas; }) && has("repl") ? "repl: replicas; " : "",
      shown([](const Candidate& c) { return c.prefill_workers; })
          ? "prefill: servers that compute prompts only; "
          : "",
      misses ? "!: misses a limit; " : "", uncertain_orders(plan),
      marked([](const Candidate& c) { return c.intervals && c.intervals->extrapolated; })
          ? "*: part of the time is extrapolated; "
          : "",
      plan.sized()    ? "user/s: tokens/s of a user"
      : has("user/s") ? "user/s, GPU/s: tokens/s of a user and for each GPU"
                      : "GPU/s: tokens/s for each GPU");
}

void add_winner(std::string& out, const ServingPlan& plan, const TableStyle& style) {
  const Candidate& c = plan.candidates.front();
  Lines lines;
  const std::string prompts =
      c.prefill_workers > 0
          ? fmt::format("; {} × {} more for prompts", c.prefill_workers, c.tp * c.pp * c.dp)
          : "";
  const std::string clients =
      c.concurrency > 0 ? fmt::format(", {} on each replica", counted(c.concurrency, "client"))
                        : "";
  if (plan.sized())
    lines.add("GPUs", format_integer(c.gpus()),
              plan.prices.empty() ? "in all"
                                  : fmt::format("in all; {}{} an hour", currency_sign(plan.prices),
                                                format_count(plan.price_per_hour(c))));
  lines.add("layout",
            fmt::format("{} × {} GPU{}", c.replicas, c.tp * c.pp * c.dp,
                        c.tp * c.pp * c.dp == 1 ? "" : "s"),
            fmt::format("of {}{}{}{}", plan.gpu_names[c.hardware], clients, prompts,
                        c.gpus() < plan.paid_gpus(c) ? fmt::format("; {} of {} GPUs are idle",
                                                                   plan.gpus - c.gpus(), plan.gpus)
                                                     : ""));
  lines.add("tokens/s", format_integer(std::llround(c.tokens_per_s)),
            fmt::format("written; {} for each GPU", format_count(c.gpu_tokens_per_s)));
  lines.add("  of a user", format_count(c.user_tokens_per_s), "1 / mean TPOT");
  lines.add("requests/s", format_count(c.requests_per_s), "");
  const std::string which = std::string(choice_name(plan.percentile)) + " of the steady part";
  const auto limit = [](const std::optional<double>& seconds) {
    return seconds ? "; limit " + format_seconds(*seconds) : std::string();
  };
  lines.add("TTFT", format_seconds(c.ttft_s), which + limit(plan.ttft_s));
  lines.add("TPOT", format_seconds(c.tpot_s), which + limit(plan.tpot_s));
  lines.add("memory", format_bytes(c.peak_bytes),
            fmt::format("of {} that programs see, with the cache's share",
                        format_bytes(plan.device_bytes[c.hardware])));
  if (c.power_w && c.energy_per_token_j)
    lines.add("power", fmt::format("{:.0f} W", *c.power_w),
              fmt::format("a GPU; {:.3g} J for a written token", *c.energy_per_token_j));
  if (!plan.prices.empty())
    lines.add("cost",
              fmt::format("{}{:.3g}", currency_sign(plan.prices), plan.cost_of_million_tokens(c)),
              "for a million written tokens");
  out += lines.text(style);
}

/// The 80 % intervals of the first candidates, and where they cross a limit.
void add_intervals(std::string& out, const ServingPlan& plan, const std::vector<size_t>& rows,
                   const TableStyle& style) {
  TextTable table;
  const bool kinds = plan.gpu_ids.size() > 1;
  table.header = {"", "GPU", "TTFT", "TPOT", plan.sized() ? "GPUs" : "GPU/s"};
  table.right = {true, false, true, true, true};
  const auto span = [&](const Interval& time, const std::optional<double>& limit) {
    return fmt::format("{}{}", span_text(time),
                       !limit                              ? ""
                       : ServingPlan::crosses(time, limit) ? " ?"
                                                           : "  ");
  };
  size_t uncertain = 0;
  for (const size_t i : rows) {
    const Candidate& c = plan.candidates[i];
    if (!c.intervals) continue;
    if (!plan.limits_are_certain(*c.intervals)) ++uncertain;
    table.rows.push_back(
        {std::to_string(i + 1), short_gpu(plan, c), span(c.intervals->ttft, plan.ttft_s),
         span(c.intervals->tpot, plan.tpot_s),
         plan.sized() ? format_integer(c.gpus())
                      : fmt::format("{} to {}", format_count(c.intervals->gpu_tokens_per_s.low),
                                    format_count(c.intervals->gpu_tokens_per_s.high))});
  }
  if (table.rows.empty()) return;
  if (!kinds) drop_column(table, 1);
  out +=
      "\n" + title_lines("Their 80 % intervals", style) + "\n" + format_text_table(table, style, 2);
  if (uncertain > 0)
    out += "\n" + wrapped(fmt::format("?: the interval crosses a limit. Whether the limits are met "
                                      "is not certain for {} of these {}.",
                                      uncertain, table.rows.size()),
                          style);
}

void add_misses(std::string& out, const ServingPlan& plan, const TableStyle& style) {
  const size_t missed = plan.candidates.size() - plan.fitting;
  if (missed == 0) return;
  TextTable table;
  const bool kinds = plan.gpu_ids.size() > 1;
  table.header = {"GPU", "tp", "pp", "dp", "ep", "dtype", "memory", "too much"};
  table.right = {false, true, true, true, true, false, true, true};
  constexpr size_t kShown = 3;
  for (size_t i = plan.fitting; i < plan.candidates.size() && table.rows.size() < kShown; ++i) {
    const Candidate& c = plan.candidates[i];
    std::vector<std::string> row = {short_gpu(plan, c),         std::to_string(c.tp),
                                    std::to_string(c.pp),       std::to_string(c.dp),
                                    std::to_string(c.ep),       dtype_text(c),
                                    format_bytes(c.peak_bytes), format_bytes(-c.margin_bytes)};
    // Layouts that differ in the number of servers only need the same memory.
    if (std::find(table.rows.begin(), table.rows.end(), row) == table.rows.end())
      table.rows.push_back(std::move(row));
  }
  if (!kinds) drop_column(table, 0);
  out += "\n" +
         title_lines(
             fmt::format("{} not fit into the part of the memory that a server takes{}:",
                         missed == 1 ? "One layout does" : fmt::format("{} layouts do", missed),
                         missed == 1 ? "" : "; the nearest"),
             style) +
         "\n" + format_text_table(table, style, 2);
}

/// ", $3.60 an hour"; "": no prices are given.
std::string an_hour(const ServingPlan& plan, const Candidate& c) {
  if (plan.prices.empty()) return "";
  return fmt::format(", {}{} an hour", currency_sign(plan.prices),
                     format_count(plan.price_per_hour(c)));
}

/// What decided on the best candidate, where the search ends, and what is not certain.
void add_remarks(std::string& out, const ServingPlan& plan, const TableStyle& style) {
  const Candidate& best = plan.candidates.front();
  const bool by_energy = plan.ranks_by_energy();
  if (plan.most) {
    const Candidate& most = plan.candidates[*plan.most];
    const double ratio = by_energy ? plan.worth(most) / plan.worth(best)
                                   : most.gpu_tokens_per_s / best.gpu_tokens_per_s;
    out += "\n" +
           wrapped(fmt::format("It is the simplest of the layouts that tie: {} that "
                               "differ by less than {:.0f} % do. {:+.1f} %: {}",
                               by_energy ? "energies" : "throughputs", 100 * ServingPlan::kTieRatio,
                               100 * (ratio - 1), options_text(plan, most)),
                   style);
  }
  const auto tried_more = [](const Candidate& c) {
    return c.concurrency > ServingPlan::kMostClients;
  };
  if (plan.fewest) {
    const Candidate& c = plan.candidates[*plan.fewest];
    out +=
        "\n" + wrapped(fmt::format("{}. The fewest GPUs: {}{}: {}",
                                   by_energy ? "It takes the least energy" : "It is the cheapest",
                                   c.gpus(), an_hour(plan, c), options_text(plan, c)),
                       style);
  }
  if (!plan.sized() && best.concurrency == ServingPlan::kMostClients &&
      std::none_of(plan.candidates.begin(), plan.candidates.end(), tried_more))
    out += "\n" + wrapped(fmt::format("--concurrency ends at {} clients, where the best one lies; "
                                      "a list (--concurrency {}) tries more.",
                                      format_integer(best.concurrency), 2 * best.concurrency),
                          style);
  if (const std::string crossed = best.intervals ? crossed_limits(plan, *best.intervals) : "";
      !crossed.empty())
    out += "\n" +
           wrapped(fmt::format("Whether it meets the limits is not certain: 80 % interval of {}.",
                               crossed),
                   style);
}

/// Layouts that are no candidates, and why.
std::string left_out(const ServingPlan& plan, const TableStyle& style) {
  std::string out;
  for (const auto& [reason, times] : plan.impossible)
    out += "\n" +
           wrapped(fmt::format("Not possible ({}): {}", times, options_as_flags(reason)), style);
  return out + failures_text(plan.failures, style);
}

}  // namespace

std::string plan_table(const ServingPlan& plan, const TableStyle& style) {
  std::string out = title_lines(
      fmt::format("{}: serving {}{}, prompt {}, output {}; {}", plan.model, load_text(plan),
                  clock_text(plan.used.execution.clocks),
                  length_text(plan.used.prompt, plan.used.load.max_prompt),
                  length_text(plan.used.output, plan.used.load.max_output), limits_text(plan)),
      style);
  out += wrapped(counts_text(plan), style);
  if (plan.simulated == 0) {
    add_misses(out, plan, style);
    return out + left_out(plan, style);
  }
  const Candidate& best = plan.candidates.front();
  if (!best.meets)
    out += "\n" + wrapped("None meets the limits. The nearest: " + missed_text(plan, best), style);
  out += "\n" + wrapped((best.meets ? "Best: " : "Nearest: ") + options_text(plan, best), style) +
         "\n";
  add_winner(out, plan, style);
  add_remarks(out, plan, style);
  out += launch_text(launch_lines(plan), style);
  add_reasons(out, plan, style);
  std::vector<size_t> first;
  for (size_t i = 0; i < std::min(ServingPlan::kListed, std::max<size_t>(plan.layouts, 1)); ++i)
    first.push_back(i);
  if (plan.meeting > 0)
    out += "\n" +
           title_lines(fmt::format("{} of {} of the {} layouts that {}",
                                   plan.ranks_by_energy() ? "The least energy"
                                   : plan.sized()         ? "The fewest GPUs"
                                                          : "The best load",
                                   first.size(), plan.layouts,
                                   plan.limited() ? "meet the limits" : "were simulated"),
                       style) +
           "\n" + candidates_table(plan, first, style, true);
  add_intervals(out, plan, first, style);
  out += "\n" +
         title_lines(fmt::format("Pareto front{}: none is better both for a user and {}",
                                 plan.limited() && plan.meeting > 0 ? " within the limits" : "",
                                 !plan.sized()            ? "for a GPU"
                                 : plan.ranks_by_energy() ? "in energy"
                                 : plan.ranks_by_cost()   ? "in price"
                                                          : "in GPUs"),
                     style) +
         "\n" + candidates_table(plan, plan.front, style, false);
  add_front_picture(out, plan, style);
  add_misses(out, plan, style);
  out += "\n" + wrapped(legend(plan, first, out), style) + price_lines(plan.prices, style);
  return out + left_out(plan, style);
}

}  // namespace tilecast
