// The best parallel configuration, of training or with `prompt` of serving.

#include "command/plan_question.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "command/shared_options.h"
#include "devices/cluster.h"
#include "scenario/prices.h"
#include "tilecast/error.h"

namespace tilecast {

Request PlanQuestion::request(std::span<const char* const> names,
                              std::vector<GivenOption> more) const {
  for (const GivenOption& word : words) {
    if (std::find(names.begin(), names.end(), word.name) != names.end()) more.push_back(word);
  }
  return make_request(more);
}

bool PlanQuestion::has_word(std::string_view name) const {
  return std::any_of(words.begin(), words.end(),
                     [&](const GivenOption& word) { return word.name == name; });
}

std::vector<GpuPrice> PlanQuestion::prices_of(const std::vector<GpuRef>& kinds) const {
  if (prices.empty()) return {};
  const std::string name = cluster.empty() ? "" : find_cluster(cluster).id;
  std::vector<PricedGpu> priced;
  for (const GpuRef& kind : kinds) priced.push_back({kind.id(), name});
  return tilecast::prices_of(prices, priced);
}

namespace {

/// Options of plans of both kinds.
constexpr std::string_view kCommonOptions[] = {"cluster",     "nodes",     "clocks",      "host",
                                               "power-cap-w", "lora-rank", "lora-targets"};

constexpr const char* kTrainingTitle = "Training (without --prompt)";
constexpr const char* kTrainingSpaceTitle = "What is searched for training";
constexpr const char* kServingTitle = "Serving (with --prompt)";

/// A word of the request of training, and the same of that of serving.
template <auto Member>
void set_both(void* question, const CommandOption& option, const GivenValue& value) {
  into_request<&PlanQuestion::words>()(question, option, value);
  into<Member>()(question, option, value);
}

template <auto Member>
CommandOption training_list(const std::string& name, const std::string& default_value,
                            const std::string& help, ValueType type = ValueType::kWhole) {
  return list_option(name, default_value, help, into<&PlanQuestion::training, Member>(), type);
}

template <auto Member>
CommandOption serving_list(const std::string& name, const std::string& default_value,
                           const std::string& help, ValueType type = ValueType::kWhole) {
  return list_option(name, default_value, help, into<&PlanQuestion::serving, Member>(), type);
}

/// Options of a training request, those of both kinds of plans first.
void add_training_request(std::vector<CommandOption>& common,
                          std::vector<CommandOption>& training) {
  for (const char* name : training_request_options()) {
    CommandOption option =
        request_option(name, RequestKind::kPass, into_request<&PlanQuestion::words>());
    if (const char* assumed = assumed_value(name)) option.default_value = assumed;
    if (option.key() == "nodes") {
      option.help = "of the cluster [1]";
      option.set = set_both<&PlanQuestion::nodes>;
      option.max = int64_t{1} << 20;
    }
    if (option.key() == "lora-rank")
      option.help =
          "training: trains low-rank adapters (LoRA) of this rank, all other weights are "
          "frozen; serving: each request has an adapter of this rank";
    if (option.key() == "power-cap-w") {
      option.help = "most power of each GPU's board in watts, as of nvidia-smi -pl";
      option.value = "W";
    }
    if (option.key() == "cluster") option.set = set_both<&PlanQuestion::cluster>;
    const bool both = std::find(std::begin(kCommonOptions), std::end(kCommonOptions), name) !=
                      std::end(kCommonOptions);
    (both ? common : training).push_back(option);
  }
}

std::vector<CommandOption> serving_options() {
  std::vector<CommandOption> options;
  for (const char* name : serving_request_options())
    options.push_back(
        request_option(name, RequestKind::kServe, into_request<&PlanQuestion::words>()));
  const auto rate =
      std::find_if(options.begin(), options.end(), [](const auto& o) { return o.key() == "rate"; });
  rate->help =
      "requests per second of all replicas together: the fewest GPUs, and with prices the "
      "cheapest, that keep the limits under it";
  // Four requests of each client are simulated, or more.
  options.push_back(whole_option("--clients", "none",
                                 "of all replicas together, which send their next request when one "
                                 "is answered; as --rate",
                                 into<&PlanQuestion::clients>(), 1, kMaxServedRequests / 4));
  options.push_back({.names = "--percentile",
                     .default_value = "p99",
                     .help = "of the requests' times, to which the limits apply",
                     .choices = {"mean", "median", "p99"},
                     .set = into<&PlanQuestion::percentile>()});
  options.push_back(serving_list<&ServingSpace::dp>("dp", "",
                                                    "data-parallel attention ranks of a replica, "
                                                    "for models with experts"));
  CommandOption workers = serving_list<&ServingSpace::prefill_workers>(
      "prefill-workers", "0,1,...: all but one of the servers",
      "servers that compute prompts only");
  workers.min = 0;
  workers.max = 4096;
  options.push_back(workers);
  options.push_back(serving_list<&ServingSpace::concurrency>(
      "concurrency", "1,2,4,...",
      "clients of each replica, which send their next request when one is answered"));
  options.push_back(serving_list<&ServingSpace::kv_dtypes>(
      "kv-dtype", "that of the checkpoint or the activations", "of the cache", ValueType::kText));
  return options;
}

OptionGroup training_space() {
  constexpr ValueType kText = ValueType::kText;
  using Space = TrainingSpace;
  return {kTrainingSpaceTitle,
          {training_list<&Space::cp>("cp", "at least 1,024 tokens on each rank",
                                     "context-parallel ranks"),
           training_list<&Space::micro_batch_sizes>("micro-batch-size", "1,2,4,...: while any fits",
                                                    "sequences of a micro-batch"),
           training_list<&Space::schedules>("pipeline-schedule", "gpipe,1f1b,interleaved",
                                            "of several stages; others: zero-bubble, zb-v", kText),
           training_list<&Space::virtual_stages>(
               "virtual-stages", "", "parts of the model on each stage, for interleaved"),
           training_list<&Space::zero>("zero", "0,1,2,3", "what data-parallel ranks divide", kText),
           training_list<&Space::checkpointing>("checkpointing",
                                                "none,full; with eager attention also selective",
                                                "what the backward pass computes again", kText),
           training_list<&Space::sequence_parallel>(
               "sequence-parallel", "on,off", "for norms, dropout and residual sums", kText)}};
}

OptionGroup degrees() {
  using Space = TrainingSpace;
  return {"What is searched (lists, '1,2,4'; default: all that are possible)",
          {training_list<&Space::tp>("tp", "up to the GPUs of a node", "tensor-parallel ranks"),
           training_list<&Space::pp>("pp", "", "pipeline stages"),
           training_list<&Space::ep>("ep", "", "expert-parallel ranks"),
           training_list<&Space::dtypes>(
               "dtype", "",
               "training: bf16 and amp, or fp16; serving: 16 bits and fp8, or the "
               "checkpoint's own",
               ValueType::kText)}};
}

std::vector<OptionGroup> plan_groups() {
  CommandOption gpu = gpu_option(into<&PlanQuestion::gpu>());
  gpu.required = false;
  gpu.help += "; or --cluster";
  std::vector<CommandOption> common = {gpu,
                                       {.names = "--gpus",
                                        .value = "LIST",
                                        .help = "kinds of GPUs to compare, with the same number of "
                                                "each",
                                        .kind = ValueKind::kGpu,
                                        .repeated = true,
                                        .list = true,
                                        .set = into<&PlanQuestion::gpus>()}};
  std::vector<CommandOption> training;
  add_training_request(common, training);
  training.push_back({.names = "--memory-reserve",
                      .value = "RATIO",
                      .default_value = fmt::format("{}", TrainingQuery::kMemoryReserve),
                      .help = "memory that stays free, as a share of the peak",
                      .type = ValueType::kNumber,
                      .min = 0,
                      .set = into<&PlanQuestion::memory_reserve>()});
  training.push_back(whole_option("--top", "10", "layouts that are ranked by simulated times",
                                  into<&PlanQuestion::top>(), 1, 1000));
  common.push_back(whole_option("--num-gpus", "all of the nodes",
                                "GPUs of each kind, as many of each node; with --rate or --clients "
                                "the most that all replicas together take",
                                into<&PlanQuestion::num_gpus>(), 1, int64_t{1} << 20));
  common.push_back({.names = "--price-per-gpu-hour",
                    .value = "PRICE|TABLE",
                    .help = "a number, a list (H100=2.5,A100=1.2), a file (.json, .csv), or a "
                            "price table that comes with Tilecast (aws-on-demand)",
                    .set = into<&PlanQuestion::prices>()});
  common.push_back({.names = "--objective",
                    .default_value = "time",
                    .help = "what candidates are ranked by; training: the time, cost, memory or "
                            "energy of a step; serving: time ranks by tokens a second for each "
                            "GPU (with --rate or --clients by the number of GPUs), or with prices "
                            "by their cost, as cost does; energy by that of a token",
                    .choices = {"time", "cost", "memory", "energy"},
                    .set = into<&PlanQuestion::objective>()});
  common.push_back(switch_option("full-search",
                                 "simulates to the end also what is sure to be none of the "
                                 "best; the answer is the same",
                                 into<&PlanQuestion::full_search>()));
  for (const CommandOption& option : forecaster_options<PlanQuestion>()) common.push_back(option);
  return {{"Arguments",
           {{.names = "MODEL",
             .help = "config.json of Hugging Face or its folder, or the name of "
                     "a bundled model ('tilecast models')",
             .kind = ValueKind::kModel,
             .required = true,
             .set = into<&PlanQuestion::model>()}}},
          {"Options", std::move(common)},
          degrees(),
          {kTrainingTitle, std::move(training)},
          training_space(),
          {kServingTitle, serving_options()}};
}

/// An option of the other kind of plan would be dropped.
void refuse_others(const Given& given, bool serving) {
  for (const OptionGroup& group : plan_groups()) {
    const bool others = serving
                            ? group.title == kTrainingTitle || group.title == kTrainingSpaceTitle
                            : group.title == kServingTitle;
    if (!others) continue;
    for (const CommandOption& option : group.options) {
      if (has(given, option.key()))
        throw OptionError(
            fmt::format("`{}` {}", option.key(),
                        serving ? "applies to training; `prompt` asks for a plan of serving"
                                : "applies to serving; it needs `prompt`"));
    }
  }
}

Reply answer_plan(PlanQuestion&& asked, const Given& given, const Asking& asking) {
  const bool serving = has(given, "prompt");
  refuse_others(given, serving);
  if (has(given, "num-gpus") && has(given, "nodes"))
    throw OptionError("`num-gpus` cannot be combined with `nodes`, which it sets");
  if (!asked.gpus.empty()) {
    for (const char* other : {"gpu", "cluster"}) {
      if (has(given, other))
        throw OptionError(serving ? "`gpus` cannot be combined with `gpu` or `cluster`"
                                  : fmt::format("`gpus` cannot be combined with `{}`", other));
    }
  } else if (!asked.gpu.given() && asked.cluster.empty()) {
    throw MissingOption("`cluster`, `gpu` or `gpus`");
  }
  return serving ? answer_serving_plan(std::move(asked), asking)
                 : answer_training_plan(std::move(asked), asking);
}

}  // namespace

Question plan_question() {
  return with_essential(
      question_of<PlanQuestion, plan_groups, answer_plan>(
          "plan", "The best parallel configuration",
          {{"prompt", "ServingPlan"}, {"gpus", "TrainingPlans"}, {"", "TrainingPlan"}}),
      {"gpu", "gpus", "cluster", "nodes", "num-gpus", "batch", "seq", "optimizer", "dtype",
       "objective", "prompt", "output", "rate", "ttft-s", "tpot-s", "software",
       "price-per-gpu-hour"});
}

}  // namespace tilecast
