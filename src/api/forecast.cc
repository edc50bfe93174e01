// Where everything is wired: model → graph → passes → kernels → times → totals.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <unordered_map>

#include "api/internal.h"
#include "base/checked.h"
#include "base/file.h"
#include "base/text.h"
#include "devices/registry.h"
#include "memory/plan.h"
#include "ops/builder.h"
#include "ops/op_def.h"
#include "ops/shapes.h"
#include "passes/passes.h"
#include "sim/stream.h"
#include "tilecast/error.h"

namespace tilecast {
namespace {

// CUDA context, library code and handles of a PyTorch process before the first tensor (guess: what
// nvidia-smi shows for such processes is 0.3 to 0.6 GiB; the measurement kit will settle it).
constexpr int64_t kFrameworkBytes = int64_t{450} << 20;

// cuBLAS workspace that PyTorch sets up for each handle and stream: CUBLAS_WORKSPACE_CONFIG
// ":4096:2:16:8" (PyTorch 2.1, aten/src/ATen/cuda/CublasHandlePool.cpp).
constexpr int64_t kWorkspaceBytes = (int64_t{2} * 4096 + int64_t{8} * 16) * 1024;

struct KernelHash {
  size_t operator()(const Kernel& k) const {
    uint64_t hash = 14695981039346656037ull;
    for (int64_t v :
         {static_cast<int64_t>(k.family) * 64 + static_cast<int64_t>(k.dtype),
          static_cast<int64_t>(k.op), k.batch, k.m, k.n, k.k, k.read_bytes, k.write_bytes})
      hash = (hash ^ static_cast<uint64_t>(v)) * 1099511628211ull;
    return hash;
  }
};

/// A node's kernel and how often it runs.
struct Launch {
  const Node* node;
  size_t kernel;  ///< index into the distinct kernels
  int64_t count;
  size_t segment;
};

struct Lowered {
  std::vector<Kernel> distinct;
  std::vector<Launch> launches;
};

Lowered lower(const Graph& graph, Software software) {
  Lowered result;
  std::unordered_map<Kernel, size_t, KernelHash> index;
  index.reserve(2 * graph.nodes.size());
  std::vector<Kernel> kernels;
  for (size_t s = 0; s < graph.segments.size(); ++s) {
    const Segment& segment = graph.segments[s];
    for (int32_t i = 0; i < segment.node_count; ++i) {
      const Node& node = graph.nodes[static_cast<size_t>(segment.first_node + i)];
      kernels.clear();
      lower_node(graph, node, kernels);
      for (Kernel& kernel : kernels) {
        kernel.software = software;
        const auto [it, fresh] = index.emplace(kernel, result.distinct.size());
        if (fresh) result.distinct.push_back(kernel);
        result.launches.push_back({&node, it->second, segment.repeat, s});
      }
    }
  }
  return result;
}

Optimizer optimizer_of(const ForecastOptions& options) {
  if (options.optimizer == "sgd") return Optimizer::kSgd;
  if (options.optimizer == "adam") return Optimizer::kAdam;
  if (options.optimizer == "adamw") return Optimizer::kAdamW;
  return Optimizer::kNone;
}

void check_options(const Model& model, const ForecastOptions& options, int64_t seq) {
  if (options.dp * options.tp * options.pp * options.microbatches != 1)
    throw Error(ErrorKind::kUnsupported,
                "forecasts over several GPUs are not available yet; leave --dp, --tp, --pp and "
                "--microbatches at 1");
  if (options.optimizer != "none" && options.mode != Mode::kTraining)
    throw Error(ErrorKind::kInput, "--optimizer needs --mode training");
  if (model.max_positions && seq > *model.max_positions)
    throw Error(ErrorKind::kInput,
                fmt::format("{}: a sequence of {} tokens is longer than the model's {} positions; "
                            "use --seq {} or less",
                            model.name, seq, *model.max_positions, *model.max_positions));
}

Graph build_graph(const Model& model, const ForecastOptions& options, int64_t seq) {
  const bool training = options.mode == Mode::kTraining;
  Graph graph = model.build({.batch = options.batch,
                             .seq = seq,
                             .dtype = parse_dtype(options.dtype, "--dtype"),
                             .training = training});
  graph.name = model.name;
  if (training) add_backward(graph);
  if (options.fusion == "pointwise") fuse_pointwise(graph);
  add_optimizer(graph, optimizer_of(options));
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

KernelForecast describe(const Kernel& kernel, const KernelTime& time) {
  KernelForecast row;
  row.op = op_def(kernel.op).name;
  row.family = kernel_family_name(kernel.family);
  row.dtype = precision_name(kernel);
  row.shape = {kernel.batch, kernel.m, kernel.n, kernel.k};
  row.latency_s = time.seconds;
  row.low_s = time.low_s;
  row.high_s = time.high_s;
  row.flops = kernel.flops;
  row.bytes = kernel.bytes();
  row.limit = limit_name(time.limit);
  if (time.tile) row.tile = {time.tile->m, time.tile->n};
  row.waves = time.waves;
  row.utilization_ratio = time.utilization_ratio;
  row.predictor = time.predictor;
  row.extrapolated = time.extrapolated;
  row.extrapolated_feature = time.extrapolated_feature;
  return row;
}

void add_totals(Forecast& forecast) {
  for (const KernelForecast& row : forecast.kernels) {
    const auto count = static_cast<double>(row.count);
    forecast.kernels_s += row.latency_s * count;
    forecast.flops = checked_add(forecast.flops, checked_multiply(row.flops, row.count));
    forecast.bytes = checked_add(forecast.bytes, checked_multiply(row.bytes, row.count));
  }
}

/// Runs the kernels on a stream that the host feeds; a phase lasts from the end of the one before.
void add_timeline(Forecast& forecast, const Lowered& lowered, const std::vector<KernelTime>& times,
                  double launch_s) {
  HostFedStream stream(launch_s);
  const auto time_of = [&](Phase phase) -> double& {
    return phase == Phase::kForward    ? forecast.forward_s
           : phase == Phase::kBackward ? forecast.backward_s
                                       : forecast.optimizer_s;
  };
  const std::vector<Launch>& launches = lowered.launches;
  for (size_t i = 0; i < launches.size();) {
    const Launch& first = launches[i];
    HostFedStream::Sequence sequence;
    for (; i < launches.size() && launches[i].segment == first.segment &&
           launches[i].node->phase == first.node->phase;
         ++i)
      stream.append(sequence, times[launches[i].kernel].seconds);
    const double before = stream.end_s();
    stream.run(sequence, first.count);
    time_of(first.node->phase) += stream.end_s() - before;
  }
  forecast.latency_s = stream.end_s();
  forecast.host_wait_s = std::max(0.0, forecast.latency_s - forecast.kernels_s);
}

/// The interval of the sum: of each predictor's errors a share is common to all its kernels and
/// adds up, the rest differs from kernel to kernel and partly cancels, as the errors of different
/// predictors do.
void add_interval(Forecast& forecast, const Lowered& lowered,
                  const std::vector<KernelTime>& times) {
  struct Deviation {
    double low = 0, high = 0;
  };
  std::vector<double> counts(times.size(), 0);
  for (const Launch& launch : lowered.launches)
    counts[launch.kernel] += static_cast<double>(launch.count);
  std::map<std::string_view, Deviation> common;
  double low = 0, high = 0;
  for (size_t i = 0; i < times.size(); ++i) {
    const KernelTime& t = times[i];
    const double down = (t.seconds - t.low_s) * counts[i];
    const double up = (t.high_s - t.seconds) * counts[i];
    const double share = std::sqrt(t.common_share);
    common[t.predictor].low += share * down;
    common[t.predictor].high += share * up;
    low += (1 - t.common_share) * down * down;
    high += (1 - t.common_share) * up * up;
  }
  for (const auto& [predictor, deviation] : common) {
    low += deviation.low * deviation.low;
    high += deviation.high * deviation.high;
  }
  forecast.latency_low_s = forecast.latency_s - std::sqrt(low);
  forecast.latency_high_s = forecast.latency_s + std::sqrt(high);
}

void add_warnings(Forecast& forecast, const Device& device) {
  forecast.warnings.insert(forecast.warnings.end(), device.warnings.begin(), device.warnings.end());
  double outside = 0;
  for (const KernelForecast& row : forecast.kernels) {
    if (row.extrapolated) outside += row.latency_s * static_cast<double>(row.count);
  }
  if (outside > 0.05 * forecast.kernels_s)
    forecast.warnings.push_back(fmt::format(
        "{:.0f} % of the time is extrapolated beyond what the networks were trained on; "
        "the interval is widened",
        100 * outside / forecast.kernels_s));
  if (forecast.host_wait_s > 0.05 * forecast.latency_s)
    forecast.warnings.push_back(fmt::format(
        "the GPU waits for the host {:.0f} % of the time: many short kernels; CUDA graphs or "
        "compilation would help (--host-launch-us 0 forecasts without the host)",
        100 * forecast.host_wait_s / forecast.latency_s));
  if (!forecast.memory.fits)
    forecast.warnings.push_back(fmt::format("does not fit: {} needed, {} has {}",
                                            format_bytes(forecast.memory.peak_bytes), device.id,
                                            format_bytes(device.memory_bytes)));
}

}  // namespace

const std::string& ModelRef::name() const { return content->model.name; }
const std::string& GpuRef::id() const { return content->device.id; }

ModelRef load_model_ref(const std::string& name_or_path) {
  ModelRef ref;
  ref.content =
      std::make_shared<const ModelRef::Content>(ModelRef::Content{load_model(name_or_path)});
  return ref;
}

GpuRef load_gpu_ref(const std::string& name_or_path) {
  GpuRef ref;
  ref.content = std::make_shared<const GpuRef::Content>(GpuRef::Content{find_device(name_or_path)});
  return ref;
}

Forecaster::Forecaster(const std::string& weights_folder, const std::string& calibration)
    : impl_(std::make_unique<Impl>()) {
  impl_->weights = load_weights(weights_folder);
  if (!calibration.empty())
    impl_->weights.calibration = parse_calibration(read_file(calibration), calibration);
  impl_->learned = make_learned_predictor(impl_->weights);
  impl_->roofline = make_roofline_predictor();
}

Forecaster::~Forecaster() = default;

Forecast Forecaster::forecast(const ModelRef& model_ref, const GpuRef& gpu,
                              const ForecastOptions& options) const {
  const Model& model = model_ref.content->model;
  const Device& device = gpu.content->device;
  const int64_t seq = options.seq.value_or(std::max<int64_t>(1, model.default_seq));
  check_options(model, options, seq);
  const Graph graph = build_graph(model, options, seq);
  const Lowered lowered = lower(graph, *find_software(options.software));
  std::vector<KernelTime> times(lowered.distinct.size());
  impl_->predictor(options.predictor).predict(lowered.distinct, device, times);

  Forecast forecast;
  forecast.model = model.name;
  forecast.gpu = device.id;
  forecast.gpu_name = device.name;
  forecast.mode = options.mode == Mode::kTraining ? "training" : "inference";
  forecast.batch = options.batch;
  forecast.seq = seq;
  forecast.dtype = options.dtype;
  forecast.parameters = graph.parameter_count();
  forecast.kernels.reserve(lowered.launches.size());
  for (const Launch& launch : lowered.launches) {
    KernelForecast row = describe(lowered.distinct[launch.kernel], times[launch.kernel]);
    row.name = launch.node->name;
    row.phase = phase_name(launch.node->phase);
    row.count = launch.count;
    forecast.kernels.push_back(std::move(row));
  }
  add_totals(forecast);
  // The baseline is the data sheet alone.
  add_timeline(forecast, lowered, times,
               options.predictor == "roofline" ? 0 : options.host_launch_s);
  add_interval(forecast, lowered, times);
  const double peak = device.matmul_peak(parse_dtype(options.dtype, "--dtype"));
  if (forecast.latency_s > 0 && peak > 0)
    forecast.utilization_ratio = static_cast<double>(forecast.flops) / (forecast.latency_s * peak);
  forecast.memory = forecast_memory(graph, device);
  add_warnings(forecast, device);
  return forecast;
}

std::optional<int64_t> Forecaster::largest_batch(const ModelRef& model_ref, const GpuRef& gpu,
                                                 ForecastOptions options) const {
  const Model& model = model_ref.content->model;
  if (model.default_seq == 0) return std::nullopt;
  const int64_t seq = options.seq.value_or(model.default_seq);
  const auto fits = [&](int64_t batch) {
    options.batch = batch;
    try {
      return forecast_memory(build_graph(model, options, seq), gpu.content->device).fits;
    } catch (const Error& error) {
      if (error.kind() == ErrorKind::kInput) return false;  // beyond 64 bits
      throw;
    }
  };
  if (!fits(1)) return std::nullopt;
  int64_t low = 1;
  int64_t high = 2;
  constexpr int64_t kLargest = int64_t{1} << 31;
  while (high < kLargest && fits(high)) {
    low = high;
    high *= 2;
  }
  while (high - low > 1) {
    const int64_t middle = low + (high - low) / 2;
    (fits(middle) ? low : high) = middle;
  }
  return low;
}

std::vector<KernelForecast> Forecaster::kernel(const std::string& op, const GpuRef& gpu,
                                               const std::string& dtype, const KernelSizes& sizes,
                                               const std::string& predictor,
                                               const KernelSettings& settings) const {
  KernelShape shape{sizes.batch, sizes.m, sizes.n, sizes.k};
  shape.heads = settings.heads;
  shape.kv_heads = settings.kv_heads;
  shape.window = settings.window;
  shape.causal = settings.causal;
  if (!settings.kv_dtype.empty()) shape.kv_dtype = parse_dtype(settings.kv_dtype, "--kv-dtype");
  if (!settings.scheme.empty()) shape.scheme = parse_scheme(settings.scheme, "--scheme");
  shape.experts = settings.experts;
  shape.chosen = settings.chosen;
  shape.ranks = settings.ranks;
  shape.skew_percent = settings.skew_percent;
  std::vector<Kernel> kernels = kernels_of_shape(op, parse_dtype(dtype, "--dtype"), shape);
  for (Kernel& kernel : kernels) {
    kernel.software = find_software(settings.software).value_or(Software::kPyTorch);
    kernel.warm = settings.warm;
  }
  std::vector<KernelTime> times(kernels.size());
  impl_->predictor(predictor).predict(kernels, gpu.content->device, times);
  std::vector<KernelForecast> rows;
  for (size_t i = 0; i < kernels.size(); ++i) {
    rows.push_back(describe(kernels[i], times[i]));
    rows.back().name = op;
    rows.back().phase = "forward";
  }
  return rows;
}

}  // namespace tilecast
