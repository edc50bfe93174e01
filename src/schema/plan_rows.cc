// What the records of plans show that follows from the whole plan.

#include <fmt/format.h>

#include <algorithm>

#include "request/access.h"
#include "tilecast/search.h"

namespace tilecast {

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

std::string options_text(const ServingPlan& plan, const ServingCandidate& c) {
  std::string text = "--gpu " + plan.gpu_ids[c.hardware] + fmt::format(" --tp {}", c.tp);
  if (c.pp > 1) text += fmt::format(" --pp {}", c.pp);
  if (c.dp > 1) text += fmt::format(" --dp {}", c.dp);
  if (c.ep > 1) text += fmt::format(" --ep {}", c.ep);
  if (c.all2all != All2All::kAllGather) text += " --all2all-backend " + choice_name(c.all2all);
  if (c.prefill_workers > 0 || plan.sized()) text += fmt::format(" --replicas {}", c.replicas);
  if (c.prefill_workers > 0)
    text += fmt::format(
        " --prefill-workers {} --prefill-tp {} --prefill-pp {} --prefill-dp {} --prefill-ep {}",
        c.prefill_workers, c.tp, c.pp, c.dp, c.ep);
  if (!c.dtype.empty()) text += " --dtype " + c.dtype;
  if (!c.kv_dtype.empty()) text += " --kv-dtype " + c.kv_dtype;
  if (c.max_model_len) text += fmt::format(" --max-model-len {}", *c.max_model_len);
  text += " --schedule continuous";
  text += c.concurrency > 0 ? fmt::format(" --concurrency {}", c.concurrency)
                            : fmt::format(" --rate {}", plan.used.load.rate);
  if (c.requests > 0) text += fmt::format(" --requests {}", c.requests);
  return text;
}

std::vector<ImpossibleDegrees> impossible_degrees(const std::map<std::string, int64_t>& counts) {
  std::vector<ImpossibleDegrees> rows;
  for (const auto& [reason, count] : counts) rows.push_back({reason, count});
  return rows;
}

std::vector<TrainingCandidateRow> TrainingPlan::rows() const {
  std::vector<TrainingCandidateRow> rows;
  for (size_t i = 0; i < candidates.size(); ++i) {
    TrainingCandidateRow row{candidates[i]};
    if (i < ranked) row.rank = static_cast<int64_t>(i) + 1;
    if (const auto seconds = candidates[i].latency_s) {
      (counts_tokens ? row.tokens_per_s : row.images_per_s) = samples_per_s(*seconds);
      if (price_per_gpu_hour || (has_prices() && row.energy_j))
        row.cost_of_step = cost_of_step(candidates[i]);
      if (counts_tokens && row.energy_j) row.energy_per_token_j = *row.energy_j / samples();
    }
    rows.push_back(std::move(row));
  }
  return rows;
}

std::optional<TrainingWinner> TrainingPlan::winner() const {
  if (fitting == 0) return std::nullopt;
  const TrainingCandidate& first = candidates.front();
  return TrainingWinner{.options = options_text(first),
                        .latency_s = *first.ranked_s,
                        .extrapolated = first.extrapolated,
                        .mfu_ratio = winner_mfu_ratio,
                        .utilization_ratio = winner_utilization_ratio};
}

std::vector<ServingCandidateRow> ServingPlan::rows() const {
  std::vector<ServingCandidateRow> rows;
  for (size_t i = 0; i < candidates.size(); ++i) {
    const ServingCandidate& c = candidates[i];
    ServingCandidateRow row{c};
    row.gpu = gpu_ids[c.hardware];
    row.pareto = std::find(front.begin(), front.end(), i) != front.end();
    if (c.simulated && !prices.empty()) {
      row.price_per_hour = price_per_hour(c);
      row.cost_of_million_tokens = cost_of_million_tokens(c);
    }
    if (c.simulated && c.intervals && limited())
      row.limits_certain = limits_are_certain(*c.intervals);
    rows.push_back(std::move(row));
  }
  return rows;
}

std::vector<ServingHardwareRow> ServingPlan::hardware() const {
  std::vector<ServingHardwareRow> rows;
  for (size_t i = 0; i < gpu_ids.size(); ++i) {
    rows.push_back({.gpu = gpu_ids[i], .device_bytes = device_bytes[i]});
    if (prices.empty()) continue;
    rows.back().price_per_gpu_hour = prices[i].price_per_gpu_hour;
    if (!prices[i].gpu.empty()) rows.back().gpu_price = prices[i];
  }
  return rows;
}

std::optional<std::string> ServingPlan::winner() const {
  if (meeting == 0) return std::nullopt;
  return options_text(*this, candidates.front());
}

std::vector<std::string> plan_warning_texts(const ServingPlan& plan) {
  std::vector<std::string> texts;
  for (size_t h = 0; h < plan.warnings.size(); ++h) {
    for (const std::string& text : warning_texts(plan.warnings[h]))
      texts.push_back(plan.gpu_ids.size() > 1 ? plan.gpu_ids[h] + ": " + text : text);
  }
  return texts;
}

}  // namespace tilecast
