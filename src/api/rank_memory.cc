#include "api/rank_memory.h"

#include <algorithm>

#include "base/checked.h"
#include "memory/course.h"
#include "memory/plan.h"

namespace tilecast {
namespace {

/// What micro-batches in flight need, beside what is in memory all the time.
struct Flight {
  int64_t saved_bytes = 0;    ///< of each, between its forward and its backward pass
  int64_t working_bytes = 0;  ///< of the one that is computed, at most, beyond that
};

Flight flight_of(const Graph& graph, const CourseOptions& options) {
  const Lifetimes lifetimes = find_lifetimes(graph, options);
  int32_t forward_end = 0;
  for (size_t i = 0; i < lifetimes.steps.size(); ++i) {
    if (graph.nodes[static_cast<size_t>(lifetimes.steps[i].node)].phase == Phase::kForward)
      forward_end = static_cast<int32_t>(i);
  }
  Flight flight{.saved_bytes = bytes_across(lifetimes, forward_end)};
  for (const TensorId id : received_inputs(graph))
    flight.saved_bytes =
        checked_add(flight.saved_bytes, block_bytes(tensor_bytes(graph.tensor(id))));
  flight.working_bytes =
      std::max<int64_t>(0, find_peak(lifetimes).computed_bytes - flight.saved_bytes);
  return flight;
}

/// One rank's share of what the data-parallel ranks divide.
int64_t share(int64_t bytes, bool divided, const ParallelPlan& plan) {
  return divided ? ceil_divide(bytes, plan.data_ranks()) : bytes;
}

/// FSDP holds the parameters of two units beside its share: the one that is computed, and the next.
int64_t gathered_bytes(const Graph& graph) {
  int64_t root = 0, layer = 0;
  for (const Segment& segment : graph.segments) {
    const auto index = static_cast<int32_t>(&segment - graph.segments.data());
    int64_t bytes = 0;
    for (const Tensor& tensor : graph.tensors) {
      if (tensor.kind == TensorKind::kWeight && tensor.segment == index)
        bytes = checked_add(bytes, tensor_bytes(tensor));
    }
    (segment.repeat > 1 ? layer : root) =
        segment.repeat > 1 ? std::max(layer, bytes) : checked_add(root, bytes);
  }
  return checked_add(root, 2 * layer);
}

}  // namespace

MemoryForecast rank_memory(const std::vector<const ModelPart*>& parts, int64_t stage,
                           const PassSetup& setup, const ParallelPlan& plan) {
  const Parallel& p = setup.request.parallel;
  MemoryForecast memory =
      forecast_memory(parts.front()->pass.graph(), parts.front()->pass.work->memory, setup);
  const bool plain = parts.size() == 1 && plan.pipeline.microbatches == 1 &&
                     p.zero == Zero::kNone && p.main_params == MainParams::kAsModel;
  const std::vector<int64_t> in_flight = most_in_flight(plan.pipeline, stage);
  int64_t weights = 0, gradients = 0, optimizer = 0, inputs = 0, saved = 0, working = 0,
          gathered = 0;
  for (size_t i = 0; i < parts.size(); ++i) {
    const Graph& graph = parts[i]->pass.graph();
    const MemoryPlan& own = parts[i]->pass.work->memory;
    const Flight flight = flight_of(graph, {.zero_grad = setup.request.zero_grad});
    weights = checked_add(weights, own.weights_bytes);
    gradients = checked_add(gradients, own.gradients_bytes);
    optimizer = checked_add(optimizer, own.optimizer_bytes);
    inputs = std::max(inputs, own.inputs_bytes);
    saved = checked_add(saved, checked_multiply(in_flight[i], flight.saved_bytes));
    working = std::max(working, flight.working_bytes);
    gathered = std::max(gathered, gathered_bytes(graph));
  }
  // DistributedDataParallel's buckets are as large as the gradients; Megatron's gradients are views
  // of its buffer.
  const bool buckets =
      plan.data_ranks() > 1 && p.main_params == MainParams::kAsModel && p.zero == Zero::kNone;
  memory.weights_bytes = share(weights, p.zero == Zero::kParameters, plan);
  memory.gradients_bytes = share(gradients, p.zero >= Zero::kGradients, plan);
  memory.optimizer_bytes = optimizer;  // the optimizer step was divided already
  memory.activations_bytes = saved + working + inputs;
  int64_t peak = checked_add(memory.workspace_bytes, memory.framework_bytes);
  if (plain) {
    peak = memory.peak_bytes;
  } else {
    for (const int64_t bytes : {memory.weights_bytes, memory.gradients_bytes,
                                memory.optimizer_bytes, memory.activations_bytes})
      peak = checked_add(peak, bytes);
    memory.at_peak = {.weights_bytes = memory.weights_bytes,
                      .gradients_bytes = memory.gradients_bytes,
                      .optimizer_bytes = memory.optimizer_bytes,
                      .activations_bytes = saved,
                      .temporaries_bytes = working,
                      .inputs_bytes = inputs};
    memory.peak_phase = "backward";
    memory.peak_node = "";
  }
  if (buckets) {
    peak = checked_add(peak, gradients);
    memory.at_peak.gradients_bytes = checked_add(memory.at_peak.gradients_bytes, gradients);
  }
  if (p.zero == Zero::kParameters) {
    peak = checked_add(peak, gathered);
    memory.at_peak.temporaries_bytes = checked_add(memory.at_peak.temporaries_bytes, gathered);
  }
  memory.peak_bytes = peak;
  memory.margin_bytes = memory.device_bytes - peak;
  memory.fits = memory.margin_bytes >= 0;
  return memory;
}

}  // namespace tilecast
