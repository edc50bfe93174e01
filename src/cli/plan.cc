// 'tilecast plan': the best parallel configuration.

#include "cli/plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <ctime>

#include "base/checked.h"
#include "base/text.h"
#include "cli/terminal.h"
#include "cli/values.h"
#include "tilecast/error.h"
#include "tilecast/plan_report.h"

namespace tilecast {

std::vector<double> prices_of(const Given& given, const std::vector<GpuRef>& gpus) {
  const std::string text = text_of(given, "price-per-gpu-hour");
  if (text.empty()) return {};
  try {
    return gpu_prices(text, gpus);
  } catch (const OptionError& error) {
    throw UsageError(options_as_flags(error.what()));
  }
}

namespace {

/// Options of a pass that all candidates share, as `forecast` has them.
constexpr const char* kSharedOptions[] = {"cluster",
                                          "nodes",
                                          "batch",
                                          "seq",
                                          "attention",
                                          "fusion",
                                          "optimizer",
                                          "optimizer-impl",
                                          "loss",
                                          "main-params-dtype",
                                          "overlap-grad-reduce",
                                          "bucket-cap-mb",
                                          "lora-rank",
                                          "lora-targets",
                                          "predictor",
                                          "clocks",
                                          "host-launch-us"};
/// Of these, those of plans of serving too.
constexpr const char* kCommonOptions[] = {"cluster", "nodes", "clocks"};

/// How large models are trained today; `forecast` has other defaults, those of published times.
struct Assumed {
  const char *option, *value;
};
constexpr Assumed kAssumed[] = {{"fusion", "pointwise"},
                                {"optimizer", "adamw"},
                                {"optimizer-impl", "fused"},
                                {"loss", "full"},
                                {"main-params-dtype", "fp32"}};

Request training_request(const Given& given) {
  std::vector<GivenOption> options = {{"mode", "training"}};
  for (const Assumed& assumed : kAssumed) {
    if (!given.count(assumed.option)) options.push_back({assumed.option, assumed.value});
  }
  for (const char* name : kSharedOptions) {
    if (given.count(name)) options.push_back({name, join(texts_of(given, name), ",")});
  }
  try {
    return make_request(options);
  } catch (const OptionError& error) {
    throw UsageError(options_as_flags(error.what()));
  }
}

template <typename Choice>
std::vector<Choice> choices_of(const Given& given, const std::string& key) {
  constexpr auto kWords = choice_words(Choice{});
  std::vector<Choice> choices;
  for (const std::string& text : list_of(given, key)) {
    const auto found = std::find(kWords.begin(), kWords.end(), text);
    if (found == kWords.end())
      throw UsageError(
          fmt::format("--{}: unknown value '{}'; known: {}", key, text, fmt::join(kWords, ", ")));
    choices.push_back(static_cast<Choice>(found - kWords.begin()));
  }
  return choices;
}

TrainingSpace space_of(const Given& given) {
  TrainingSpace space{.tp = numbers_of(given, "tp"),
                      .pp = numbers_of(given, "pp"),
                      .cp = numbers_of(given, "cp"),
                      .ep = numbers_of(given, "ep"),
                      .micro_batch_sizes = numbers_of(given, "micro-batch-size"),
                      .virtual_stages = numbers_of(given, "virtual-stages"),
                      .schedules = choices_of<PipelineSchedule>(given, "pipeline-schedule"),
                      .zero = choices_of<Zero>(given, "zero"),
                      .checkpointing = choices_of<Checkpointing>(given, "checkpointing"),
                      .sequence_parallel = {},
                      .dtypes = list_of(given, "dtype")};
  for (const std::string& text : list_of(given, "sequence-parallel")) {
    if (text != "on" && text != "off")
      throw UsageError(
          fmt::format("--sequence-parallel: unknown value '{}'; known: on, off", text));
    space.sequence_parallel.push_back(text == "on");
  }
  return space;
}

/// What may help if nothing fits: values that lists left out of the search, and what it does not
/// change.
std::vector<std::string> remedies_of(const TrainingPlan& plan, const TrainingSpace& space) {
  std::vector<std::string> remedies;
  const auto add = [&](const auto& searched, auto value, const char* text) {
    if (!searched.empty() && std::find(searched.begin(), searched.end(), value) == searched.end())
      remedies.push_back(text);
  };
  add(space.micro_batch_sizes, 1, "--micro-batch-size 1");
  add(space.zero, Zero::kParameters, "--zero 3");
  add(space.checkpointing, Checkpointing::kFull, "--checkpointing full");
  if (plan.has_network) {
    const int64_t bytes = checked_multiply(plan.nodes, plan.candidates.front().peak_bytes);
    remedies.push_back(fmt::format("at least {} nodes", ceil_divide(bytes, plan.device_bytes)));
  }
  if (plan.used.lora_rank == 0) remedies.push_back("adapters (--lora-rank)");
  return remedies;
}

/// The same training on GPUs of several kinds.
void compare_hardware(const Given& given, TrainingQuery query) {
  for (const char* other : {"gpu", "cluster"}) {
    if (given.count(other))
      throw UsageError(fmt::format("--gpus cannot be combined with --{}", other));
  }
  const std::string format = text_of(given, "format", "table"),
                    output = text_of(given, "output-file");
  if (format == "csv") throw UsageError("--gpus with --format csv: give one GPU, or use json");
  const ModelRef model = load_model_ref(text_of(given, "MODEL"));
  std::vector<GpuRef> gpus;
  for (const std::string& name : list_of(given, "gpus")) gpus.push_back(load_gpu_ref(name));
  const std::vector<double> prices = prices_of(given, gpus);
  const Forecaster forecaster(text_of(given, "weights"), text_of(given, "calibration"));
  std::vector<TrainingPlan> plans;
  std::vector<std::string> warnings;
  for (size_t i = 0; i < gpus.size(); ++i) {
    if (!prices.empty()) query.price_per_gpu_hour = prices[i];
    plans.push_back(plan_training(forecaster, model, gpus[i], query));
    if (plans.back().ranks != plans.front().ranks)
      throw Error(
          ErrorKind::kInput,
          fmt::format("--gpus: {} {} nodes have {} GPUs, those of {} {}; compare kinds with "
                      "nodes of one size",
                      plans.back().nodes, plans.back().gpu, plans.back().ranks, plans.front().gpu,
                      plans.front().ranks));
    for (const std::string& text : warning_texts(plans.back().warnings))
      warnings.push_back(gpus[i].id() + ": " + text);
  }
  emit(format == "json" ? plans_json(plans) : plans_table(plans, output_style(output)), output,
       format == "json" ? std::vector<std::string>() : warnings);
  if (std::any_of(plans.begin(), plans.end(), [](const auto& plan) { return plan.fitting > 0; }))
    return;
  const auto lacking = [](const TrainingPlan& plan) {
    return -plan.candidates.front().margin_bytes;
  };
  const TrainingPlan& nearest =
      *std::min_element(plans.begin(), plans.end(),
                        [&](const auto& a, const auto& b) { return lacking(a) < lacking(b); });
  const std::vector<std::string> remedies = remedies_of(nearest, query.space);
  throw Error(ErrorKind::kUnsupported,
              fmt::format("no configuration fits on any of these GPUs: the nearest, on {}, lacks "
                          "{}{}",
                          nearest.gpu, format_bytes(lacking(nearest)),
                          remedies.empty() ? "" : "; use " + join(remedies, ", or ")));
}

void run_training_plan(const Given& given) {
  TrainingQuery query{
      .request = training_request(given), .attention = {}, .space = space_of(given)};
  if (given.count("attention")) query.attention = query.request.execution.attention;
  const auto objectives = choices_of<PlanObjective>(given, "objective");
  if (!objectives.empty()) query.objective = objectives.front();
  query.top = static_cast<size_t>(integer_of(given, "top", 10, 1, 1000));
  if (given.count("full-search")) query.pruning = Pruning::kOff;
  if (given.count("gpus")) return compare_hardware(given, std::move(query));
  const ModelRef model = load_model_ref(text_of(given, "MODEL"));
  const std::string named = text_of(given, "gpu"), cluster = text_of(given, "cluster");
  if (named.empty() && cluster.empty())
    throw UsageError("plan: --cluster, --gpu or --gpus is required; see 'tilecast plan --help'");
  const GpuRef gpu = load_gpu_or_cluster(named, cluster);
  if (const std::vector<double> prices = prices_of(given, {gpu}); !prices.empty())
    query.price_per_gpu_hour = prices.front();
  const Forecaster forecaster(text_of(given, "weights"), text_of(given, "calibration"));
  const std::clock_t start = std::clock();
  const TrainingPlan plan = plan_training(forecaster, model, gpu, query);
  const double seconds = static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
  const std::string format = text_of(given, "format", "table"),
                    output = text_of(given, "output-file");
  emit(format == "json"  ? plan_json(plan)
       : format == "csv" ? plan_csv(plan)
                         : plan_table(plan, output_style(output)),
       output, format == "json" ? std::vector<std::string>() : warning_texts(plan.warnings));
  if (given.count("stats"))
    print_error(fmt::format("{} candidates in {:.2f} s of one core, {:.0f} a second; {} simulated",
                            plan.candidates.size(), seconds,
                            static_cast<double>(plan.candidates.size()) / seconds, plan.simulated));
  if (plan.fitting > 0) return;
  const std::vector<std::string> remedies = remedies_of(plan, query.space);
  throw Error(ErrorKind::kUnsupported,
              fmt::format("no configuration fits into the {} of {}: the nearest lacks {}{}",
                          format_bytes(plan.device_bytes), plan.gpu,
                          format_bytes(-plan.candidates.front().margin_bytes),
                          remedies.empty() ? "" : "; use " + join(remedies, ", or ")));
}

/// An option of the other kind of plan would be dropped.
void refuse_options(const Given& given, const std::vector<CommandOption>& others,
                    const std::string& why) {
  for (const CommandOption& option : others) {
    if (given.count(option.key())) throw UsageError(fmt::format("--{} {}", option.key(), why));
  }
}

std::vector<OptionGroup> plan_groups() {
  OptionGroup common{"Options", {}};
  CommandOption gpu = gpu_option();
  gpu.required = false;
  gpu.help += "; or --cluster";
  common.options.push_back(gpu);
  common.options.push_back({.names = "--gpus",
                            .value = "LIST",
                            .help = "kinds of GPUs to compare, with the same number of each",
                            .kind = ValueKind::kGpu,
                            .repeated = true});
  OptionGroup training{"Training (without --prompt)", {}};
  for (const char* name : kSharedOptions) {
    CommandOption option = pass_option(name);
    for (const Assumed& assumed : kAssumed) {
      if (option.key() == assumed.option) option.default_value = assumed.value;
    }
    if (option.key() == "nodes") option.help = "of the cluster [1]";
    if (option.key() == "attention") option.default_value = "flash, where the model has it";
    const bool both = std::find(std::begin(kCommonOptions), std::end(kCommonOptions),
                                std::string_view(name)) != std::end(kCommonOptions);
    (both ? common : training).options.push_back(option);
  }
  training.options.push_back({.names = "--objective",
                              .default_value = "time",
                              .help = "what the best candidate has least of",
                              .choices = {"time", "cost", "memory"}});
  common.options.push_back(
      {.names = "--price-per-gpu-hour",
       .value = "PRICE",
       .help = "a number, a list (H100=2.5,A100=1.2), or a file (.json, .csv)"});
  training.options.push_back({.names = "--top",
                              .value = "N",
                              .default_value = "10",
                              .help = "candidates that are ranked by simulated times"});
  common.options.push_back({.names = "--full-search",
                            .help = "simulates to the end also what is sure to be none of the "
                                    "best; the answer is the same"});
  common.options.push_back(
      {.names = "--stats", .help = "writes the speed of the search to standard error"});
  common.options.push_back(format_option({"table", "json", "csv"}));
  CommandOption file = output_option();
  file.old_names.clear();  // here, --output is a number of tokens
  for (const CommandOption& option : {file, weights_option(), calibration_option()})
    common.options.push_back(option);
  OptionGroup degrees{
      "What is searched (lists, '1,2,4'; default: all that are possible)",
      {list_option("tp", "up to the GPUs of a node", "tensor-parallel ranks"),
       list_option("pp", "", "pipeline stages"), list_option("ep", "", "expert-parallel ranks"),
       list_option("dtype", "",
                   "training: bf16 and amp, or fp16; serving: 16 bits and fp8, or the "
                   "checkpoint's own")}};
  OptionGroup space{
      "What is searched for training",
      {list_option("cp", "at least 1,024 tokens on each rank", "context-parallel ranks"),
       list_option("micro-batch-size", "1,2,4,8", "sequences of a micro-batch"),
       list_option("pipeline-schedule", "gpipe,1f1b,interleaved", "of several stages"),
       list_option("virtual-stages", "", "parts of the model on each stage, for interleaved"),
       list_option("zero", "0,1,2,3", "what data-parallel ranks divide"),
       list_option("checkpointing", "none,full; with eager attention also selective",
                   "what the backward pass computes again"),
       list_option("sequence-parallel", "on,off", "for norms, dropout and residual sums")}};
  const CommandOption model = {.names = "MODEL",
                               .help =
                                   "config.json of Hugging Face or its folder, or the name of "
                                   "a bundled model ('tilecast models')",
                               .kind = ValueKind::kModel,
                               .required = true};
  return {{"Arguments", {model}}, common, degrees, training, space, serving_plan_options()};
}

void run_plan(const Given& given) {
  std::vector<CommandOption> training, serving = serving_plan_options().options;
  for (const OptionGroup& group : plan_groups()) {
    if (group.title.find("raining") != std::string::npos)
      training.insert(training.end(), group.options.begin(), group.options.end());
  }
  if (given.count("prompt")) {
    refuse_options(given, training, "applies to training; --prompt asks for a plan of serving");
    return run_serving_plan(given);
  }
  refuse_options(given, serving, "applies to serving; it needs --prompt");
  run_training_plan(given);
}

}  // namespace

Command plan_command() {
  return {.name = "plan",
          .help = "The best parallel configuration",
          .usage = {"MODEL --cluster CLUSTER --nodes N --batch N --seq N [options]  # training",
                    "MODEL --gpus GPU,GPU --prompt N --output N --ttft-s S --tpot-s S [options]  # "
                    "serving"},
          .groups = plan_groups(),
          .examples = {"tilecast plan llama-3.1-8b --cluster dgx-h100 --nodes 2 --batch 128 --seq "
                       "4096",
                       "tilecast plan llama-3.1-70b --gpus H100,H200 --prompt 2048 --output 512 "
                       "--ttft-s 1 --tpot-s 0.03"},
          .run = run_plan};
}

}  // namespace tilecast
