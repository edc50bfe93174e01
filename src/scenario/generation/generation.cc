// Forecasts of text generation, for a static batch or a server.

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/checked.h"
#include "base/file.h"
#include "collectives/paths.h"
#include "request/access.h"
#include "scenario/generation/drafts.h"
#include "scenario/generation/expert_precision.h"
#include "scenario/generation/generation_facts.h"
#include "scenario/generation/generation_memory.h"
#include "scenario/generation/generation_scenario.h"
#include "scenario/generation/offered_load.h"
#include "scenario/generation/served_adapters.h"
#include "scenario/generation/served_model.h"
#include "scenario/generation/served_stages.h"
#include "scenario/generation/server.h"
#include "scenario/generation/server_pools.h"
#include "scenario/generation/single_request.h"
#include "scenario/generation/slower_precision.h"
#include "scenario/generation/tower_runs.h"
#include "scenario/power.h"
#include "scenario/warnings.h"
#include "tilecast/error.h"
#include "tilecast/result.h"

namespace tilecast {
namespace {

/// The output is divided into so many parts; a decode step is forecast in the middle of each.
constexpr int64_t kDecodeParts = 5;

class Generation {
 public:
  /// `asked` is the original request; the request of `served` has the lengths of one typical
  /// request.
  Generation(const ServedModel& served, const OtherPools& others, const Request& asked)
      : served_(served),
        workers_(others.prefill),
        encoders_(others.encode),
        prompts_(workers_ != nullptr ? workers_->served() : served),
        model_(served.model),
        decoder_(served.decoder()),
        device_(served.device),
        o_(served.asked),
        asked_(asked) {}

  GenerationForecast run() {
    GenerationForecast f;
    describe_request(f);
    add_facts(f, served_);
    f.adapters = describe_adapters(served_);
    time_request(f);
    f.tokens_per_s = static_cast<double>(o_.batch * o_.output) / f.request.value;
    add_totals(f);
    if (o_.execution.skew_percent > 0 && served_.plan.ep > 1) find_mean_work(f);
    f.latency = f.request;
    f.utilization_ratio = utilization(f, 1 / f.request.value);
    f.roofs = roofs_of(f.kernels, device_);
    if (f.continuous) {
      serve(f);
    } else {
      add_batch_memory(f, served_);
    }
    if (f.serving)
      f.power = power_under_load(*f.serving);
    else
      add_power(f);
    warn(f);
    return f;
  }

  GenerationForecast alone() const {
    GenerationForecast f;
    describe_request(f);
    time_request(f);
    warn(f);
    return f;
  }

  /// See single_request.h.
  std::optional<PowerForecast> power_under_load(const GenerationForecast::Serving& serving) const {
    const double answers_per_s =
        serving.steady_or_all().requests_per_s / static_cast<double>(serving.replicas);
    if (workers_ != nullptr || answers_per_s <= 0) return std::nullopt;
    Request request = o_;
    request.batch = std::max<int64_t>(1, std::llround(serving.mean_batch));
    const ServedModel served(served_, request);
    GenerationForecast batch =
        Generation(served, {.prefill = nullptr, .encode = encoders_}, asked_).kernels_alone();
    if (encoders_ != nullptr) std::erase_if(batch.kernels, is_vision);
    const auto requests = static_cast<double>(request.batch);
    const double seconds = requests / answers_per_s;
    const std::optional<PowerForecast> power = power_of({.kernels = batch.kernels,
                                                         .seconds = {seconds, seconds, seconds},
                                                         .stages = served_.plan.pp,
                                                         .ranks = server_gpus(o_),
                                                         .tokens = static_cast<double>(o_.output),
                                                         .requests = requests,
                                                         .warm = true},
                                                        served_.power(), o_);
    return power && encoders_ != nullptr ? with_encode_workers(*power, serving) : power;
  }

 private:
  /// A single request, or the requests of a static batch.
  void time_request(GenerationForecast& f) const {
    vision(f);
    prefill(f);
    decode(f);
    f.request = sum(f.ttft, f.tpot, static_cast<double>(o_.output - 1));
    if (workers_ == nullptr || o_.output == 1) return;
    const double moved = workers_->after_prefill_s(o_.prompt);
    f.request = sum(f.request, {moved, moved, moved}, 1);
  }

