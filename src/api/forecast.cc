// Forecasts of one pass: model → graph → passes → kernels → times → totals.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "api/fit.h"
#include "api/generation/cache_pool.h"
#include "api/generation/expert_precision.h"
#include "api/internal.h"
#include "api/parallel/adapter_remarks.h"
#include "api/parallel/parallel.h"
#include "api/parallel/parallel_plan.h"
#include "api/pass/model_facts.h"
#include "api/pass/pass.h"
#include "api/pass/pass_images.h"
#include "api/precision.h"
#include "api/recommendation/recommendation.h"
#include "api/timing.h"
#include "api/warnings.h"
#include "base/checked.h"
#include "base/file.h"
#include "base/text.h"
#include "memory/plan.h"
#include "ops/op_def.h"
#include "ops/sizes.h"
#include "passes/passes.h"
#include "request/access.h"
#include "tilecast/error.h"

namespace tilecast {
namespace {

/// Fills in the rows, times and work.
void add_times(Forecast& forecast, const TimedPass& pass) {
  const auto names = std::make_shared<TextArena>();
  forecast.kernels = describe_events(pass.timeline, pass.program(), pass.times, *names);
  forecast.names = names;
  for (const KernelForecast& row : forecast.kernels) {
    const auto count = static_cast<double>(row.count);
    forecast.kernels_s += row.latency_s * count;
    forecast.flops = checked_add(forecast.flops, checked_multiply(row.flops, row.count));
    forecast.bytes = checked_add(forecast.bytes, checked_multiply(row.bytes, row.count));
  }
  forecast.latency_s = pass.totals.seconds;
  forecast.latency_low_s = pass.totals.low_s;
  forecast.latency_high_s = pass.totals.high_s;
  forecast.host_wait_s = pass.totals.host_wait_s;
  forecast.forward_s = pass.timeline.phase_s(Phase::kForward);
  forecast.backward_s = pass.timeline.phase_s(Phase::kBackward);
  forecast.optimizer_s = pass.timeline.phase_s(Phase::kOptimizer);
}

/// Fills in the request and the defaults that were used.
void describe_request(Forecast& forecast, const Request& used, const Precision& precision) {
  forecast.mode = choice_name(used.mode);
  forecast.batch = used.batch;
  forecast.seq = *used.seq;
  forecast.dtype = precision.name;
  forecast.dtype_source = precision.source;
  forecast.used = used;
  forecast.used.execution.dtype = precision.name;
}

}  // namespace

PredictorKind parse_predictor(const std::string& name) {
  Request request;
  set_option(request, *find_option("predictor", RequestKind::kPass), name);
  return request.execution.predictor;
}

Forecaster::Forecaster(const std::string& weights_folder, const std::string& calibration)
    : impl_(std::make_unique<Impl>()) {
  impl_->weights = load_weights(weights_folder);
  if (!calibration.empty())
    impl_->weights.calibration = parse_calibration(read_file(calibration), printable(calibration));
  impl_->learned = make_learned_predictor(impl_->weights);
  impl_->roofline = make_roofline_predictor();
}

Forecaster::~Forecaster() = default;

namespace {

/// The ranks of a forecast, if there is only one.
ParallelForecast on_one_rank(const Forecast& f, const Request& used) {
  const Cluster cluster = find_cluster(used.parallel.cluster);
  return {.cluster = cluster.id,
          .cluster_name = cluster.name,
          .micro_batch_size = used.batch,
          .stages = {{.forward_s = f.forward_s,
                      .backward_s = f.backward_s,
                      .optimizer_s = f.optimizer_s,
                      .compute_s = f.latency_s,
                      .weights_bytes = f.memory.weights_bytes,
                      .gradients_bytes = f.memory.gradients_bytes,
                      .optimizer_bytes = f.memory.optimizer_bytes,
                      .activations_bytes = f.memory.activations_bytes,
                      .peak_bytes = f.memory.peak_bytes}}};
}

/// One rank, one micro-batch.
void forecast_one_rank(Forecast& forecast, std::shared_ptr<const PassWork> work,
                       const PassSetup& setup, const TimingSetup& timing) {
  const auto& [model, device, used, precision] = setup;
  const TimedPass pass = time_pass(std::move(work), timing);
  forecast.parameters = pass.graph().parameter_count();
  forecast.input = input_text(model, pass.graph(), forecast.seq);
  add_times(forecast, pass);
  std::vector<Warning>& warnings = forecast.warnings;
  add_messages(warnings, WarningCode::kModelFile, model.name,
               unmapped_operators({{pass.timeline, pass.program()}}));
  add_warning(warnings, unmeasured_operators({{pass.timeline, pass.program()}}));
  add_messages(warnings, WarningCode::kModelFile, model.name,
               adapter_remarks(pass.graph(), used, precision));
  add_warning(warnings, slower_experts("", pass.graph(), pass.program(), pass.times,
                                       timing.predictor, device, timing.conditions));
  add_messages(warnings, WarningCode::kDeviceFile, device.id, device.warnings);
  add_warning(warnings, extrapolation_warning("", pass.timeline, pass.times));
  add_warning(warnings, no_model_warning("", forecast.kernels));
  add_warning(warnings, host_wait_warning("", pass.totals.host_wait_s, pass.totals.seconds));
  forecast.memory = forecast_memory(pass.graph(), pass.work->memory, setup);
  if (!used.parallel.cluster.empty()) forecast.parallel = on_one_rank(forecast, used);
}

void warn_of_shortage(Forecast& forecast, const PassSetup& setup, LargestBatch largest_batch) {
  MemoryForecast& memory = forecast.memory;
  if (forecast.parallel && forecast.parallel->ranks > 1 && is_tight(memory))
    forecast.warnings.push_back(tight_memory(memory, setup.device));
  if (memory.fits) return;
  Shortage shortage{.needed_bytes = memory.peak_bytes,
                    .usable_bytes = visible_bytes(setup.device),
                    .largest_batch = {}};
  // A graph file fixes its batch, so there is no largest one.
  if (setup.model.takes_batch() && !forecast.parallel && largest_batch == LargestBatch::kFind) {
    memory.largest_batch =
        largest_fitting_batch(setup, BatchBytes{setup.request.batch, memory.peak_bytes});
    shortage.largest_batch = memory.largest_batch.value_or(0);
  }
  forecast.warnings.push_back(does_not_fit(shortage, setup.device));
}

}  // namespace

Forecast Forecaster::forecast(const ModelRef& model, const GpuRef& gpu,
                              const Request& request) const {
  return forecast_pass(*this, model, gpu, request, LargestBatch::kFind);
}

Forecast forecast_pass(const Forecaster& forecaster, const ModelRef& model_ref, const GpuRef& gpu,
                       const Request& request, LargestBatch largest_batch, BatchPasses* batches) {
  const Model& model = model_ref.content->model;
  const Device& device = gpu.content->device;
  const auto [used, precision] = checked_pass(model, device, request);
  const PassSetup setup{model, device, used, precision};
  const TimingSetup timing{.execution = used.execution,
                           .predictor = forecaster.impl().predictor(used.execution.predictor),
                           .device = device,
                           .conditions = conditions_of(used.execution, device)};
  Forecast forecast;
  forecast.model = model.name;
  forecast.gpu = device.id;
  forecast.gpu_name = device.name;
  forecast.fixed_shapes = model.default_seq == 0 && !model.open_batch;
  describe_request(forecast, used, precision);
  std::vector<Warning>& warnings = forecast.warnings;
  add_messages(warnings, WarningCode::kModelFile, model.name, model.warnings);
  if (model.remarks)
    add_messages(warnings, WarningCode::kModelFile, model.name,
                 model.remarks(graph_request(used, precision)));
  add_messages(warnings, WarningCode::kModelFile, model.name, tower_remarks(model, used));
  forecast.seq = checked_add(forecast.seq, image_tokens(model, used));
  warnings.insert(warnings.end(), precision.warnings.begin(), precision.warnings.end());
  if (is_parallel(used)) {
    add_messages(warnings, WarningCode::kDeviceFile, device.id, device.warnings);
    if (model.recommendation) {
      forecast_recommendation(forecast, setup, timing);
    } else {
      forecast_parallel(forecast, setup, timing);
    }
  } else {
    PassCache& cache = forecaster.impl().passes;
    forecast_one_rank(forecast,
                      batches != nullptr ? batches->get(model_ref, used, precision)
                                         : cache.get(model_ref, used, precision),
                      setup, timing);
  }
  const double peak = device.matmul_peak(compute_dtype(precision.scheme, precision.dtype));
  if (forecast.latency_s > 0 && peak > 0)
    forecast.utilization_ratio = static_cast<double>(forecast.flops) / (forecast.latency_s * peak);
  warn_of_shortage(forecast, setup, largest_batch);
  return forecast;
}

std::vector<StepOperation> Forecaster::step_operations(const ModelRef& model_ref, const GpuRef& gpu,
                                                       const Request& request) const {
  const Model& model = model_ref.content->model;
  const Device& device = gpu.content->device;
  const auto [used, precision] = checked_pass(model, device, request);
  if (!is_parallel(used))
    throw Error(ErrorKind::kInput, "operations of a step need several ranks or micro-batches");
  if (model.recommendation)
    throw Error(ErrorKind::kUnsupported,
                model.name + ": the operations of a step of a recommendation model are not listed");
  return parallel_operations({model, device, used, precision},
                             {.execution = used.execution,
                              .predictor = impl_->predictor(used.execution.predictor),
                              .device = device,
                              .conditions = conditions_of(used.execution, device)});
}

std::optional<int64_t> Forecaster::largest_batch(const ModelRef& model_ref, const GpuRef& gpu,
                                                 const Request& request) const {
  const Model& model = model_ref.content->model;
  const Device& device = gpu.content->device;
  check_pass(request);
  if (!model.takes_batch()) return std::nullopt;
  Request used = request;
  used.seq = request.seq.value_or(std::max<int64_t>(1, model.default_seq));
  const Precision precision = resolve_precision(model, device, precision_request(request));
  return largest_fitting_batch({model, device, used, precision}, std::nullopt);
}

/// Converts texts to the types that the operator declares. Unknown names are kept; the operator
/// reports them later.
static SizeList size_list(const OpDef& op, const std::vector<GivenSize>& sizes) {
  SizeList list;
  for (const GivenSize& size : sizes) {
    const auto* number = std::get_if<int64_t>(&size.value);
    const SizeDef* def = find_size(op, size.name);
    list.push_back(
        {size.name, def == nullptr || number != nullptr
                        ? AttributeValue(number == nullptr ? 0 : *number)
                        : parse_value(def->type, std::get<std::string>(size.value), size.name)});
  }
  return list;
}

std::vector<KernelForecast> Forecaster::kernel(const std::string& op, const GpuRef& gpu,
                                               const std::string& dtype,
                                               const std::vector<GivenSize>& sizes,
                                               const KernelOptions& options) const {
  const Predictor& predictor = impl_->predictor(parse_predictor(options.predictor));
  Request checked;
  set_option(checked, *find_option("clocks", RequestKind::kPass), options.clocks);
  const std::vector<Kernel> kernels =
      kernels_of_sizes(op, parse_dtype(dtype, "`dtype`"), size_list(op_def(require_op(op)), sizes));
  const Conditions conditions{.software = parse_software(options.software, "`software`"),
                              .caches = options.warm ? Caches::kWarm : Caches::kCold,
                              .clock_hz = clock_of(options.clocks, gpu.content->device)};
  std::vector<KernelTime> times(kernels.size());
  predictor.predict(kernels, gpu.content->device, conditions, times);
  std::vector<KernelForecast> rows;
  for (size_t i = 0; i < kernels.size(); ++i) {
    rows.push_back(describe(kernels[i], times[i]));
    rows.back().name = rows.back().op;
    rows.back().phase = "forward";
  }
  return rows;
}

}  // namespace tilecast
