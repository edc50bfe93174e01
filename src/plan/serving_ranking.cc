#include "plan/serving_ranking.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>
#include <utility>

#include "schema/plan_options.h"

namespace tilecast {
namespace {

void sort(ServingPlan& plan) {
  const auto group = [](const ServingCandidate& c) {
    return c.meets ? 0 : c.simulated ? 1 : c.pruned ? 2 : c.fits ? 3 : 4;
  };
  std::stable_sort(plan.candidates.begin(), plan.candidates.end(),
                   [&](const ServingCandidate& a, const ServingCandidate& b) {
                     if (group(a) != group(b)) return group(a) < group(b);
                     if (group(a) == 0 && plan.sized())
                       return std::pair(plan.worth(a), a.user_tokens_per_s) >
                              std::pair(plan.worth(b), b.user_tokens_per_s);
                     if (group(a) == 0) return plan.worth(a) > plan.worth(b);
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

/// How many techniques a layout uses. Data-parallel attention has two: copies of attention, and
/// experts that these share.
int techniques(const ServingCandidate& c) {
  return (c.tp > 1) + (c.pp > 1) + 2 * (c.dp > 1) + (c.ep > 1) + (c.prefill_workers > 0) +
         (c.all2all != All2All::kAllGather);
}

/// The best load of each layout comes before other loads, and the simplest layout that ties with
/// the best, on the same GPUs, before all.
void put_layouts_first(ServingPlan& plan) {
  if (plan.meeting == 0) return;
  const auto begin = plan.candidates.begin(),
             end = begin + static_cast<std::ptrdiff_t>(plan.meeting);
  std::set<decltype(layout_of(*begin))> known;
  const auto last = std::stable_partition(
      begin, end, [&](const ServingCandidate& c) { return known.insert(layout_of(c)).second; });
  plan.layouts = static_cast<size_t>(last - begin);
  // Numbers of GPUs are compared as they are. By energy, worth is minus the energy: the tie lies
  // below it.
  const bool as_it_is = plan.sized() && !plan.ranks_by_energy();
  const double most = plan.worth(*begin),
               least = as_it_is ? most : most - ServingPlan::kTieRatio * std::abs(most);
  auto first = begin;
  for (auto c = begin; c != last; ++c) {
    c->ties = c->hardware == begin->hardware && plan.worth(*c) >= least;
    if (c->ties && techniques(*c) < techniques(*first)) first = c;
  }
  if (first == begin) return;
  std::rotate(begin, first, first + 1);
  if (!plan.sized()) plan.most = 1;
}

/// Where prices decide, the first need not have the fewest GPUs.
void find_fewest(ServingPlan& plan) {
  if (!plan.sized() || plan.meeting == 0) return;
  const auto begin = plan.candidates.begin();
  const auto fewest = std::min_element(
      begin, begin + static_cast<std::ptrdiff_t>(plan.meeting),
      [](const ServingCandidate& a, const ServingCandidate& b) { return a.gpus() < b.gpus(); });
  if (fewest->gpus() < begin->gpus()) plan.fewest = static_cast<size_t>(fewest - begin);
}

/// From the fastest for a user downwards, those that write more for each GPU than all before; of a
/// given load, those that take less of what decides.
void find_front(ServingPlan& plan) {
  std::vector<size_t> order;
  for (size_t i = 0; i < plan.candidates.size(); ++i) {
    const ServingCandidate& c = plan.candidates[i];
    if (plan.meeting > 0 ? c.meets : c.simulated) order.push_back(i);
  }
  const auto& all = plan.candidates;
  const auto value = [&](size_t i) {
    return plan.sized() ? plan.worth(all[i]) : all[i].gpu_tokens_per_s;
  };
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return std::pair(all[a].user_tokens_per_s, value(a)) >
           std::pair(all[b].user_tokens_per_s, value(b));
  });
  double most = plan.sized() ? -std::numeric_limits<double>::infinity() : 0;
  for (const size_t i : order) {
    if (value(i) <= most) continue;
    most = value(i);
    plan.front.push_back(i);
  }
  std::reverse(plan.front.begin(), plan.front.end());
}

/// The candidates are sorted, so the first with another value is the best. Where the option is not
/// the GPU, it is that of the winner: else the reason would be the other GPU.
void find_alternatives(ServingPlan& plan) {
  const std::vector<ServingCandidate>& all = plan.candidates;
  for (const ServingOption& option : serving_plan_options()) {
    // Each number of servers would be a value: some prefill workers, or none.
    const bool counts = plan.sized() && option.name == std::string_view("prefill-workers");
    const auto kind_of = [&](const std::string& value) {
      return counts && value != "0" ? std::string("some") : value;
    };
    std::map<std::string, bool> known = {{kind_of(option.value(plan, all.front())), true}};
    for (size_t i = 1; i < all.size(); ++i) {
      const std::string value = option.value(plan, all[i]);
      if (all[i].fits && !all[i].simulated) continue;
      if (option.name != std::string_view("gpu") && all[i].hardware != all.front().hardware)
        continue;
      if (known.emplace(kind_of(value), true).second)
        plan.alternatives.push_back({option.name, value, i});
    }
  }
}

}  // namespace

void rank_servings(ServingPlan& plan) {
  sort(plan);
  put_layouts_first(plan);
  find_fewest(plan);
  find_front(plan);
  find_alternatives(plan);
}

}  // namespace tilecast