  void describe_request(GenerationForecast& f) const {
    f.model = model_.name;
    f.names = names_;
    f.gpu = device_.id;
    f.gpu_name = device_.name;
    f.dtype = served_.precision.name;
    f.dtype_source = served_.precision.source;
    f.kv_dtype = dtype_name(served_.kv_dtype);
    f.software = choice_name(*o_.execution.software);
    f.prompt = o_.prompt;
    f.output = o_.output;
    f.batch = o_.batch;
    f.tp = o_.execution.tp;
    f.pp = o_.execution.pp;
    f.dp = o_.execution.dp;
    f.ep = o_.parallel.ep;
    f.ranks = server_gpus(o_);
    f.gpus = all_gpus(asked_);
    f.cluster = served_.plan.cluster.id;
    f.continuous = o_.kind == RequestKind::kServe;
    f.used = asked_;
    f.used.execution.software = o_.execution.software;
    f.used.execution.clocks = o_.execution.clocks;
    f.used.execution.skew_percent = served_skew(o_, served_.modules);
    // data/software states that of a typical host.
    if (o_.execution.host != HostClass::kTypical)
      f.used.execution.host_launch_s = o_.execution.host_launch_s;
    f.used.execution.step_overhead_s = o_.execution.step_overhead_s;
    f.used.execution.sequence_overhead_s = o_.execution.sequence_overhead_s;
    f.used.load.server_overhead_s = o_.load.server_overhead_s;
    f.used.load.request_turn_s = o_.load.request_turn_s;
    if (Speculation& s = f.used.deployment.speculation; s.tokens > 0) {
      s.acceptance_rate = acceptance_rate(s);
      s.method = draft_method(s).method;
    }
    f.used.execution.dtype = f.dtype;
    f.used.execution.kv_dtype = f.kv_dtype;
    f.lengths_vary = !asked_.load.trace.empty() || asked_.load.session_turns > 1 ||
                     asked_.load.max_prompt > asked_.prompt ||
                     asked_.load.max_output > asked_.output;
  }

  /// Adds the kernels of a step that runs `times` times.
  static void add_kernels(GenerationForecast& f, std::vector<KernelForecast> rows,
                          const char* phase, int64_t times) {
    for (KernelForecast& row : rows) {
      row.phase = phase;
      row.count = checked_multiply(row.count, times);
    }
    add_rows(f.kernels, std::move(rows));
  }

  void vision(GenerationForecast& f) const {
    std::optional<TowerRuns> runs = tower_runs(served_, encoders_, *names_);
    if (!runs) return;
    f.prompt -= runs->vision.prompt_tokens;
    f.ttft = runs->seconds;
    add_rows(f.kernels, std::move(runs->kernels));
    f.vision = std::move(runs->vision);
  }

  /// Steps follow each other through the stages of a pipeline; the slowest stage decides.
  void prefill(GenerationForecast& f) const {
    const int64_t batch = prompts_.sequences_of_rank(o_.batch);
    const int64_t together = prefill_sequences(o_, batch);
    const int64_t chunk = o_.execution.max_num_batched_tokens;
    Interval others;  // stages that the last step still has to go through
    const auto add = [&](const std::vector<StepGroup>& groups, int64_t times, bool shown) {
      const StagedStep s(prompts_, groups, StepLaunch::kHost);
      f.ttft = sum(f.ttft, s.slowest(), static_cast<double>(times));
      if (prompts_.drafter != nullptr)
        f.ttft = sum(f.ttft, prompts_.drafter->pass(groups), static_cast<double>(times));
      others = sum(s.through(), s.slowest(), -1);
      f.communication_s += s.send_s() * static_cast<double>(times);
      std::vector<KernelForecast> rows = s.rows(*names_);
      add_kernels(f, rows, "prefill", times);
      if (shown) f.prefill = s.describe("prefill", std::move(rows));
    };
    if (o_.prompt <= chunk) {
      add({{together, o_.prompt, 0}}, batch / together, true);
      if (const int64_t rest = batch % together; rest > 0) add({{rest, o_.prompt, 0}}, 1, false);
    } else {
      for (int64_t past = 0; past < o_.prompt; past += chunk)
        add({{1, std::min(chunk, o_.prompt - past), past}}, batch, past + chunk >= o_.prompt);
    }
    f.ttft = sum(f.ttft, others, 1);
  }

