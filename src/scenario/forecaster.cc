// The façade's forecaster: weights and predictors, and what is asked of them beside scenarios.

#include "base/file.h"
#include "base/text.h"
#include "ops/op_def.h"
#include "ops/sizes.h"
#include "request/access.h"
#include "scenario/internal.h"
#include "scenario/parallel/parallel.h"
#include "scenario/parallel/parallel_plan.h"
#include "scenario/pass/pass.h"
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

LlmForecast forecast_llm(const Forecaster& forecaster, const ModelRef& model, const GpuRef& gpu,
                         const Request& request) {
  if (request.kind == RequestKind::kPass)
    throw Error(ErrorKind::kInput,
                "expected a request for prompts; use Forecaster::forecast for one pass");
  return std::get<LlmForecast>(ask(forecaster, model, gpu, request, Detail::kNumbers));
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
