// 'tilecast plan' with --prompt: the best way to serve a model.

#include <fmt/format.h>

#include <algorithm>
#include <ctime>

#include "base/text.h"
#include "cli/plan.h"
#include "cli/terminal.h"
#include "cli/values.h"
#include "tilecast/error.h"
#include "tilecast/plan_report.h"

namespace tilecast {
namespace {

/// Options of a server that all candidates share, as `forecast` has them.
constexpr const char* kServingOptions[] = {"prompt",
                                           "output",
                                           "software",
                                           "max-num-seqs",
                                           "max-num-batched-tokens",
                                           "gpu-memory-utilization",
                                           "max-model-len",
                                           "prefix-hit-rate",
                                           "server-overhead-s",
                                           "ttft-s",
                                           "tpot-s",
                                           "cuda-graphs",
                                           "skew",
                                           "step-overhead-us"};

Request serving_request(const Given& given) {
  // The load of each candidate replaces this one.
  std::vector<GivenOption> options = {{"schedule", "continuous"}, {"concurrency", "1"}};
  const auto add = [&](const char* name) {
    if (given.count(name)) options.push_back({name, join(texts_of(given, name), ",")});
  };
  for (const char* name : kServingOptions) add(name);
  add("clocks");  // of both kinds of plans
  try {
    return make_request(options);
  } catch (const OptionError& error) {
    throw UsageError(options_as_flags(error.what()));
  }
}

std::vector<ServingHardware> hardware_of(const Given& given) {
  const std::vector<std::string> names = list_of(given, "gpus");
  const std::string gpu = text_of(given, "gpu"), cluster = text_of(given, "cluster");
  if (!names.empty() && (!gpu.empty() || !cluster.empty()))
    throw UsageError("--gpus cannot be combined with --gpu or --cluster");
  if (names.empty() && gpu.empty() && cluster.empty())
    throw UsageError("plan: --gpus, --gpu or --cluster is required; see 'tilecast plan --help'");
  std::vector<ServingHardware> hardware;
  std::vector<GpuRef> gpus;
  if (names.empty()) hardware.push_back({load_gpu_or_cluster(gpu, cluster), cluster});
  for (const std::string& name : names) hardware.push_back({load_gpu_ref(name), ""});
  for (const ServingHardware& h : hardware) gpus.push_back(h.gpu);
  const std::vector<double> prices = prices_of(given, gpus);
  for (size_t i = 0; i < prices.size(); ++i) hardware[i].price_per_gpu_hour = prices[i];
  return hardware;
}

/// Numbers from 0: `numbers_of` starts at 1.
std::vector<int64_t> prefill_workers_of(const Given& given) {
  constexpr int64_t kMost = 4096;
  std::vector<int64_t> numbers;
  for (const std::string& text : list_of(given, "prefill-workers"))
    numbers.push_back(integer_of({{"prefill-workers", {text}}}, "prefill-workers", 0, 0, kMost));
  return numbers;
}

/// With what the nearest layout fits.
std::string remedy_text(const ServingPlan& plan, const Given& given) {
  if (plan.utilization_that_fits)
    return fmt::format("; the nearest fits with --gpu-memory-utilization {:.3g}",
                       *plan.utilization_that_fits);
  // Without a list, all dtypes of the GPU are searched.
  return given.count("dtype") ? "; use more GPUs, or another --dtype" : "; use more GPUs";
}

}  // namespace

void run_serving_plan(const Given& given) {
  constexpr int64_t kMost = int64_t{1} << 20;
  ServingQuery query{.request = serving_request(given),
                     .hardware = {},
                     .gpus = integer_of(given, "num-gpus", 0, 1, kMost),
                     .space = {.tp = numbers_of(given, "tp"),
                               .pp = numbers_of(given, "pp"),
                               .dp = numbers_of(given, "dp"),
                               .ep = numbers_of(given, "ep"),
                               .prefill_workers = prefill_workers_of(given),
                               .concurrency = numbers_of(given, "concurrency"),
                               .dtypes = list_of(given, "dtype"),
                               .kv_dtypes = list_of(given, "kv-dtype")},
                     .has_prices = given.count("price-per-gpu-hour") > 0,
                     .full_search = given.count("full-search") > 0};
  query.ttft_s = query.request.load.ttft_s;
  query.tpot_s = query.request.load.tpot_s;
  const auto words = choice_words(Percentile{});
  const std::string percentile = text_of(given, "percentile", "p99");
  query.percentile =
      static_cast<Percentile>(std::find(words.begin(), words.end(), percentile) - words.begin());
  query.hardware = hardware_of(given);
  query.nodes = integer_of(given, "nodes", 1, 1, kMost);
  const ModelRef model = load_model_ref(text_of(given, "MODEL"));
  const Forecaster forecaster(text_of(given, "weights"), text_of(given, "calibration"));
  const std::clock_t start = std::clock();
  const ServingPlan plan = plan_serving(forecaster, model, query);
  const double seconds = static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
  const std::string format = text_of(given, "format", "table"),
                    output = text_of(given, "output-file");
  const bool picture = output.ends_with(".svg");
  if (picture && given.count("format"))
    throw UsageError("-o FILE.svg is the picture of the Pareto front; omit --format");
  if (picture) emit(plan_svg(plan), output, {});
  emit(format == "json"  ? plan_json(plan)
       : format == "csv" ? plan_csv(plan)
                         : plan_table(plan, output_style(picture ? "" : output)),
       picture ? "" : output,
       format == "json" ? std::vector<std::string>() : plan_warning_texts(plan));
  if (given.count("stats"))
    print_error(fmt::format(
        "{} candidates in {:.2f} s of one core, {:.0f} a second; {} simulated, {} pruned",
        plan.candidates.size(), seconds, static_cast<double>(plan.candidates.size()) / seconds,
        plan.simulated, plan.pruned));
  if (plan.meeting > 0) return;
  throw Error(ErrorKind::kUnsupported,
              plan.fitting == 0
                  ? "no layout fits into memory" + remedy_text(plan, given)
                  : "no layout meets the limits: the first of the table comes nearest");
}

OptionGroup serving_plan_options() {
  OptionGroup group{"Serving (with --prompt)", {}};
  group.options.push_back({.names = "--num-gpus",
                           .value = "N",
                           .default_value = "the GPUs of the nodes",
                           .help = "GPUs of each kind"});
  for (const char* name : kServingOptions)
    group.options.push_back(command_option(*find_option(name, RequestKind::kServe)));
  group.options.push_back({.names = "--percentile",
                           .default_value = "p99",
                           .help = "of the requests' times, to which the limits apply",
                           .choices = {"mean", "median", "p99"}});
  group.options.push_back(list_option("dp", "",
                                      "data-parallel attention ranks of a replica, for "
                                      "models with experts"));
  group.options.push_back(list_option("prefill-workers", "0,1,...: all but one of the servers",
                                      "servers that compute prompts only"));
  group.options.push_back(list_option("concurrency", "1,2,4,...",
                                      "clients of each replica, which send their next "
                                      "request when one is answered"));
  group.options.push_back(
      list_option("kv-dtype", "that of the checkpoint or the activations", "of the cache"));
  return group;
}

}  // namespace tilecast