  /// The number of cached tokens that represents a part of the output, from `first` to `last`: the
  /// middle, or a value close to it for which the keys fill whole blocks of the cache, as in the
  /// measurements.
  static int64_t middle_of(int64_t first, int64_t last) {
    constexpr int64_t kBlock = 16;
    const int64_t middle = first + (last - first) / 2;
    const int64_t whole = (middle + 1 + kBlock / 2) / kBlock * kBlock - 1;
    return whole >= first && whole <= last ? whole : middle;
  }

  /// A pipeline divides the sequences into as many batches as it has stages, all in flight. With
  /// drafts, a step writes several tokens.
  void decode(GenerationForecast& f) const {
    const Drafter* drafter = served_.drafter.get();
    const double each = tokens_per_step(o_.deployment.speculation);
    const int64_t after_first = std::max<int64_t>(1, o_.output - 1);
    const auto steps = static_cast<int64_t>(std::ceil(static_cast<double>(after_first) / each));
    const auto written = [&](int64_t step) {  // tokens before the step, of those after the first
      return static_cast<int64_t>(static_cast<double>(step) * each);
    };
    const int64_t points = std::min(kDecodeParts, steps);
    const int64_t sequences = served_.sequences_of_rank(o_.batch);
    const int64_t batches = std::min(served_.plan.pp, sequences);
    const int64_t together = ceil_divide(sequences, batches);
    Interval total;
    for (int64_t i = 0; i < points; ++i) {
      const int64_t first = i * steps / points, end = (i + 1) * steps / points;
      const int64_t past = middle_of(o_.prompt + written(first), o_.prompt + written(end - 1));
      const StagedStep s(served_, {{together, 1 + o_.deployment.speculation.tokens, past}},
                         o_.execution.cuda_graphs ? StepLaunch::kCudaGraph : StepLaunch::kHost);
      Interval round = s.round(batches);
      if (drafter != nullptr) {
        const Interval draft = drafter->draft(together, past);
        round = sum(round, draft, static_cast<double>(batches));
        if (i == points / 2) describe_drafts(f, draft);
      }
      f.course.push_back({past, round});
      total = sum(total, round, static_cast<double>(end - first));
      std::vector<KernelForecast> rows = s.rows(*names_);
      if (o_.output > 1) {
        add_kernels(f, rows, "decode", checked_multiply(batches, end - first));
        f.communication_s += s.send_s() * static_cast<double>(batches * (end - first));
      }
      if (i == points / 2) f.decode = s.describe("decode", std::move(rows));
    }
    const auto count =
        drafter == nullptr ? static_cast<double>(steps) : static_cast<double>(steps) * each;
    f.tpot = {total.value / count, total.low / count, total.high / count};
  }

  void describe_drafts(GenerationForecast& f, const Interval& time) const {
    const Speculation& s = o_.deployment.speculation;
    const DraftMethodDef& method = draft_method(s);
    f.drafts = {.method = std::string(choice_word(method.method)),
                .model = s.draft_model,
                .tokens = s.tokens,
                .acceptance_rate = acceptance_rate(s),
                .acceptance_source = s.acceptance_rate ? "given" : method.source,
                .tokens_per_step = tokens_per_step(s),
                .time = time,
                .weights_bytes = served_.drafter->weights_bytes()};
  }

  void add_power(GenerationForecast& f) const {
    f.power = power_of({.kernels = f.kernels,
                        .seconds = f.request,
                        .stages = served_.plan.pp,
                        .ranks = f.ranks,
                        .tokens = static_cast<double>(o_.batch * o_.output)},
                       served_.power(), o_);
  }

  static bool is_vision(const KernelForecast& row) {
    return row.phase == std::string_view("vision");
  }

