// Where everything is wired: model → graph → passes → kernels → times → totals.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "api/expert_precision.h"
#include "api/fit.h"
#include "api/internal.h"
#include "api/precision.h"
#include "api/timing.h"
#include "api/warnings.h"
#include "base/checked.h"
#include "base/file.h"
#include "base/text.h"
#include "devices/registry.h"
#include "memory/plan.h"
#include "ops/op_def.h"
#include "ops/sizes.h"
#include "passes/passes.h"
#include "request/access.h"
#include "tilecast/error.h"

namespace tilecast {
namespace {

PrecisionRequest precision_request(const Request& request) {
  return {.asked = request.execution.dtype,
          .otherwise = DType::kFp32,  // as the published labels of whole models are
          .training = request.mode == Mode::kTraining};
}

void check_pass(const Request& request) {
  if (request.kind != RequestKind::kPass)
    throw Error(ErrorKind::kInput,
                "expected a request for one pass; forecast_llm takes those for prompts");
  check_request(request);
}

void check_model(const Model& model, const Request& request, int64_t seq) {
  const Execution& e = request.execution;
  if (e.dp != 1 || e.tp != 1 || e.pp != 1 || e.microbatches != 1)
    throw Error(ErrorKind::kUnsupported,
                "forecasts over several GPUs are not available yet; leave `dp`, `tp`, `pp` and "
                "`microbatches` at 1");
  if (model.fixed_dtype && (request.seq || request.batch != 1))
    throw Error(ErrorKind::kInput,
                fmt::format("{}: a graph file fixes its shapes; leave `batch` and `seq` out, or "
                            "change the shapes in the file",
                            model.name));
  if (e.attention == AttentionKind::kFlash && !model.has_fused_attention)
    throw Error(ErrorKind::kUnsupported,
                fmt::format("`attention` flash: '{}' is forecast with eager attention only",
                            model.family.empty() ? model.format : model.family));
  if (model.fixed_seq && request.seq && seq != model.default_seq)
    throw Error(ErrorKind::kInput,
                fmt::format("{}: the config fixes the length at {} tokens; leave `seq` out",
                            model.name, model.default_seq));
  if (model.max_positions && seq > *model.max_positions)
    throw Error(ErrorKind::kInput,
                fmt::format("{}: a sequence of {} tokens is longer than the model's {} positions; "
                            "use `seq` {} or less",
                            model.name, seq, *model.max_positions, *model.max_positions));
}

Graph build_graph(const Model& model, const Request& request, int64_t seq,
                  const Precision& precision) {
  const bool training = request.mode == Mode::kTraining;
  Graph graph =
      model.build({.batch = request.batch,
                   .seq = seq,
                   .dtype = precision.autocast ? DType::kFp32 : precision.dtype,
                   .training = training,
                   .fused_attention = request.execution.attention == AttentionKind::kFlash});
  graph.name = model.name;
  if (precision.autocast) autocast(graph, precision.dtype);
  if (precision.scheme_of) quantize_linears(graph, precision.scheme_of);
  if (training) add_backward(graph);
  if (request.execution.fusion == Fusion::kPointwise) fuse_pointwise(graph);
  // fp16's gradients are kept from vanishing by a GradScaler; bf16 needs none.
  add_optimizer(graph, {.optimizer = request.optimizer,
                        .scaled_gradients = precision.autocast && precision.dtype == DType::kFp16});
  return graph;
}

MemoryForecast forecast_memory(const Graph& graph, const Device& device) {
  const MemoryPlan plan = plan_memory(graph);
  MemoryForecast memory;
  memory.weights_bytes = plan.weights_bytes;
  memory.gradients_bytes = plan.gradients_bytes;
  memory.optimizer_bytes = plan.optimizer_bytes;
  memory.activations_bytes = checked_add(plan.activations_bytes, plan.inputs_bytes);
  memory.workspace_bytes = kWorkspaceBytes;
  memory.framework_bytes = kFrameworkBytes;
  memory.device_bytes = device.memory_bytes;
  for (int64_t part : {memory.weights_bytes, memory.gradients_bytes, memory.optimizer_bytes,
                       memory.activations_bytes, memory.workspace_bytes, memory.framework_bytes})
    memory.peak_bytes = checked_add(memory.peak_bytes, part);
  memory.fits = memory.peak_bytes <= device.memory_bytes;
  return memory;
}

/// nullopt where not even one sequence fits.
std::optional<int64_t> largest_fitting_batch(const Model& model, const Device& device,
                                             Request request, int64_t seq,
                                             const Precision& precision,
                                             std::optional<BatchBytes> too_many) {
  const auto peak_bytes = [&](int64_t batch) {
    request.batch = batch;
    try {
      return forecast_memory(build_graph(model, request, seq, precision), device).peak_bytes;
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::kInput) throw;
      return std::numeric_limits<int64_t>::max();  // beyond 64 bits
    }
  };
  const int64_t largest = largest_within(device.memory_bytes, peak_bytes, too_many);
  return largest == 0 ? std::nullopt : std::optional(largest);
}

void add_totals(Forecast& forecast) {
  for (const KernelForecast& row : forecast.kernels) {
    const auto count = static_cast<double>(row.count);
    forecast.kernels_s += row.latency_s * count;
    forecast.flops = checked_add(forecast.flops, checked_multiply(row.flops, row.count));
    forecast.bytes = checked_add(forecast.bytes, checked_multiply(row.bytes, row.count));
  }
}

}  // namespace

