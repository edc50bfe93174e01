// The intervals of listed candidates. The search has simulated them; what it leaves out are the
// errors of a single request, which are the same for all loads of a layout.

#include "plan/serving_intervals.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>

#include "plan/serving_ranking.h"
#include "scenario/extrapolated.h"
#include "scenario/generation/single_request.h"

namespace tilecast {
namespace {

/// The first candidate of each kind of GPU; the number of candidates where there is none.
std::vector<size_t> best_of_kinds(const ServingPlan& plan) {
  std::vector<size_t> best(plan.gpu_ids.size(), plan.candidates.size());
  for (size_t i = plan.candidates.size(); i-- > 0;) best[plan.candidates[i].hardware] = i;
  return best;
}

/// Simulated candidates that tables list, each once.
std::set<size_t> listed(const ServingPlan& plan, const std::vector<size_t>& best) {
  std::set<size_t> rows(plan.front.begin(), plan.front.end());
  for (size_t i = 0; i < std::min(ServingPlan::kListed, std::max<size_t>(plan.layouts, 1)); ++i)
    rows.insert(i);
  rows.insert(best.begin(), best.end());
  for (const PlanAlternative& a : plan.alternatives) rows.insert(a.candidate);
  std::erase_if(
      rows, [&](size_t i) { return i >= plan.candidates.size() || !plan.candidates[i].simulated; });
  return rows;
}

ServingIntervals intervals_of(const ServingCandidate& c, const GenerationForecast& alone,
                              const Forecaster& forecaster) {
  const LoadSpread spread = tpot_spread(forecaster);
  const Interval request = under_load(alone.request, c.mean_request_s, spread);
  const auto tokens = [&](double seconds) {
    return seconds > 0 && c.concurrency > 0 ? c.gpu_tokens_per_s * request.value / seconds
                                            : c.gpu_tokens_per_s;
  };
  return {.ttft = under_load(alone.ttft, c.ttft_s, ttft_spread(forecaster)),
          .tpot = under_load(alone.tpot, c.tpot_s, spread),
          .gpu_tokens_per_s = {c.gpu_tokens_per_s, tokens(request.high), tokens(request.low)},
          .extrapolated = is_extrapolated(alone.warnings)};
}

}  // namespace

void add_intervals(const Forecaster& forecaster, const ModelRef& model, const ServingQuery& query,
                   ServingPlan& plan) {
  const std::vector<size_t> best = best_of_kinds(plan);
  std::map<decltype(layout_of(plan.candidates.front())), GenerationForecast> alone;
  for (const size_t i : listed(plan, best)) {
    ServingCandidate& c = plan.candidates[i];
    const GpuRef& gpu = query.hardware[c.hardware].gpu;
    const Request request = request_of(plan, c);
    // The warnings of a server under this load belong to the whole forecast.
    const bool shows_warnings = i == best[c.hardware];
    auto known = alone.find(layout_of(c));
    if (known == alone.end() || shows_warnings) {
      GenerationForecast forecast = shows_warnings
                                        ? forecast_generation(forecaster, model, gpu, request)
                                        : forecast_alone(forecaster, model, gpu, request);
      known = alone.insert_or_assign(layout_of(c), std::move(forecast)).first;
    }
    c.intervals = intervals_of(c, known->second, forecaster);
    if (i == 0) plan.software = known->second.software;
    if (!shows_warnings) continue;
    plan.warnings[c.hardware] = known->second.warnings;
    if (const std::optional<PowerForecast>& power = known->second.power) {
      c.power_w = power->power_w.value;
      c.power_interval = power->power_w;
      c.energy_per_token_j = power->energy_per_token_j;
    }
  }
}

}  // namespace tilecast