  /// With that of encode workers: a run of the mean number of images, and the wait after it.
  PowerForecast with_encode_workers(const PowerForecast& power,
                                    const GenerationForecast::Serving& serving) const {
    const EncodePoolForecast& pool = *serving.encode_pool;
    const double answers_per_s = serving.steady_or_all().requests_per_s;
    if (pool.busy_share <= 0) return power;
    const int64_t images = std::max<int64_t>(1, std::llround(pool.mean_images));
    const std::vector<KernelForecast> rows = kernels_of_run(*encoders_, images, *names_);
    const double seconds = encoders_->run_s(images) / pool.busy_share;
    const int64_t gpus = checked_multiply(pool.workers, pool.gpus);
    const std::optional<PowerForecast> more = power_of({.kernels = rows,
                                                        .seconds = {seconds, seconds, seconds},
                                                        .ranks = gpus,
                                                        .tokens = static_cast<double>(o_.output),
                                                        .requests = seconds * answers_per_s,
                                                        .warm = true},
                                                       served_.power(), o_);
    return more ? power_of_both({power, serving.gpus - gpus}, {*more, gpus}) : power;
  }

  /// Kernels belong to a rank of each stage; totals are means over the stages.
  void add_totals(GenerationForecast& f) const {
    for (const KernelForecast& k : f.kernels) {
      if (encoders_ != nullptr && is_vision(k)) continue;
      f.flops = checked_add(f.flops, checked_multiply(k.flops, k.count));
      f.bytes = checked_add(f.bytes, checked_multiply(k.bytes, k.count));
      if (k.shape.type == Collective::kName)
        f.communication_s += k.latency_s * static_cast<double>(k.count);
    }
    const int64_t stages = served_.plan.pp;
    f.flops /= stages;
    f.bytes /= stages;
    f.communication_s /= static_cast<double>(stages);
  }

  /// The kernels of another request, with their times.
  GenerationForecast kernels_alone() const {
    GenerationForecast f;
    describe_request(f);
    vision(f);
    prefill(f);
    decode(f);
    return f;
  }

  /// Kernels belong to the rank with the busiest experts; the mean rank has the work of an even
  /// load.
  void find_mean_work(GenerationForecast& f) const {
    Request request = o_;
    request.execution.skew_percent = 0;
    const ServedModel served(served_, request);
    std::optional<PrefillWorkers> workers;
    if (workers_ != nullptr) workers.emplace(served);
    const Generation even(served, {.prefill = workers ? &*workers : nullptr, .encode = encoders_},
                          asked_);
    GenerationForecast mean = even.kernels_alone();
    even.add_totals(mean);
    f.flops = mean.flops;
    f.bytes = mean.bytes;
  }

  double utilization(const GenerationForecast& f, double times_per_s) const {
    const double peak =
        device_.matmul_peak(compute_dtype(served_.precision.scheme, served_.dtype()));
    return peak > 0 ? static_cast<double>(f.flops) * times_per_s / peak : 0;
  }

  void serve(GenerationForecast& f) const {
    KnownServer known;
    Server(served_, {.prefill = workers_, .encode = encoders_}, known)
        .add_serving(f, asked_, Advice::kGive);
    if (!f.serving) return;
    f.latency = f.serving->all.e2e.mean;
    // A rank computes for the requests of its server; each data-parallel rank has a share of them.
    const auto shares = static_cast<double>(f.serving->replicas * served_.plan.dp);
    f.utilization_ratio = utilization(f, f.serving->all.requests_per_s / shares);
  }

  /// For the step that communicates for the larger share of its time.
  std::vector<Warning> links(const GenerationForecast& f) const {
    const RankLayout& plan = served_.plan;
    LinkOrigins origins;
    double share = 0;
    for (const StepForecast* step : {&f.prefill, &f.decode}) {
      for (const auto& [limit, part] : step->limits)
        if (limit == limit_name(Limit::kNetwork)) share = std::max(share, part);
      for (const KernelForecast& k : step->kernels)
        origins.unmeasured =
            origins.unmeasured || (k.extrapolated && k.limit == limit_name(Limit::kNetwork));
    }
    if (share <= kNoticedShare) return {};
    const CommGroup node =
        packed_group(std::min(plan.ranks(), plan.cluster.gpus_per_node), plan.cluster);
    origins.one_server =
        node.ranks > 1 && uses_pcie(node, plan.cluster) && !is_path(asked_.parallel.cluster);
    return link_warnings(plan.cluster, plan.ranks(), origins, share);
  }

