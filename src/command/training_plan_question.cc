// Plans of training: on one kind of GPU, or on several to compare.

#include <fmt/format.h>

#include <algorithm>
#include <ctime>
#include <iterator>
#include <string_view>

#include "base/text.h"
#include "command/plan_question.h"
#include "tilecast/error.h"
#include "tilecast/view.h"

namespace tilecast {
namespace {

/// Of candidates with context parallelism alone.
constexpr const char* kExchange = "cp-comm-type";

constexpr const char* kTrainingOptions[] = {"cluster",
                                            "nodes",
                                            "batch",
                                            "seq",
                                            "attention",
                                            "fusion",
                                            "optimizer",
                                            "optimizer-impl",
                                            "optimizer-offload",
                                            "host-memory-gb-s",
                                            "loss",
                                            "cross-entropy",
                                            "packed-sequence-length",
                                            kExchange,
                                            "main-params-dtype",
                                            "overlap-grad-reduce",
                                            "bucket-cap-mb",
                                            "lora-rank",
                                            "lora-targets",
                                            "lora-dtype",
                                            "predictor",
                                            "clocks",
                                            "host",
                                            "power-cap-w",
                                            "price-per-kwh",
                                            "host-launch-us"};

/// `forecast` fuses nothing, as eager PyTorch; fp32 copies for whatever 16-bit dtype is tried.
struct Assumed {
  const char *option, *value;
};
constexpr Assumed kAssumed[] = {{"fusion", "pointwise"}, {"main-params-dtype", "fp32"}};

/// The request that all candidates share. It has no context parallelism itself, so how ranks
/// exchange then is set after it is checked.
Request shared_request(const PlanQuestion& asked, std::vector<GivenOption> more) {
  std::vector<const char*> names;
  std::copy_if(std::begin(kTrainingOptions), std::end(kTrainingOptions), std::back_inserter(names),
               [](std::string_view name) { return name != kExchange; });
  Request request = asked.request(names, std::move(more));
  for (const GivenOption& word : asked.words) {
    if (word.name == kExchange)
      set_option(request, *find_option(word.name, RequestKind::kPass), word.text);
  }
  return request;
}

TrainingQuery training_query_of(const PlanQuestion& asked, const Asking& asking) {
  std::vector<GivenOption> options = {{"mode", "training"}};
  for (const Assumed& assumed : kAssumed) {
    if (!asked.has_word(assumed.option)) options.push_back({assumed.option, assumed.value});
  }
  TrainingQuery query{.request = shared_request(asked, std::move(options)),
                      .gpus = asked.num_gpus,
                      .space = asked.training,
                      .objective = asked.objective,
                      .top = asked.top,
                      .pruning = asked.full_search ? Pruning::kOff : Pruning::kOn,
                      .memory_reserve = asked.memory_reserve,
                      .price_per_gpu_hour = {},
                      .show_progress = asking.show_progress};
  // Adapters have the copies that `forecast` gives them.
  if (query.request.lora_rank > 0 && !asked.has_word("main-params-dtype"))
    query.request.parallel.main_params.reset();
  return query;
}

/// Advice if nothing fits: values that lists left out of the search, and what it does not change.
std::string training_remedies(const TrainingPlan& plan, const TrainingQuery& query) {
  const TrainingSpace& space = query.space;
  std::vector<std::string> remedies;
  const auto add = [&](const auto& searched, auto value, const char* text) {
    if (!searched.empty() && std::find(searched.begin(), searched.end(), value) == searched.end())
      remedies.push_back(text);
  };
  add(space.micro_batch_sizes, 1, "`micro-batch-size` 1");
  add(space.zero, Zero::kParameters, "`zero` 3");
  add(space.checkpointing, Checkpointing::kFull, "`checkpointing` full");
  if (plan.candidates.front().memory.margin_bytes() >= 0) remedies.push_back("`memory-reserve` 0");
  if (query.gpus > 0) remedies.push_back("more GPUs");
  if (plan.nodes_that_fit) remedies.push_back(fmt::format("{} nodes", *plan.nodes_that_fit));
  if (plan.used.lora_rank == 0) remedies.push_back("adapters (`lora-rank`)");
  return remedies.empty() ? "" : "; use " + join(remedies, ", or ");
}

int64_t lacking_bytes(const TrainingPlan& plan) { return plan.candidates.front().missing_bytes(); }

/// "" if a configuration fits on one of the GPUs.
std::string training_shortfall(std::span<const TrainingPlan> plans, const TrainingQuery& query) {
  if (std::any_of(plans.begin(), plans.end(), [](const auto& plan) { return plan.fitting > 0; }))
    return "";
  const TrainingPlan& nearest = *std::min_element(
      plans.begin(), plans.end(),
      [](const auto& a, const auto& b) { return lacking_bytes(a) < lacking_bytes(b); });
  const TrainingCandidate& first = nearest.candidates.front();
  std::string lacks = format_bytes(lacking_bytes(nearest));
  if (first.memory.margin_bytes() >= 0)
    lacks = fmt::format("takes {} and lacks {} of the {} that stay free (`memory-reserve`)",
                        format_bytes(first.memory.peak_bytes), lacks,
                        format_bytes(first.reserve_bytes));
  else
    lacks = "lacks " + lacks;
  const std::string help = training_remedies(nearest, query);
  if (plans.size() > 1)
    return fmt::format("no configuration fits on any of these GPUs: the nearest, on {}, {}{}",
                       nearest.gpu, lacks, help);
  return fmt::format("no configuration fits into the {} of {}: the nearest {}{}",
                     format_bytes(nearest.device_bytes), nearest.gpu, lacks, help);
}

void set_price(TrainingQuery& query, const GpuPrice& price) {
  query.price_per_gpu_hour = price.price_per_gpu_hour;
  query.gpu_price.reset();
  if (!price.gpu.empty()) query.gpu_price = price;
}

/// The same training on GPUs of several kinds.
Reply compare_hardware(const PlanQuestion& asked, TrainingQuery query) {
  const ModelRef model = asked.model.load();
  std::vector<GpuRef> gpus;
  for (const GpuSource& source : asked.gpus) gpus.push_back(source.load());
  const std::vector<GpuPrice> prices = asked.prices_of(gpus);
  const std::shared_ptr<const Forecaster> forecaster = asked.forecaster.load();
  std::vector<TrainingPlan> plans;
  std::vector<std::string> warnings;
  for (size_t i = 0; i < gpus.size(); ++i) {
    if (!prices.empty()) set_price(query, prices[i]);
    plans.push_back(plan_training(*forecaster, model, gpus[i], query));
    if (plans.back().ranks != plans.front().ranks)
      throw Error(
          ErrorKind::kInput,
          fmt::format("`gpus`: {} {} nodes have {} GPUs, those of {} {}; compare kinds with "
                      "nodes of one size",
                      plans.back().nodes, plans.back().gpu, plans.back().ranks, plans.front().gpu,
                      plans.front().ranks));
    for (const std::string& text : warning_texts(plans.back().warnings))
      warnings.push_back(gpus[i].id() + ": " + text);
  }
  std::string shortfall = training_shortfall(plans, query);
  return {.answer = TrainingPlans{sorted_plans(plans)},
          .warnings = std::move(warnings),
          .shortfall = std::move(shortfall)};
}

}  // namespace

std::span<const char* const> training_request_options() { return kTrainingOptions; }

const char* assumed_value(std::string_view option) {
  for (const Assumed& assumed : kAssumed) {
    if (option == assumed.option) return assumed.value;
  }
  return nullptr;
}

Reply answer_training_plan(PlanQuestion&& asked, const Asking& asking) {
  TrainingQuery query = training_query_of(asked, asking);
  if (!asked.gpus.empty()) return compare_hardware(asked, std::move(query));
  const ModelRef model = asked.model.load();
  const GpuRef gpu = asked.gpu.load_or_of(asked.cluster);
  if (const std::vector<GpuPrice> prices = asked.prices_of({gpu}); !prices.empty())
    set_price(query, prices.front());
  const std::shared_ptr<const Forecaster> forecaster = asked.forecaster.load();
  const std::clock_t start = std::clock();
  TrainingPlan plan = plan_training(*forecaster, model, gpu, query);
  const double seconds = static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
  const auto candidates = static_cast<double>(plan.candidates.size());
  Reply reply{
      .warnings = warning_texts(plan.warnings),
      .shortfall = training_shortfall({&plan, 1}, query),
      .speed = fmt::format("{} candidates in {:.2f} s of all cores, {:.0f} a second; {} simulated",
                           candidates, seconds, candidates / seconds, plan.simulated)};
  reply.answer = std::move(plan);
  return reply;
}

}  // namespace tilecast
