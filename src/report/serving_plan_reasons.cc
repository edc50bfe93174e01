// Why other values of the options of a plan for serving are worse.

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "report/kernel_text.h"
#include "report/plan_text.h"
#include "report/serving_plan_text.h"
#include "report/text_table.h"

namespace tilecast {

namespace {

/// Options beside `option` that differ from the best candidate's: "tp 4, clients 32".
std::string others_text(const ServingPlan& plan, const ServingCandidate& c,
                        const std::string& option) {
  const ServingCandidate& best = plan.candidates.front();
  std::string with;
  const auto add = [&](const char* name, const std::string& own, const std::string& other) {
    if (own != other && option != name)
      with += fmt::format("{}{} {}", with.empty() ? "" : ", ", name, other);
  };
  add("gpu", short_gpu(plan, best), short_gpu(plan, c));
  add("tp", std::to_string(best.tp), std::to_string(c.tp));
  add("pp", std::to_string(best.pp), std::to_string(c.pp));
  add("dp", std::to_string(best.dp), std::to_string(c.dp));
  add("ep", std::to_string(best.ep), std::to_string(c.ep));
  add("all2all-backend", all2all_text(best), all2all_text(c));
  add("prefill-workers", std::to_string(best.prefill_workers), std::to_string(c.prefill_workers));
  add("dtype", best.dtype, c.dtype);
  add("clients", std::to_string(best.concurrency), std::to_string(c.concurrency));
  return with;
}

}  // namespace

void add_reasons(std::string& out, const ServingPlan& plan, const TableStyle& style) {
  TextTable table;
  const ServingCandidate& best = plan.candidates.front();
  table.header = {"instead", "",
                  !best.meets            ? "of the limit"
                  : plan.ranks_by_cost() ? "cost"
                                         : "GPU tok/s",
                  "", "with"};
  table.right = {false, false, true, false, false};
  table.fit = {Fit::kWhole, Fit::kWhole, Fit::kWhole, Fit::kWrap, Fit::kWrap};
  table.min_widths = {0, 0, 0, 14, 14};
  // 0: as good as the best; 1: it misses limits that the best keeps; 2: it does not fit.
  const auto lack_of = [&](const PlanAlternative& a) {
    const ServingCandidate& c = plan.candidates[a.candidate];
    return !c.fits ? 2 : best.meets && !c.meets ? 1 : 0;
  };
  std::string before;
  for (size_t i = 0; i < plan.alternatives.size(); ++i) {
    const PlanAlternative& a = plan.alternatives[i];
    const ServingCandidate& c = plan.candidates[a.candidate];
    std::string change, why;
    const int lack = lack_of(a);
    const auto lacks_too = [&](const PlanAlternative& other) {
      return other.option == a.option && lack_of(other) == lack;
    };
    // The nearest of many values comes first and stands for all.
    if (lack > 0 && i > 0 && lacks_too(plan.alternatives[i - 1])) continue;
    const auto alike = std::count_if(plan.alternatives.begin(), plan.alternatives.end(), lacks_too);
    if (!c.fits) {
      change = "does not fit";
      why = format_bytes(-c.margin_bytes) + " too much";
    } else {
      const double ratio = plan.ranks_by_cost()
                               ? plan.cost_of_million_tokens(c) / plan.cost_of_million_tokens(best)
                               : c.gpu_tokens_per_s / best.gpu_tokens_per_s;
      change = best.meets ? fmt::format("{}{:+.1f} %{}", order_is_uncertain(plan, c) ? "~" : "",
                                        100 * (ratio - 1),
                                        c.intervals && c.intervals->extrapolated ? "*" : "")
                          : fmt::format("{:.1f} times", c.excess);
      why = c.meets ? fmt::format("TTFT {}, TPOT {}", format_seconds(c.ttft_s),
                                  format_seconds(c.tpot_s))
                    : missed_text(plan, c);
    }
    table.rows.push_back({a.option == before              ? ""
                          : a.option == "all2all-backend" ? "all2all"
                          : a.option == "prefill-workers" ? "prefill"
                                                          : a.option,
                          a.option == "gpu"               ? short_gpu(plan, c)
                          : a.option == "all2all-backend" ? all2all_text(c)
                          : a.value.empty()               ? "stored"
                          : lack > 0 && alike > 1 ? fmt::format("{}, {} others", a.value, alike - 1)
                                                  : a.value,
                          change, why, others_text(plan, c, a.option)});
    before = a.option;
  }
  if (table.rows.empty()) return;
  out += "\n" + title_lines("Why: the best candidates with another value of one option", style) +
         "\n" + format_text_table(table, style, 2);
}

}  // namespace tilecast
