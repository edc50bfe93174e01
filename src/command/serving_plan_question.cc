// Plans of serving.

#include <fmt/format.h>

#include <algorithm>
#include <ctime>

#include "command/plan_question.h"
#include "tilecast/error.h"
#include "tilecast/view.h"

namespace tilecast {
namespace {

constexpr const char* kServingOptions[] = {"prompt",
                                           "output",
                                           "software",
                                           "software-version",
                                           "max-num-seqs",
                                           "max-num-batched-tokens",
                                           "gpu-memory-utilization",
                                           "max-model-len",
                                           "prefix-hit-rate",
                                           "session-turns",
                                           "session-turn-delay-s",
                                           "prefix-len",
                                           "num-prefixes",
                                           "enable-prefix-caching",
                                           "kv-offloading-size",
                                           "router",
                                           "lora-adapters",
                                           "lora-skew",
                                           "max-loras",
                                           "max-lora-rank",
                                           "server-overhead-s",
                                           "request-turn-us",
                                           "rate",
                                           "ttft-s",
                                           "tpot-s",
                                           "cuda-graphs",
                                           "skew",
                                           "step-overhead-us",
                                           "sequence-overhead-us",
                                           "lora-rank",
                                           "lora-targets",
                                           "host",
                                           "clocks",
                                           "power-cap-w"};

/// The last of these, which plans of training have too.
constexpr size_t kSharedOptions = 5;

std::vector<ServingHardware> hardware_of(const PlanQuestion& asked) {
  std::vector<ServingHardware> hardware;
  std::vector<GpuRef> gpus;
  if (asked.gpus.empty()) hardware.push_back({asked.gpu.load_or_of(asked.cluster), asked.cluster});
  for (const GpuSource& source : asked.gpus) hardware.push_back({source.load(), ""});
  for (const ServingHardware& h : hardware) gpus.push_back(h.gpu);
  const std::vector<GpuPrice> prices = asked.prices_of(gpus);
  for (size_t i = 0; i < prices.size(); ++i) hardware[i].price = prices[i];
  return hardware;
}

/// Either the load of all replicas is given, or the load of each replica is searched.
void refuse_two_loads(const PlanQuestion& asked) {
  const bool rate = asked.has_word("rate"), clients = asked.clients > 0;
  const bool searched = !asked.serving.concurrency.empty();
  if (rate && clients) throw OptionError("`rate` cannot be combined with `clients`");
  if (searched && (rate || clients))
    throw OptionError(
        fmt::format("`{}` cannot be combined with `concurrency`, the clients of each replica; "
                    "`clients` are those of all replicas together",
                    rate ? "rate" : "clients"));
}

ServingQuery serving_query_of(const PlanQuestion& asked) {
  refuse_two_loads(asked);
  std::vector<GivenOption> load = {{"schedule", "continuous"}};
  // The clients of each candidate replace these.
  if (!asked.has_word("rate")) load.push_back({"concurrency", "1"});
  ServingQuery query{.request = asked.request(kServingOptions, std::move(load)),
                     .clients = asked.clients,
                     .hardware = {},
                     .gpus = asked.num_gpus,
                     .nodes = asked.nodes,
                     .percentile = asked.percentile,
                     .space = asked.serving,
                     .objective = asked.objective,
                     .has_prices = !asked.prices.empty(),
                     .full_search = asked.full_search};
  query.space.tp = asked.training.tp;
  query.space.pp = asked.training.pp;
  query.space.ep = asked.training.ep;
  query.space.dtypes = asked.training.dtypes;
  query.ttft_s = query.request.load.ttft_s;
  query.tpot_s = query.request.load.tpot_s;
  query.hardware = hardware_of(asked);
  return query;
}

std::string serving_shortfall(const ServingPlan& plan, const ServingQuery& query) {
  if (plan.meeting > 0) return "";
  if (plan.fitting > 0 && plan.sized())
    return fmt::format(
        "no layout meets the limits under that load with {} or fewer: the first of "
        "the table comes nearest",
        plan.most_gpus > 0 ? fmt::format("{} GPUs", plan.most_gpus)
                           : fmt::format("{} servers", ServingPlan::kMostServers));
  if (plan.fitting > 0) return "no layout meets the limits: the first of the table comes nearest";
  // Layouts that fit may be impossible for another reason, as prompts longer than a step.
  const auto most =
      std::max_element(plan.impossible.begin(), plan.impossible.end(),
                       [](const auto& a, const auto& b) { return a.second < b.second; });
  if (most != plan.impossible.end())
    return fmt::format("no layout that fits is possible: {}", most->first);
  if (plan.utilization_that_fits)
    return fmt::format(
        "no layout fits into memory; the nearest fits with `gpu-memory-utilization` {:.3g}",
        *plan.utilization_that_fits);
  // Without a list, all dtypes of the GPU are searched.
  return std::string("no layout fits into memory; use more GPUs") +
         (query.space.dtypes.empty() ? "" : ", or another `dtype`");
}

}  // namespace

std::span<const char* const> serving_request_options() {
  return std::span(kServingOptions).first(std::size(kServingOptions) - kSharedOptions);
}

Reply answer_serving_plan(PlanQuestion&& asked, const Asking& asking) {
  ServingQuery query = serving_query_of(asked);
  query.show_progress = asking.show_progress;
  const ModelRef model = asked.model.load();
  const std::shared_ptr<const Forecaster> forecaster = asked.forecaster.load();
  const std::clock_t start = std::clock();
  ServingPlan plan = plan_serving(*forecaster, model, query);
  const double seconds = static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
  const auto candidates = static_cast<double>(plan.candidates.size());
  Reply reply{
      .warnings = plan_warning_texts(plan),
      .shortfall = serving_shortfall(plan, query),
      .speed = fmt::format(
          "{} candidates in {:.2f} s of all cores, {:.0f} a second; {} simulated, {} pruned",
          candidates, seconds, candidates / seconds, plan.simulated, plan.pruned)};
  reply.answer = std::move(plan);
  return reply;
}

}  // namespace tilecast
