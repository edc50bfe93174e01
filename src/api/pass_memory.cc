// Memory of one pass: its peak, the largest batch, and what to change if it does not fit.

#include <algorithm>
#include <limits>

#include "api/cache_pool.h"
#include "api/internal.h"
#include "api/pass.h"
#include "api/remedies.h"
#include "base/checked.h"
#include "memory/plan.h"
#include "memory/stack.h"
#include "request/access.h"
#include "tilecast/error.h"

namespace tilecast {

MemoryParts parts_of(const BytesByUse& bytes) {
  const auto of = [&](MemoryUse use) { return bytes[static_cast<size_t>(use)]; };
  return {.weights_bytes = of(MemoryUse::kWeights),
          .gradients_bytes = of(MemoryUse::kGradients),
          .optimizer_bytes = of(MemoryUse::kOptimizer),
          .activations_bytes = of(MemoryUse::kActivations),
          .temporaries_bytes = of(MemoryUse::kTemporaries),
          .loss_bytes = of(MemoryUse::kLoss),
          .inputs_bytes = of(MemoryUse::kInputs),
          .cache_bytes = of(MemoryUse::kCache)};
}

bool has_large_workspace(const Device& device) {
  const Gpu* const gpu = device.as_gpu();
  if (gpu == nullptr) return false;
  // Consumer cards of Blackwell, without HBM, have compute capability 12.
  const bool hbm = gpu->memory_type >= MemoryType::kHbm2 && gpu->memory_type <= MemoryType::kHbm4;
  return gpu->architecture == Architecture::kHopper ||
         (gpu->architecture == Architecture::kBlackwell && hbm);
}

MemoryForecast forecast_memory(const Graph& graph, const PassSetup& setup) {
  return forecast_memory(graph, plan_memory(graph, {.zero_grad = setup.request.zero_grad}), setup);
}

MemoryForecast forecast_memory(const Graph& graph, const MemoryPlan& plan, const PassSetup& setup) {
  const Device& device = setup.device;
  const SoftwareStack& stack = default_stack();
  MemoryForecast memory;
  memory.weights_bytes = plan.weights_bytes;
  memory.gradients_bytes = plan.gradients_bytes;
  memory.optimizer_bytes = plan.optimizer_bytes;
  memory.activations_bytes = checked_add(plan.activations_bytes, plan.inputs_bytes);
  const bool training = setup.request.mode == Mode::kTraining;
  memory.workspace_bytes = workspace_bytes(stack, has_large_workspace(device), training);
  memory.framework_bytes = framework_bytes(stack, training);
  memory.stack = stack.name;
  memory.device_bytes = device.memory_bytes;
  memory.at_peak = parts_of(plan.peak.by_use);
  memory.peak_bytes =
      checked_add(plan.peak.bytes, checked_add(memory.workspace_bytes, memory.framework_bytes));
  if (plan.peak_node >= 0) {
    const Node& node = graph.nodes[static_cast<size_t>(plan.peak_node)];
    memory.peak_phase = phase_name(node.phase);
    memory.peak_node = node.name;
  }
  memory.margin_bytes = visible_bytes(device) - memory.peak_bytes;
  memory.fits = memory.margin_bytes >= 0;
  return memory;
}

std::optional<int64_t> largest_fitting_batch(const PassSetup& setup,
                                             std::optional<BatchBytes> too_many) {
  Request request = setup.request;
  const auto peak_bytes = [&](int64_t batch) {
    request.batch = batch;
    try {
      const PassSetup other{setup.model, setup.device, request, setup.precision};
      return forecast_memory(build_graph(setup.model, request, setup.precision), other).peak_bytes;
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::kInput) throw;
      return std::numeric_limits<int64_t>::max();  // overflows 64 bits
    }
  };
  const int64_t largest = largest_within(visible_bytes(setup.device), peak_bytes, too_many);
  return largest == 0 ? std::nullopt : std::optional(largest);
}

namespace {

struct Change {
  const char *option, *value;
};

/// The changes that could save memory in this request.
std::vector<Change> changes_for(const PassSetup& setup) {
  const Request& r = setup.request;
  std::vector<Change> changes;
  const bool training = r.mode == Mode::kTraining;
  const bool eager = r.execution.attention == AttentionKind::kEager;
  if (training && setup.model.has_modules && r.checkpointing != Checkpointing::kFull) {
    changes.push_back({"checkpointing", "full"});
    if (eager && r.checkpointing == Checkpointing::kNone)
      changes.push_back({"checkpointing", "selective"});
  }
  if (setup.model.has_fused_attention && eager) changes.push_back({"attention", "flash"});
  if (!setup.model.fixed_dtype && dtype_bits(setup.precision.dtype) == 32) {
    changes.push_back({"dtype", "bf16"});
    if (training) changes.push_back({"dtype", "amp"});
  }
  const bool adam = r.optimizer == Optimizer::kAdam || r.optimizer == Optimizer::kAdamW;
  if (adam && r.optimizer_impl == OptimizerImpl::kForeach)
    changes.push_back({"optimizer-impl", "fused"});
  return changes;
}

/// nullopt if the device or the model cannot do it.
std::optional<MemoryRemedy> remedy_of(const PassSetup& setup, const Change& change) {
  Request request = setup.request;
  set_option(request, *find_option(change.option, RequestKind::kPass), change.value);
  try {
    const Precision precision =
        resolve_precision(setup.model, setup.device, precision_request(request));
    const PassSetup other{setup.model, setup.device, request, precision};
    const MemoryForecast memory =
        forecast_memory(build_graph(setup.model, request, precision), other);
    MemoryRemedy remedy{.option = change.option,
                        .value = change.value,
                        .peak_bytes = memory.peak_bytes,
                        .fits = memory.fits};
    if (setup.model.takes_batch())
      remedy.largest_batch = largest_fitting_batch(
          other,
          memory.fits ? std::nullopt : std::optional(BatchBytes{request.batch, memory.peak_bytes}));
    return remedy;
  } catch (const Error&) {
    return std::nullopt;  // a dtype that the device does not support, …
  }
}

}  // namespace

std::vector<MemoryRemedy> memory_remedies(const ModelRef& model_ref, const GpuRef& gpu,
                                          const Request& asked) {
  const Model& model = model_ref.content->model;
  const Device& device = gpu.content->device;
  const auto [request, precision] = checked_pass(model, device, asked);
  const PassSetup setup{model, device, request, precision};
  const int64_t before =
      forecast_memory(build_graph(setup.model, setup.request, setup.precision), setup).peak_bytes;
  std::vector<MemoryRemedy> remedies;
  for (const Change& change : changes_for(setup)) {
    const std::optional<MemoryRemedy> remedy = remedy_of(setup, change);
    // A change that saves less than a percent is no help.
    if (remedy && remedy->peak_bytes < before - before / 100) remedies.push_back(*remedy);
  }
  std::stable_sort(
      remedies.begin(), remedies.end(),
      [](const MemoryRemedy& a, const MemoryRemedy& b) { return a.peak_bytes < b.peak_bytes; });
  return remedies;
}

std::optional<int64_t> add_remedies(Forecast& forecast, const Forecaster& forecaster,
                                    const ModelRef& model, const GpuRef& gpu,
                                    const Request& request) {
  if (forecast.parallel) return std::nullopt;
  if (forecast.memory.fits) return forecaster.largest_batch(model, gpu, request);
  forecast.memory.remedies = memory_remedies(model, gpu, request);
  return forecast.memory.largest_batch;
}

}  // namespace tilecast