  void warn(GenerationForecast& f) const {
    std::vector<Warning> warnings;
    add_messages(warnings, WarningCode::kDeviceFile, device_.id, device_.warnings);
    warnings.insert(warnings.end(), f.warnings.begin(), f.warnings.end());
    add_messages(warnings, WarningCode::kModelFile, model_.name, model_.warnings);
    const std::vector<Warning>* const lists[] = {&served_.precision.warnings, &f.prefill.warnings,
                                                 &f.decode.warnings};
    if (f.vision)
      warnings.insert(warnings.end(), f.vision->step.warnings.begin(),
                      f.vision->step.warnings.end());
    for (const std::vector<Warning>* list : lists)
      warnings.insert(warnings.end(), list->begin(), list->end());
    for (Warning& warning : links(f)) warnings.push_back(std::move(warning));
    if (f.serving && !f.serving->keeps_up) {
      const bool trace = f.serving->trace;
      warnings.push_back({WarningCode::kOverloaded, trace ? "trace" : "rate", 0, {}});
      if (!trace) warnings.back().facts.push_back({"rate", f.serving->rate});
      warnings.back().facts.push_back({"answered", f.serving->all.requests_per_s});
    }
    if (std::optional<Warning> idle = idle_backend(o_, device_, f))
      warnings.push_back(*std::move(idle));
    warn_of_idle_prices(warnings, asked_.energy, f.power);
    f.warnings = std::move(warnings);
  }

  std::shared_ptr<TextArena> names_ = std::make_shared<TextArena>();
  const ServedModel& served_;
  const PrefillWorkers* workers_;
  const EncodeWorkers* encoders_;
  const ServedModel& prompts_;  ///< of what computes the prompts
  const Model& model_;
  const Decoder& decoder_;
  const Device& device_;
  const Request& o_;
  const Request& asked_;
};

/// State that all forecasts of a request for prompts need.
struct Prepared {
  Prepared(const Forecaster& forecaster, const ModelRef& model, const GpuRef& gpu,
           const Request& request)
      : whole(with_image_tokens(request, model.content->model)),
        typical(typical_request(whole)),
        served(forecaster, model, gpu, typical) {
    if (request.deployment.prefill.workers > 0) workers.emplace(served);
    if (request.deployment.encode.workers > 0) encoders.emplace(served);
  }
  Generation llm() const {
    const OtherPools others{.prefill = workers ? &*workers : nullptr,
                            .encode = encoders ? &*encoders : nullptr};
    return {served, others, whole};
  }

  Request whole;    ///< with the tokens of images
  Request typical;  ///< with the lengths of one typical request
  ServedModel served;
  std::optional<PrefillWorkers> workers;
  std::optional<EncodeWorkers> encoders;
};

}  // namespace

Result run_generation(const Inquiry& inquiry) {
  const Request& request = inquiry.request;
  GenerationForecast forecast =
      Prepared(inquiry.forecaster, inquiry.model, inquiry.gpu(), request).llm().run();
  forecast.used.prompt = request.prompt;
  forecast.used.load.max_prompt = request.load.max_prompt;
  forecast.used.load.trace = request.load.trace;
  if (inquiry.detail != Detail::kNumbers) warn_of_slower_precision(forecast, inquiry);
  return forecast;
}

std::optional<PowerForecast> power_under_load(const ServedModel& served, const OtherPools& others,
                                              const Request& asked,
                                              const GenerationForecast::Serving& serving) {
  return Generation(served, others, asked).power_under_load(serving);
}

GenerationForecast forecast_alone(const Forecaster& forecaster, const ModelRef& model,
                                  const GpuRef& gpu, const Request& request) {
  check_request(request);
  return Prepared(forecaster, model, gpu, request).llm().alone();
}

}  // namespace tilecast
