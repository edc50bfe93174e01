// Memory of one pass: its peak, and the largest batch.

#include <algorithm>
#include <limits>

#include "base/checked.h"
#include "memory/by_purpose.h"
#include "ops/op_def.h"
#include "scenario/internal.h"
#include "scenario/memory_total.h"
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

PassMemory forecast_memory(const Graph& graph, const PassSetup& setup) {
  return forecast_memory(graph, memory_by_purpose(graph, {.zero_grad = setup.request.zero_grad}),
                         setup);
}

PassMemory forecast_memory(const Graph& graph, const MemoryByPurpose& plan,
                           const PassSetup& setup) {
  const SoftwareStack& stack =
      software_def(setup.request.execution.software.value_or(Software{})).memory;
  PassMemory memory{bare_rank(setup.device, stack, setup.request.mode)};
  memory.weights_bytes = plan.weights_bytes;
  memory.gradients_bytes = plan.gradients_bytes;
  memory.optimizer_bytes = plan.optimizer_bytes;
  memory.activations_bytes = checked_add(plan.activations_bytes, plan.inputs_bytes);
  memory.cache_bytes = plan.cache_bytes;
  memory.optimizer_temporaries_bytes = plan.optimizer_temporaries_bytes;
  const OpId experts = require_op("experts");
  if (std::any_of(graph.nodes.begin(), graph.nodes.end(),
                  [&](const Node& node) { return node.op == experts; }))
    memory.workspace_bytes = checked_add(
        memory.workspace_bytes,
        checked_multiply(stack.expert_workspaces, extension_workspace_bytes(setup.device, stack)));
  memory.host_optimizer_bytes = plan.host_bytes;
  memory.stack = stack.measured_with;
  memory.at_peak = parts_of(plan.peak.by_use);
  set_peak(memory);
  if (plan.peak_node >= 0) {
    const Node& node = graph.nodes[static_cast<size_t>(plan.peak_node)];
    memory.peak_phase = phase_name(node.phase);
    memory.peak_node = node.name;
  }
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
