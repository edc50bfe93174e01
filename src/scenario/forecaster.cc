// The façade's forecaster: weights and predictors, and what is asked of them beside scenarios.

#include "base/file.h"
#include "base/text.h"
#include "ops/op_def.h"
#include "ops/sizes.h"
#include "predict/explain.h"
#include "request/access.h"
#include "scenario/internal.h"
#include "scenario/parallel/parallel.h"
#include "scenario/parallel/rank_layout.h"
#include "scenario/pass/pass.h"
#include "scenario/power.h"
#include "scenario/scenario.h"
#include "scenario/timed_pass.h"
#include "tilecast/error.h"

namespace tilecast {

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

Forecast Forecaster::forecast(const ModelRef& model, const GpuRef& gpu,
                              const Request& request) const {
  check_is_pass(request);
  return std::get<Forecast>(ask(*this, model, gpu, request));
}

GenerationForecast forecast_generation(const Forecaster& forecaster, const ModelRef& model,
                                       const GpuRef& gpu, const Request& request) {
  if (request.kind == RequestKind::kPass)
    throw Error(ErrorKind::kInput,
                "expected a request for prompts; use Forecaster::forecast for one pass");
  return std::get<GenerationForecast>(ask(forecaster, model, gpu, request, Detail::kNumbers));
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
  const PassSetup setup{model, device, used, precision};
  return parallel_operations(setup,
                             timing_setup(setup, impl_->predictor(used.execution.predictor)));
}

std::optional<int64_t> Forecaster::largest_batch(const ModelRef& model_ref, const GpuRef& gpu,
                                                 const Request& request) const {
  const Model& model = model_ref.content->model;
  const Device& device = gpu.content->device;
  check_pass(request);
  if (!model.takes_batch()) return std::nullopt;
  const auto [used, precision] = completed_pass(model, device, request);
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

namespace {

/// Kernels of one operator, their conditions and times.
struct TimedKernels {
  std::vector<Kernel> kernels;
  Conditions conditions;
  std::vector<KernelTime> times;
  std::vector<KernelTime> unlimited;  ///< before power holds the clock: what laws explain
};

TimedKernels timed_kernels(const std::string& op, const Device& device, const std::string& dtype,
                           const std::vector<GivenSize>& sizes, const KernelOptions& options,
                           const Predictor& predictor) {
  Request checked;
  set_option(checked, *find_option("clocks", RequestKind::kPass), options.clocks);
  TimedKernels timed{
      kernels_of_sizes(op, parse_dtype(dtype, "`dtype`"), size_list(op_def(require_op(op)), sizes)),
      {.software = parse_software(options.software, "`software`"),
       .caches = options.warm ? Caches::kWarm : Caches::kCold,
       .clock_hz = clock_of(options.clocks, device)},
      {},
      {}};
  timed.times.resize(timed.kernels.size());
  predictor.predict(timed.kernels, device, timed.conditions, timed.times);
  timed.unlimited = timed.times;
  complete_clocks(checked, device, predictor.laws(), "boost");
  const PowerTerms power{device, predictor.laws().power, checked.execution, std::nullopt};
  if (const std::optional<BoardPower> board = power.board(); board && power.holds()) {
    add_energies(*board, timed.kernels, timed.conditions, 1, timed.times);
    const std::vector<double> counts(timed.kernels.size(), 1);
    hold_power(*board, {timed.kernels, counts}, timed.times);
  }
  return timed;
}

std::vector<KernelForecast> rows_of(const TimedKernels& timed) {
  std::vector<KernelForecast> rows;
  for (size_t i = 0; i < timed.kernels.size(); ++i) {
    KernelForecast& row = rows.emplace_back(describe(timed.kernels[i], timed.times[i]));
    row.name = row.op;
    row.phase = "forward";
  }
  return rows;
}

/// Where rows of the same software and precision are from.
std::string measured_text(const NearestRows& rows) {
  if (rows.on_device) return "device";
  if (rows.in_class) return "class";
  return rows.anywhere ? "other devices" : "nothing";
}

KernelExplanation explanation_of(const Kernel& kernel, const KernelTime& time,
                                 const Explanation& why) {
  KernelExplanation row{.name = std::string(op_def(kernel.op).name), .roofline_s = why.roofline_s};
  if (time.seconds > 0) {
    row.flops_per_s = static_cast<double>(kernel.flops) / time.seconds;
    row.bytes_per_s = static_cast<double>(kernel.bytes()) / time.seconds;
  }
  if (why.clock_hz > 0) row.clock_hz = why.clock_hz * time.energy.clock_share;
  if (why.law) {
    row.law_s = why.law->seconds;
    row.start_s = why.law->start_s;
    row.memory_s = why.law->memory_s;
    row.compute_s = why.law->compute_s;
    row.busy_ratio = why.law->busy;
    row.power_s = why.power_s;
    row.learned_factor = why.learned_factor;
    row.measured = why.nearest ? measured_text(*why.nearest) : "nothing";
  }
  if (why.nearest) {
    row.nearest_gpu = why.nearest->device;
    row.similarity = why.nearest->similarity;
    row.outside = why.nearest->outside;
  }
  return row;
}

}  // namespace

std::vector<KernelForecast> Forecaster::kernel(const std::string& op, const GpuRef& gpu,
                                               const std::string& dtype,
                                               const std::vector<GivenSize>& sizes,
                                               const KernelOptions& options) const {
  return rows_of(timed_kernels(op, gpu.content->device, dtype, sizes, options,
                               impl_->predictor(parse_predictor(options.predictor))));
}

KernelAnswer Forecaster::explained_kernel(const std::string& op, const GpuRef& gpu,
                                          const std::string& dtype,
                                          const std::vector<GivenSize>& sizes,
                                          const KernelOptions& options) const {
  const Device& device = gpu.content->device;
  const TimedKernels timed = timed_kernels(op, device, dtype, sizes, options,
                                           impl_->predictor(parse_predictor(options.predictor)));
  KernelAnswer answer;
  answer.kernels = rows_of(timed);
  answer.roofs = roofs_of(answer.kernels, device);
  for (size_t i = 0; i < timed.kernels.size(); ++i) {
    const Kernel& kernel = timed.kernels[i];
    const KernelTime& time = timed.times[i];
    answer.explanations.push_back(explanation_of(
        kernel, time,
        explain(kernel, device, timed.conditions, timed.unlimited[i], impl_->weights)));
  }
  return answer;
}

}  // namespace tilecast
