// Memory of one pass: its peak, and the largest batch.

#include <algorithm>
#include <limits>

#include "base/checked.h"
#include "memory/plan.h"
#include "memory/stack.h"
#include "scenario/generation/cache_pool.h"
#include "scenario/internal.h"
#include "scenario/pass/pass.h"
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
  const SoftwareStack& stack =
      software_def(setup.request.execution.software.value_or(Software{})).memory;
  MemoryForecast memory;
  memory.weights_bytes = plan.weights_bytes;
  memory.gradients_bytes = plan.gradients_bytes;
  memory.optimizer_bytes = plan.optimizer_bytes;
  memory.activations_bytes = checked_add(plan.activations_bytes, plan.inputs_bytes);
  memory.optimizer_temporaries_bytes = plan.optimizer_temporaries_bytes;
  const bool training = setup.request.mode == Mode::kTraining;
  memory.workspace_bytes = workspace_bytes(stack, has_large_workspace(device), training);
  memory.framework_bytes = framework_bytes(stack, training);
  memory.stack = stack.measured_with;
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

}  // namespace tilecast