const std::string& ModelRef::name() const { return content->model.name; }
const std::string& GpuRef::id() const { return content->device.id; }
const std::vector<std::string>& GpuRef::warnings() const { return content->device.warnings; }

namespace {

ModelRef ref_of(Model model) {
  ModelRef ref;
  ref.content = std::make_shared<const ModelRef::Content>(ModelRef::Content{std::move(model)});
  return ref;
}

GpuRef ref_of(Device device) {
  GpuRef ref;
  ref.content = std::make_shared<const GpuRef::Content>(GpuRef::Content{std::move(device)});
  return ref;
}

}  // namespace

ModelRef load_model_ref(const std::string& name_or_path) {
  return ref_of(load_model(name_or_path));
}

ModelRef model_from_text(const std::string& text, const std::string& name) {
  return ref_of(import_model(text, printable(name)));
}

GpuRef load_gpu_ref(const std::string& name_or_path) { return ref_of(find_device(name_or_path)); }

GpuRef gpu_from_text(const std::string& text, const std::string& name) {
  return ref_of(parse_device(text, printable(name)));
}

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

Forecast Forecaster::forecast(const ModelRef& model_ref, const GpuRef& gpu,
                              const Request& request) const {
  const Model& model = model_ref.content->model;
  const Device& device = gpu.content->device;
  check_pass(request);
  Execution execution = request.execution;
  execution.software = execution.software.value_or(Software::kPyTorch);
  const int64_t seq = request.seq.value_or(std::max<int64_t>(1, model.default_seq));
  check_model(model, request, seq);
  const Precision precision = resolve_precision(model, device, precision_request(request));
  const Graph graph = build_graph(model, request, seq, precision);
  const Program program = lower(graph);
  const Conditions conditions{.software = *execution.software};
  const Predictor& predictor = impl_->predictor(execution.predictor);
  std::vector<KernelTime> times(program.kernels.size());
  predictor.predict(program.kernels, device, conditions, times);
  // The baseline is the data sheet alone.
  const Timeline timeline =
      run_program(program, times,
                  execution.predictor == PredictorKind::kRoofline ? 0 : execution.host_launch_s);
  const Totals totals = totals_of(timeline, program.kernel_counts(), times);

  Forecast forecast;
  forecast.model = model.name;
  forecast.gpu = device.id;
  forecast.gpu_name = device.name;
  forecast.mode = choice_name(request.mode);
  forecast.batch = request.batch;
  forecast.seq = seq;
  forecast.dtype = precision.name;
  forecast.dtype_source = precision.source;
  forecast.fixed_shapes = model.fixed_dtype.has_value();
  forecast.parameters = graph.parameter_count();
  forecast.used = request;
  forecast.used.seq = seq;
  forecast.used.execution = execution;
  forecast.used.execution.dtype = precision.name;
  forecast.kernels = describe_events(timeline, program, times);
  add_totals(forecast);
  forecast.latency_s = totals.seconds;
  forecast.forward_s = timeline.phase_s(Phase::kForward);
  forecast.backward_s = timeline.phase_s(Phase::kBackward);
  forecast.optimizer_s = timeline.phase_s(Phase::kOptimizer);
  forecast.host_wait_s = totals.host_wait_s;
  forecast.latency_low_s = totals.low_s;
  forecast.latency_high_s = totals.high_s;
  const double peak = device.matmul_peak(multiplied_dtype(precision.scheme, precision.dtype));
  if (forecast.latency_s > 0 && peak > 0)
    forecast.utilization_ratio = static_cast<double>(forecast.flops) / (forecast.latency_s * peak);
  forecast.memory = forecast_memory(graph, device);
  std::vector<Warning>& warnings = forecast.warnings;
  add_messages(warnings, WarningCode::kModelFile, model.name, model.warnings);
  warnings.insert(warnings.end(), precision.warnings.begin(), precision.warnings.end());
  add_warning(warnings, slower_experts("", graph, program, times, predictor, device, conditions));
  add_messages(warnings, WarningCode::kDeviceFile, device.id, device.warnings);
  add_warning(warnings, extrapolation_warning("", timeline, times));
  add_warning(warnings, no_model_warning("", forecast.kernels));
  add_warning(warnings, host_wait_warning("", totals));
  if (MemoryForecast& memory = forecast.memory; !memory.fits) {
    Shortage shortage{.needed_bytes = memory.peak_bytes,
                      .usable_bytes = device.memory_bytes,
                      .largest_batch = {}};
    // A graph file fixes its batch: there is no other to name.
    if (model.default_seq > 0) {
      memory.largest_batch = largest_fitting_batch(model, device, request, seq, precision,
                                                   BatchBytes{request.batch, memory.peak_bytes});
      shortage.largest_batch = memory.largest_batch.value_or(0);
    }
    warnings.push_back(does_not_fit(shortage, device));
  }
  return forecast;
}

