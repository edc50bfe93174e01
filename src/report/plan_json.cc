// A plan of training as JSON and CSV.

#include <fmt/format.h>

#include <algorithm>

#include "base/json.h"
#include "report/options_json.h"
#include "report/plan_text.h"
#include "request/access.h"

namespace tilecast {

std::string percent_interval(double value, double low, double high) {
  return fmt::format("{:.0f} +{:.0f} %", std::min(100 * (low / value - 1), -0.0),
                     std::max(100 * (high / value - 1), 0.0));
}

std::string options_text(const TrainingCandidate& c) {
  std::string text = fmt::format("--dp {} --tp {} --pp {}", c.dp, c.tp, c.pp);
  if (c.cp > 1) text += fmt::format(" --cp {}", c.cp);
  if (c.ep > 1) text += fmt::format(" --ep {}", c.ep);
  text += fmt::format(" --micro-batch-size {} --dtype {}", c.micro_batch_size, c.dtype);
  if (c.sequence_parallel) text += " --sequence-parallel on";
  if (c.zero != Zero::kNone) text += " --zero " + choice_name(c.zero);
  if (c.checkpointing != Checkpointing::kNone)
    text += " --checkpointing " + choice_name(c.checkpointing);
  if (c.pp > 1) text += " --pipeline-schedule " + choice_name(c.schedule);
  if (c.layers_per_virtual_stage)
    text += fmt::format(" --num-layers-per-virtual-pipeline-stage {}", *c.layers_per_virtual_stage);
  return text;
}

namespace {

std::string on_off(bool value) { return value ? "on" : "off"; }

Json candidate_json(const TrainingPlan& plan, const TrainingCandidate& c, size_t rank) {
  Json json = {{"rank", nullptr},
               {"fits", c.fits()},
               {"dp", c.dp},
               {"tp", c.tp},
               {"pp", c.pp},
               {"cp", c.cp},
               {"ep", c.ep},
               {"micro_batch_size", c.micro_batch_size},
               {"microbatches", c.microbatches},
               {"pipeline_schedule", choice_name(c.schedule)},
               {"virtual_stages", c.virtual_stages},
               {"num_layers_per_virtual_pipeline_stage", nullptr},
               {"zero", choice_name(c.zero)},
               {"checkpointing", choice_name(c.checkpointing)},
               {"sequence_parallel", c.sequence_parallel},
               {"dtype", c.dtype},
               {"latency_s", nullptr},
               {"bound_s", c.bound_s},
               {"peak_bytes", c.peak_bytes},
               {"margin_bytes", c.margin_bytes},
               {"weights_bytes", c.weights_bytes},
               {"gradients_bytes", c.gradients_bytes},
               {"optimizer_bytes", c.optimizer_bytes},
               {"activations_bytes", c.activations_bytes}};
  if (c.layers_per_virtual_stage)
    json["num_layers_per_virtual_pipeline_stage"] = *c.layers_per_virtual_stage;
  if (rank < plan.ranked) json["rank"] = rank + 1;
  if (c.latency_s) {
    json["latency_s"] = *c.latency_s;
    json["compute_s"] = c.compute_s;
    json["exposed_communication_s"] = c.exposed_communication_s;
    json["bubble_s"] = c.bubble_s;
    if (c.latency_low_s) {
      json["latency_low_s"] = *c.latency_low_s;
      json["latency_high_s"] = *c.latency_high_s;
      json["extrapolated"] = c.extrapolated;
    }
    json["tokens_per_s"] = plan.tokens_per_s(*c.latency_s);
    if (plan.price_per_gpu_hour) json["cost_of_step"] = plan.cost_of_step(*c.latency_s);
  }
  return json;
}

}  // namespace

std::string plan_json(const TrainingPlan& plan) {
  Json candidates = Json::array(), alternatives = Json::array(), impossible = Json::array();
  for (size_t i = 0; i < plan.candidates.size(); ++i)
    candidates.push_back(candidate_json(plan, plan.candidates[i], i));
  for (const PlanAlternative& a : plan.alternatives)
    alternatives.push_back({{"option", a.option}, {"value", a.value}, {"candidate", a.candidate}});
  for (const auto& [reason, count] : plan.impossible)
    impossible.push_back({{"reason", reason}, {"count", count}});
  Json json = {{"schema_version", 1},
               {"kind", "training"},
               {"model", plan.model},
               {"gpu", plan.gpu},
               {"cluster", plan.cluster},
               {"nodes", plan.nodes},
               {"ranks", plan.ranks},
               {"batch", plan.batch},
               {"seq", plan.seq},
               {"parameters", plan.parameters},
               {"device_bytes", plan.device_bytes},
               {"objective", choice_name(plan.objective)},
               {"price_per_gpu_hour", nullptr},
               {"winner", nullptr},
               {"warnings", warning_texts(plan.warnings)},
               {"fitting", plan.fitting},
               {"simulated", plan.simulated},
               {"ranked", plan.ranked},
               {"candidates", candidates},
               {"alternatives", alternatives},
               {"impossible", impossible},
               {"options", options_json(plan.used)}};
  if (plan.price_per_gpu_hour) json["price_per_gpu_hour"] = *plan.price_per_gpu_hour;
  if (plan.fitting > 0)
    json["winner"] = {{"options", options_text(plan.candidates.front())},
                      {"latency_low_s", *plan.candidates.front().latency_low_s},
                      {"latency_high_s", *plan.candidates.front().latency_high_s},
                      {"extrapolated", plan.candidates.front().extrapolated},
                      {"utilization_ratio", plan.winner_utilization_ratio}};
  return json.dump(1) + "\n";
}

std::string plan_csv(const TrainingPlan& plan) {
  std::string out =
      "rank,fits,dp,tp,pp,cp,ep,micro_batch_size,pipeline_schedule,virtual_stages,zero,"
      "checkpointing,sequence_parallel,dtype,latency_s,bound_s,peak_bytes,margin_bytes,latency_low_"
      "s,"
      "latency_high_s,extrapolated\n";
  for (size_t i = 0; i < plan.candidates.size(); ++i) {
    const TrainingCandidate& c = plan.candidates[i];
    out += fmt::format("{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{}\n",
                       i < plan.ranked ? std::to_string(i + 1) : "", c.fits(), c.dp, c.tp, c.pp,
                       c.cp, c.ep, c.micro_batch_size, choice_name(c.schedule), c.virtual_stages,
                       choice_name(c.zero), choice_name(c.checkpointing),
                       on_off(c.sequence_parallel), c.dtype,
                       c.latency_s ? fmt::format("{}", *c.latency_s) : "", c.bound_s, c.peak_bytes,
                       c.margin_bytes, c.latency_low_s ? fmt::format("{}", *c.latency_low_s) : "",
                       c.latency_high_s ? fmt::format("{}", *c.latency_high_s) : "",
                       c.latency_low_s ? fmt::format("{}", c.extrapolated) : "");
  }
  return out;
}

}  // namespace tilecast
