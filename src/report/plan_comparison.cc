// Plans of the same training on different GPUs.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include "base/text.h"
#include "report/kernel_text.h"
#include "report/plan_text.h"
#include "report/price_text.h"
#include "report/text_table.h"

namespace tilecast {
namespace {

constexpr double kNoValue = std::numeric_limits<double>::infinity();

double best_samples_per_s(const TrainingPlan& plan) {
  return plan.samples_per_s(*plan.candidates.front().latency_s);
}

double cost_of_billion(const TrainingPlan& plan) {
  constexpr double kSamples = 1e9;
  return plan.cost_of_step(plan.candidates.front()) * kSamples / plan.samples();
}

/// nullopt where power is not forecast.
std::optional<double> joules_of_sample(const TrainingPlan& plan) {
  const std::optional<double>& step_j = plan.candidates.front().energy_j;
  return plan.fitting > 0 && step_j ? std::optional(*step_j / plan.samples()) : std::nullopt;
}

/// Indices, the best first.
std::vector<size_t> order_of(const std::vector<TrainingPlan>& plans) {
  std::vector<size_t> order;
  for (size_t i = 0; i < plans.size(); ++i) order.push_back(i);
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    const TrainingPlan &x = plans[a], &y = plans[b];
    if ((x.fitting > 0) != (y.fitting > 0)) return x.fitting > 0;
    if (x.fitting == 0)
      return x.candidates.front().missing_bytes() < y.candidates.front().missing_bytes();
    if (x.objective == PlanObjective::kEnergy)
      return joules_of_sample(x).value_or(kNoValue) < joules_of_sample(y).value_or(kNoValue);
    if (x.has_prices()) return cost_of_billion(x) < cost_of_billion(y);
    return best_samples_per_s(x) > best_samples_per_s(y);
  });
  return order;
}

/// The quantity that ranks candidates: without prices time, else cost, for each token. Energy has
/// the error of time, and its own.
double rank_value(const TrainingPlan& plan, double step_s) {
  const TrainingCandidate& best = plan.candidates.front();
  const double share = step_s / *best.latency_s;
  if (plan.objective == PlanObjective::kEnergy) return share * best.energy_j.value_or(0);
  return plan.has_prices() ? share * plan.cost_of_step(best) : step_s;
}

/// Whether it is not certain which of the two is better.
bool overlaps(const TrainingPlan& plan, const TrainingPlan& first) {
  if (plan.fitting == 0 || first.fitting == 0) return false;
  const TrainingCandidate &a = plan.candidates.front(), &b = first.candidates.front();
  return rank_value(plan, a.ranked_s->low) <= rank_value(first, b.ranked_s->high) &&
         rank_value(first, b.ranked_s->low) <= rank_value(plan, a.ranked_s->high);
}

/// The rows of their price tables.
std::vector<GpuPrice> prices_of_plans(const std::vector<TrainingPlan>& plans,
                                      const std::vector<size_t>& order) {
  std::vector<GpuPrice> prices;
  for (const size_t i : order)
    if (plans[i].gpu_price) prices.push_back(*plans[i].gpu_price);
  return prices;
}

}  // namespace

// NOLINTNEXTLINE(readability-function-size): a table
std::string plans_table(const std::vector<TrainingPlan>& plans, const TableStyle& style) {
  const TrainingPlan& any = plans.front();
  std::string out =
      title_lines(fmt::format("{}: training on {} GPUs of each kind, batch {} × {} tokens{}",
                              any.model, format_integer(any.ranks), format_integer(any.batch),
                              format_integer(any.seq), clock_text(any.used.execution.clocks)),
                  style);
  TextTable table;
  table.header = {"GPU", "step", "80 %", any.counts_tokens ? "GPU tok/s" : "GPU img/s", "memory"};
  table.right = {false, true, true, true, true};
  const bool powered = std::any_of(plans.begin(), plans.end(), [](const TrainingPlan& plan) {
    return joules_of_sample(plan).has_value();
  });
  if (powered) {
    table.header.push_back(any.counts_tokens ? "J/tok" : "J/img");
    table.right.push_back(true);
  }
  if (any.has_prices()) {
    table.header.push_back(currency_sign(any.gpu_price) +
                           (any.counts_tokens ? "/G tok" : "/G img"));
    table.right.push_back(true);
  }
  table.header.push_back("best configuration");
  table.right.push_back(false);
  table.fit.assign(table.header.size(), Fit::kWhole);
  table.fit.back() = Fit::kWrap;
  const std::vector<size_t> order = order_of(plans);
  bool uncertain = false, extrapolated = false;
  for (auto row = order.begin(); row != order.end(); ++row) {
    const TrainingPlan& plan = plans[*row];
    const bool overlap =
        std::any_of(order.begin(), row, [&](size_t above) { return overlaps(plan, plans[above]); });
    uncertain |= overlap;
    extrapolated |= plan.candidates.front().extrapolated;
    const TrainingCandidate& c = plan.candidates.front();
    const bool fits = plan.fitting > 0;
    table.rows.push_back(
        {plan.gpu,
         fits ? (overlap ? "~" : "") + format_seconds(*c.latency_s) + (c.extrapolated ? "*" : " ")
              : "- ",
         fits ? percent_interval(*c.latency_s, c.ranked_s->low, c.ranked_s->high) : "-",
         fits ? format_integer(
                    std::llround(best_samples_per_s(plan) / static_cast<double>(plan.ranks)))
              : "-",
         format_bytes(c.memory.peak_bytes)});
    if (powered) {
      const std::optional<double> joules = joules_of_sample(plan);
      table.rows.back().push_back(joules ? fmt::format("{:.3g}", *joules) : "-");
    }
    if (any.has_prices())
      table.rows.back().push_back(fits ? fmt::format("{:.4g}", cost_of_billion(plan)) : "-");
    table.rows.back().push_back(fits ? options_text(c)
                                     : fmt::format("none fits: {} too much with {}",
                                                   format_bytes(c.missing_bytes()),
                                                   options_text(c)));
  }
  out += "\n" + format_text_table(table, style, 2);
  std::string notes = "80 %: interval of the step's time";
  if (uncertain)
    notes += fmt::format("; ~: it overlaps that of a row above: which of the two {} is not certain",
                         any.objective == PlanObjective::kEnergy ? "takes less energy"
                         : any.has_prices()                      ? "costs less"
                                                                 : "is faster");
  if (extrapolated) notes += "; *: part of the time is extrapolated: the warning says how much";
  return out + "\n" + wrapped(notes, style) + price_lines(prices_of_plans(plans, order), style);
}

std::vector<TrainingPlan> sorted_plans(const std::vector<TrainingPlan>& plans) {
  std::vector<TrainingPlan> sorted;
  for (const size_t i : order_of(plans)) sorted.push_back(plans[i]);
  return sorted;
}

}  // namespace tilecast