std::optional<int64_t> Forecaster::largest_batch(const ModelRef& model_ref, const GpuRef& gpu,
                                                 const Request& request) const {
  const Model& model = model_ref.content->model;
  const Device& device = gpu.content->device;
  check_pass(request);
  if (model.default_seq == 0) return std::nullopt;
  const int64_t seq = request.seq.value_or(model.default_seq);
  const Precision precision = resolve_precision(model, device, precision_request(request));
  return largest_fitting_batch(model, device, request, seq, precision, std::nullopt);
}

/// Texts as the values that the operator's table entry declares; unknown names are left to it.
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
  Request named;
  set_option(named, *find_option("software", RequestKind::kPass), options.software);
  const Predictor& predictor = impl_->predictor(parse_predictor(options.predictor));
  const std::vector<Kernel> kernels =
      kernels_of_sizes(op, parse_dtype(dtype, "--dtype"), size_list(op_def(require_op(op)), sizes));
  const Conditions conditions{.software = *named.execution.software,
                              .caches = options.warm ? Caches::kWarm : Caches::kCold};
  std::vector<KernelTime> times(kernels.size());
  predictor.predict(kernels, gpu.content->device, conditions, times);
  std::vector<KernelForecast> rows;
  for (size_t i = 0; i < kernels.size(); ++i) {
    rows.push_back(describe(kernels[i], times[i]));
    rows.back().name = op;
    rows.back().phase = "forward";
  }
  return rows;
}

}  // namespace tilecast
