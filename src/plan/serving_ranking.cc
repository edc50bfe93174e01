#include "plan/serving_ranking.h"

#include <algorithm>

#include "request/access.h"

namespace tilecast {
namespace {

double worth(const ServingPlan& plan, const ServingCandidate& c) {
  return plan.ranks_by_cost() ? c.gpu_tokens_per_s / plan.prices[c.hardware] : c.gpu_tokens_per_s;
}

void sort(ServingPlan& plan) {
  const auto group = [](const ServingCandidate& c) {
    return c.meets ? 0 : c.simulated ? 1 : c.pruned ? 2 : c.fits ? 3 : 4;
  };
  std::stable_sort(plan.candidates.begin(), plan.candidates.end(),
                   [&](const ServingCandidate& a, const ServingCandidate& b) {
                     if (group(a) != group(b)) return group(a) < group(b);
                     if (group(a) == 0) return worth(plan, a) > worth(plan, b);
                     if (group(a) == 1) return a.excess < b.excess;
                     return group(a) == 4 && a.margin_bytes > b.margin_bytes;
                   });
  const auto count = [&](auto wanted) {
    return static_cast<size_t>(
        std::count_if(plan.candidates.begin(), plan.candidates.end(), wanted));
  };
  plan.meeting = count([](const ServingCandidate& c) { return c.meets; });
  plan.simulated = count([](const ServingCandidate& c) { return c.simulated; });
  plan.pruned = count([](const ServingCandidate& c) { return c.pruned; });
  plan.fitting = count([](const ServingCandidate& c) { return c.fits; });
}

/// From the fastest for a user downwards, those that write more for each GPU than all before.
void find_front(ServingPlan& plan) {
  std::vector<size_t> order;
  for (size_t i = 0; i < plan.candidates.size(); ++i) {
    const ServingCandidate& c = plan.candidates[i];
    if (plan.meeting > 0 ? c.meets : c.simulated) order.push_back(i);
  }
  const auto& all = plan.candidates;
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return std::pair(all[a].user_tokens_per_s, all[a].gpu_tokens_per_s) >
           std::pair(all[b].user_tokens_per_s, all[b].gpu_tokens_per_s);
  });
  double most = 0;
  for (const size_t i : order) {
    if (all[i].gpu_tokens_per_s <= most) continue;
    most = all[i].gpu_tokens_per_s;
    plan.front.push_back(i);
  }
  std::reverse(plan.front.begin(), plan.front.end());
}

/// The candidates are sorted, so the first with another value is the best. Where the option is not
/// the GPU, it is that of the winner: else the reason would be the other GPU.
void find_alternatives(ServingPlan& plan) {
  struct Shown {
    const char* name;
    std::string (*value)(const ServingPlan& plan, const ServingCandidate& c);
  };
  constexpr Shown kShown[] = {
      {"gpu",
       [](const ServingPlan& p, const ServingCandidate& c) { return p.gpu_ids[c.hardware]; }},
      {"tp", [](const ServingPlan&, const ServingCandidate& c) { return std::to_string(c.tp); }},
      {"pp", [](const ServingPlan&, const ServingCandidate& c) { return std::to_string(c.pp); }},
      {"dp", [](const ServingPlan&, const ServingCandidate& c) { return std::to_string(c.dp); }},
      {"ep", [](const ServingPlan&, const ServingCandidate& c) { return std::to_string(c.ep); }},
      {"prefill-workers",
       [](const ServingPlan&, const ServingCandidate& c) {
         return std::to_string(c.prefill_workers);
       }},
      {"all2all-backend",
       [](const ServingPlan&, const ServingCandidate& c) { return choice_name(c.all2all); }},
      {"dtype", [](const ServingPlan&, const ServingCandidate& c) { return c.dtype; }},
      {"kv-dtype", [](const ServingPlan&, const ServingCandidate& c) { return c.kv_dtype; }}};
  const std::vector<ServingCandidate>& all = plan.candidates;
  for (const Shown& option : kShown) {
    std::map<std::string, bool> known = {{option.value(plan, all.front()), true}};
    for (size_t i = 1; i < all.size(); ++i) {
      const std::string value = option.value(plan, all[i]);
      if (all[i].fits && !all[i].simulated) continue;
      if (&option != &kShown[0] && all[i].hardware != all.front().hardware) continue;
      if (known.emplace(value, true).second) plan.alternatives.push_back({option.name, value, i});
    }
  }
}

}  // namespace

void rank_servings(ServingPlan& plan) {
  sort(plan);
  find_front(plan);
  find_alternatives(plan);
}

}  // namespace tilecast
