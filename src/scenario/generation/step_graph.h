#pragma once

// The graph of one step of a served model on one rank.

#include <optional>
#include <vector>

#include "passes/serving.h"
#include "scenario/generation/served_model.h"

namespace tilecast {

using StepGroup = StepRequest::Group;

/// One rank's share of each distinct stage of the plan.
std::vector<ServedStage> divide_stages(const ServedModel& served);
/// One rank's share of some layers.
ServedStage stage_of_layers(const ServedModel& served, const LayerRange& layers);

/// The step on one rank of a stage. `adapters`: different ones of its sequences; default: as many
/// as sequences, if there are. Throws Error{kInput} if sizes overflow, as the next two.
Graph step_graph(const ServedModel& served, std::vector<StepGroup> groups, size_t stage = 0,
                 std::optional<int64_t> adapters = {});
/// The same of layers that are no stage of the model; `adapters` 0: they have none.
Graph step_graph(const ServedModel& served, const ServedStage& layers,
                 std::vector<StepGroup> groups, int64_t adapters = 0);
/// The step without parallelism.
Graph whole_step_graph(const ServedModel& served, std::vector<StepGroup> groups);

}  // namespace tilecast
