// A plan of serving as JSON and CSV.

#include <fmt/format.h>

#include <algorithm>

#include "base/json.h"
#include "report/options_json.h"
#include "report/plan_text.h"
#include "request/access.h"

namespace tilecast {

using Candidate = ServingCandidate;

std::string options_text(const ServingPlan& plan, const Candidate& c) {
  std::string text = "--gpu " + plan.gpu_ids[c.hardware] + fmt::format(" --tp {}", c.tp);
  if (c.pp > 1) text += fmt::format(" --pp {}", c.pp);
  if (c.dp > 1) text += fmt::format(" --dp {}", c.dp);
  if (c.ep > 1) text += fmt::format(" --ep {}", c.ep);
  if (c.all2all != All2All::kAllGather) text += " --all2all-backend " + choice_name(c.all2all);
  if (c.prefill_workers > 0)
    text += fmt::format(
        " --replicas {} --prefill-workers {} --prefill-tp {} --prefill-pp {} "
        "--prefill-dp {} --prefill-ep {}",
        c.replicas, c.prefill_workers, c.tp, c.pp, c.dp, c.ep);
  if (!c.dtype.empty()) text += " --dtype " + c.dtype;
  if (!c.kv_dtype.empty()) text += " --kv-dtype " + c.kv_dtype;
  return text + fmt::format(" --schedule continuous --concurrency {}", c.concurrency);
}

namespace {

Json candidate_json(const ServingPlan& plan, size_t index) {
  const Candidate& c = plan.candidates[index];
  Json json = {
      {"gpu", plan.gpu_ids[c.hardware]},
      {"tp", c.tp},
      {"pp", c.pp},
      {"dp", c.dp},
      {"ep", c.ep},
      {"all2all_backend", choice_name(c.all2all)},
      {"prefill_workers", c.prefill_workers},
      {"replicas", c.replicas},
      {"dtype", c.dtype},
      {"kv_dtype", c.kv_dtype},
      {"concurrency", c.concurrency},
      {"fits", c.fits},
      {"peak_bytes", c.peak_bytes},
      {"margin_bytes", c.margin_bytes},
      {"simulated", c.simulated},
      {"pruned", c.pruned},
      {"meets_limits", c.meets},
      {"pareto", std::find(plan.front.begin(), plan.front.end(), index) != plan.front.end()}};
  if (!c.simulated) return json;
  json["ttft_s"] = c.ttft_s;
  json["tpot_s"] = c.tpot_s;
  json["mean_ttft_s"] = c.mean_ttft_s;
  json["mean_tpot_s"] = c.mean_tpot_s;
  json["tokens_per_s"] = c.tokens_per_s;
  json["requests_per_s"] = c.requests_per_s;
  json["user_tokens_per_s"] = c.user_tokens_per_s;
  json["gpu_tokens_per_s"] = c.gpu_tokens_per_s;
  if (!plan.prices.empty()) json["cost_of_million_tokens"] = plan.cost_of_million_tokens(c);
  if (!c.intervals) return json;
  json["ttft_low_s"] = c.intervals->ttft.low_s;
  json["ttft_high_s"] = c.intervals->ttft.high_s;
  json["tpot_low_s"] = c.intervals->tpot.low_s;
  json["tpot_high_s"] = c.intervals->tpot.high_s;
  json["gpu_tokens_low_per_s"] = c.intervals->gpu_tokens_low_per_s;
  json["gpu_tokens_high_per_s"] = c.intervals->gpu_tokens_high_per_s;
  json["extrapolated"] = c.intervals->extrapolated;
  if (plan.limited()) json["limits_certain"] = plan.limits_are_certain(*c.intervals);
  return json;
}

}  // namespace

std::vector<std::string> plan_warning_texts(const ServingPlan& plan) {
  std::vector<std::string> texts;
  for (size_t h = 0; h < plan.warnings.size(); ++h) {
    for (const std::string& text : warning_texts(plan.warnings[h]))
      texts.push_back(plan.gpu_ids.size() > 1 ? plan.gpu_ids[h] + ": " + text : text);
  }
  return texts;
}

std::string plan_json(const ServingPlan& plan) {
  Json candidates = Json::array(), alternatives = Json::array(), impossible = Json::array(),
       hardware = Json::array();
  for (size_t i = 0; i < plan.candidates.size(); ++i) candidates.push_back(candidate_json(plan, i));
  for (const ServingPlan::Alternative& a : plan.alternatives)
    alternatives.push_back({{"option", a.option}, {"value", a.value}, {"candidate", a.candidate}});
  for (const auto& [reason, count] : plan.impossible)
    impossible.push_back({{"reason", reason}, {"count", count}});
  for (size_t h = 0; h < plan.gpu_ids.size(); ++h) {
    hardware.push_back({{"gpu", plan.gpu_ids[h]},
                        {"device_bytes", plan.device_bytes[h]},
                        {"price_per_gpu_hour", nullptr}});
    if (!plan.prices.empty()) hardware.back()["price_per_gpu_hour"] = plan.prices[h];
  }
  Json json = {{"schema_version", 1},
               {"kind", "serving"},
               {"model", plan.model},
               {"hardware", hardware},
               {"gpus", plan.gpus},
               {"prompt", plan.prompt},
               {"output", plan.output},
               {"software", plan.software},
               {"ttft_s", nullptr},
               {"tpot_s", nullptr},
               {"percentile", choice_name(plan.percentile)},
               {"winner", nullptr},
               {"warnings", plan_warning_texts(plan)},
               {"meeting", plan.meeting},
               {"simulated", plan.simulated},
               {"pruned", plan.pruned},
               {"fitting", plan.fitting},
               {"candidates", candidates},
               {"front", plan.front},
               {"alternatives", alternatives},
               {"impossible", impossible},
               {"options", options_json(plan.used)}};
  if (plan.ttft_s) json["ttft_s"] = *plan.ttft_s;
  if (plan.tpot_s) json["tpot_s"] = *plan.tpot_s;
  if (plan.meeting > 0) json["winner"] = options_text(plan, plan.candidates.front());
  return json.dump(1) + "\n";
}

std::string plan_csv(const ServingPlan& plan) {
  std::string out =
      "gpu,tp,pp,dp,ep,all2all_backend,prefill_workers,replicas,dtype,kv_dtype,concurrency,fits,"
      "margin_bytes,simulated,pruned,meets_limits,pareto,ttft_s,tpot_s,tokens_per_s,user_tokens_"
      "per_s,gpu_tokens_per_s,cost_of_million_"
      "tokens,ttft_low_s,ttft_high_s,tpot_low_s,tpot_high_s,gpu_tokens_low_per_s,"
      "gpu_tokens_high_per_s,extrapolated,limits_certain\n";
  for (size_t i = 0; i < plan.candidates.size(); ++i) {
    const Candidate& c = plan.candidates[i];
    const bool pareto = std::find(plan.front.begin(), plan.front.end(), i) != plan.front.end();
    out += fmt::format("{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{}",
                       plan.gpu_ids[c.hardware], c.tp, c.pp, c.dp, c.ep, choice_name(c.all2all),
                       c.prefill_workers, c.replicas, c.dtype, c.kv_dtype, c.concurrency, c.fits,
                       c.margin_bytes, c.simulated, c.pruned, c.meets, pareto);
    if (c.simulated) {
      out +=
          fmt::format(",{},{},{},{},{},{}", c.ttft_s, c.tpot_s, c.tokens_per_s, c.user_tokens_per_s,
                      c.gpu_tokens_per_s,
                      plan.prices.empty() ? "" : fmt::format("{}", plan.cost_of_million_tokens(c)));
    } else {
      out += ",,,,,,";
    }
    if (c.intervals) {
      const ServingIntervals& of = *c.intervals;
      out += fmt::format(",{},{},{},{},{},{},{},{}\n", of.ttft.low_s, of.ttft.high_s, of.tpot.low_s,
                         of.tpot.high_s, of.gpu_tokens_low_per_s, of.gpu_tokens_high_per_s,
                         of.extrapolated,
                         plan.limited() ? fmt::format("{}", plan.limits_are_certain(of)) : "");
    } else {
      out += ",,,,,,,,\n";
    }
  }
  return out;
}

}  // namespace tilecast
