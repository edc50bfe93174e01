#include "report/serving_plan_text.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "report/kernel_text.h"
#include "report/plan_text.h"

namespace tilecast {
namespace {

/// Tokens/s for each GPU, or with prices for each unit of money: what ranks the candidates.
double worth(const ServingPlan& plan, const ServingCandidate& c, double gpu_tokens_per_s) {
  return plan.ranks_by_cost() ? gpu_tokens_per_s / plan.prices[c.hardware] : gpu_tokens_per_s;
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
  return join(parts, ", ");
}

bool order_is_uncertain(const ServingPlan& plan, const ServingCandidate& c) {
  const ServingCandidate& best = plan.candidates.front();
  if (c.hardware == best.hardware) return c.ties && &c != &best;
  if (!c.intervals || !best.intervals) return false;
  return worth(plan, c, c.intervals->gpu_tokens_per_s.high) >=
             worth(plan, best, best.intervals->gpu_tokens_per_s.low) &&
         worth(plan, best, best.intervals->gpu_tokens_per_s.high) >=
             worth(plan, c, c.intervals->gpu_tokens_per_s.low);
}

}  // namespace tilecast
