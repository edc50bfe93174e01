#include "report/serving_plan_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/text.h"
#include "report/kernel_text.h"
#include "report/plan_text.h"
#include "request/access.h"

namespace tilecast {
namespace {

/// Tokens/s for each GPU, or with prices for each unit of money: what ranks the candidates.
double worth(const ServingPlan& plan, const ServingCandidate& c, double gpu_tokens_per_s) {
  return plan.ranks_by_cost() ? gpu_tokens_per_s / plan.prices[c.hardware].price_per_gpu_hour
                              : gpu_tokens_per_s;
}

/// The 80 % interval of a token's energy: power over throughput, whose errors are independent.
Interval energy_interval(const ServingCandidate& c) {
  const Interval &power = c.power_interval, &tokens = c.intervals->gpu_tokens_per_s;
  const double energy = *c.energy_per_token_j;
  const auto factor = [](double of_power, double of_tokens) {
    return std::exp(std::hypot(std::log(of_power), std::log(of_tokens)));
  };
  return {energy, energy / factor(power.value / power.low, tokens.high / tokens.value),
          energy * factor(power.high / power.value, tokens.value / tokens.low)};
}

/// Whether it is open which of two kinds of GPU takes less energy.
bool energies_overlap(const ServingCandidate& a, const ServingCandidate& b) {
  if (!a.intervals || !b.intervals || !a.energy_per_token_j || !b.energy_per_token_j) return false;
  const Interval of_a = energy_interval(a), of_b = energy_interval(b);
  return of_a.low <= of_b.high && of_b.low <= of_a.high;
}

}  // namespace

std::string dtype_text(const ServingCandidate& c) {
  std::string dtype = c.dtype.empty() ? "stored" : c.dtype;
  return c.kv_dtype.empty() ? dtype : dtype + ", cache " + c.kv_dtype;
}

std::string short_gpu(const ServingPlan& plan, const ServingCandidate& c) {
  std::string name = without_vendor(plan.gpu_ids[c.hardware]);
  if (plan.gpu_ids.size() == 1) return name;
  for (size_t end = name.find('-'); end != std::string::npos; end = name.find('-', end + 1)) {
    std::string part = name.substr(0, end);
    const auto alike = [&](const std::string& id) {
      return (without_vendor(id) + "-").starts_with(part + "-");
    };
    if (std::count_if(plan.gpu_ids.begin(), plan.gpu_ids.end(), alike) == 1) return part;
  }
  return name;
}

std::string shown_text(const ServingPlan& plan, const ServingOption& option,
                       const ServingCandidate& c) {
  return option.name == std::string_view("gpu") ? short_gpu(plan, c) : option.shown(plan, c);
}

std::string missed_text(const ServingPlan& plan, const ServingCandidate& c) {
  std::vector<std::string> parts;
  const auto add = [&](const char* name, double seconds, const std::optional<double>& limit) {
    if (limit && seconds > *limit)
      parts.push_back(fmt::format("{} {} instead of {}", name, format_seconds(seconds),
                                  format_seconds(*limit)));
  };
  add("TTFT", c.ttft_s, plan.ttft_s);
  add("TPOT", c.tpot_s, plan.tpot_s);
  if (!c.keeps_up && parts.empty()) parts.emplace_back("it does not keep up with the load");
  return join(parts, ", ");
}

bool order_is_uncertain(const ServingPlan& plan, const ServingCandidate& c) {
  const ServingCandidate& best = plan.candidates.front();
  // Of servers for a given load, numbers of GPUs are compared, which have no intervals.
  if (plan.sized() && !plan.ranks_by_energy()) return false;
  if (c.hardware == best.hardware) return c.ties && &c != &best;
  if (plan.ranks_by_energy()) return energies_overlap(c, best);
  if (!c.intervals || !best.intervals) return false;
  return worth(plan, c, c.intervals->gpu_tokens_per_s.high) >=
             worth(plan, best, best.intervals->gpu_tokens_per_s.low) &&
         worth(plan, best, best.intervals->gpu_tokens_per_s.high) >=
             worth(plan, c, c.intervals->gpu_tokens_per_s.low);
}

std::string load_text(const ServingPlan& plan) {
  if (plan.clients > 0) return counted(plan.clients, "client");
  if (plan.sized()) return fmt::format("{} requests/s", plan.used.load.rate);
  return "on " + counted(plan.gpus, "GPU");
}

std::string limits_text(const ServingPlan& plan) {
  std::string text;
  if (plan.ttft_s) text += fmt::format("TTFT {}", format_seconds(*plan.ttft_s));
  if (plan.tpot_s)
    text += fmt::format("{}TPOT {}", text.empty() ? "" : ", ", format_seconds(*plan.tpot_s));
  if (text.empty()) return "no limits";
  return fmt::format("limits: {} ({} of the steady part)", text, choice_name(plan.percentile));
}

std::string counts_text(const ServingPlan& plan) {
  std::vector<std::string> parts;
  const auto add = [&](size_t count, const char* what) {
    if (count > 0) parts.push_back(format_integer(static_cast<int64_t>(count)) + what);
  };
  const size_t all = plan.candidates.size(), missing = plan.simulated - plan.meeting;
  const size_t left_out = plan.fitting - plan.simulated - plan.pruned;
  if (plan.limited()) {
    add(plan.meeting, plan.meeting == 1 ? " meets the limits" : " meet the limits");
    add(missing + plan.pruned, missing + plan.pruned == 1 ? " misses them" : " miss them");
    if (plan.pruned > 0)
      parts.back() += fmt::format(" ({} pruned: simulated until that was certain)",
                                  format_integer(static_cast<int64_t>(plan.pruned)));
    add(left_out, left_out == 1
                      ? " has more load than one that misses them or beyond which throughput no "
                        "longer grows"
                      : " have more load than one that misses them or beyond which throughput no "
                        "longer grows");
  } else {
    add(plan.simulated, " simulated");
    add(left_out, left_out == 1
                      ? " has more load than one beyond which throughput no longer grows"
                      : " have more load than one beyond which throughput no longer grows");
  }
  add(all - plan.fitting, all - plan.fitting == 1 ? " does not fit" : " do not fit");
  return fmt::format("{} {}{}: {}.", format_integer(static_cast<int64_t>(all)),
                     plan.sized() ? "layout" : "candidate", all == 1 ? "" : "s", join(parts, ", "));
}

}  // namespace tilecast
