// Why other values of the options of a plan for serving are worse.

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "report/kernel_text.h"
#include "report/serving_plan_text.h"
#include "report/text_table.h"

namespace tilecast {
namespace {

/// What a candidate lacks beside the best: 0: nothing; 1: it misses limits that the best keeps;
/// 2: it does not fit.
int lack_of(const ServingPlan& plan, const PlanAlternative& a) {
  const ServingCandidate& c = plan.candidates[a.candidate];
  return !c.fits ? 2 : plan.candidates.front().meets && !c.meets ? 1 : 0;
}

/// By how much it is worse than the best, and why.
std::pair<std::string, std::string> loss_of(const ServingPlan& plan, const ServingCandidate& c) {
  const ServingCandidate& best = plan.candidates.front();
  if (!c.fits) return {"does not fit", format_bytes(-c.margin_bytes) + " too much"};
  const double ratio = plan.sized() || plan.ranks_by_energy() ? plan.worth(c) / plan.worth(best)
                       : plan.ranks_by_cost()
                           ? plan.cost_of_million_tokens(c) / plan.cost_of_million_tokens(best)
                           : c.gpu_tokens_per_s / best.gpu_tokens_per_s;
  return {!c.keeps_up && c.excess <= 1 ? "does not keep up"
          : best.meets && plan.sized() && !plan.ranks_by_cost() && !plan.ranks_by_energy()
              ? format_integer(c.gpus()) + (c.intervals && c.intervals->extrapolated ? "*" : "")
          : best.meets
              ? fmt::format("{}{:+.1f} %{}", order_is_uncertain(plan, c) ? "~" : "",
                            100 * (ratio - 1), c.intervals && c.intervals->extrapolated ? "*" : "")
              : fmt::format("{:.1f} times", c.excess),
          c.meets
              ? fmt::format("TTFT {}, TPOT {}", format_seconds(c.ttft_s), format_seconds(c.tpot_s))
              : missed_text(plan, c)};
}

/// Where a candidate differs from the best, beside the option of the row.
std::string other_options(const ServingPlan& plan, const PlanAlternative& a) {
  const ServingCandidate &best = plan.candidates.front(), &c = plan.candidates[a.candidate];
  std::vector<std::string> parts;
  for (const ServingOption& option : serving_plan_options()) {
    if (a.option != option.name && option.value(plan, best) != option.value(plan, c))
      parts.push_back(fmt::format("{} {}", option.column, shown_text(plan, option, c)));
  }
  if (plan.sized() && (plan.ranks_by_cost() || plan.ranks_by_energy()))
    parts.push_back(fmt::format("GPUs {}", c.gpus()));
  else if (!plan.sized() && best.concurrency != c.concurrency)
    parts.push_back(fmt::format("clients {}", c.concurrency));
  return join(parts, ", ");
}

/// The value of the row's option; `others` of its values lack the same.
std::string value_text(const ServingPlan& plan, const ServingOption& option,
                       const PlanAlternative& a, int64_t others) {
  const std::string value = shown_text(plan, option, plan.candidates[a.candidate]);
  return others > 0 ? fmt::format("{}, {} others", value, others) : value;
}

}  // namespace

void add_reasons(std::string& out, const ServingPlan& plan, const TableStyle& style) {
  TextTable table;
  table.header = {"instead", "",
                  !plan.candidates.front().meets ? "of the limit"
                  : plan.ranks_by_energy()       ? "J/token"
                  : plan.ranks_by_cost()         ? "cost"
                  : plan.sized()                 ? "GPUs"
                                                 : "GPU tok/s",
                  "", "with"};
  table.right = {false, false, true, false, false};
  table.fit = {Fit::kWhole, Fit::kWhole, Fit::kWhole, Fit::kWrap, Fit::kWrap};
  table.min_widths = {0, 0, 0, 14, 14};
  const PlanAlternative* before = nullptr;
  for (const ServingOption& option : serving_plan_options()) {
    bool first = true;
    for (const PlanAlternative& a : plan.alternatives) {
      if (a.option != option.name) continue;
      const int lack = lack_of(plan, a);
      // The nearest of many values comes first and stands for all.
      if (!first && lack > 0 && lack_of(plan, *before) == lack) continue;
      const auto alike = std::count_if(
          plan.alternatives.begin(), plan.alternatives.end(),
          [&](const auto& o) { return o.option == a.option && lack_of(plan, o) == lack; });
      const auto [change, why] = loss_of(plan, plan.candidates[a.candidate]);
      table.rows.push_back({first ? option.column : "",
                            value_text(plan, option, a, lack > 0 ? alike - 1 : 0), change, why,
                            other_options(plan, a)});
      first = false;
      before = &a;
    }
  }
  if (table.rows.empty()) return;
  out += "\n" + title_lines("Why: the best candidates with another value of one option", style) +
         "\n" + format_text_table(table, style, 2);
}

}  // namespace tilecast
