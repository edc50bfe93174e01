#include "scenario/generation/step_graph.h"

#include <algorithm>

#include "base/checked.h"
#include "base/text.h"
#include "memory/by_purpose.h"
#include "passes/exchange.h"
#include "passes/stage.h"
#include "scenario/generation/served_adapters.h"

namespace tilecast {
namespace {

/// The modules of a rank with its experts and the exchange of tokens.
Graph with_own_experts(const ServedModel& served) {
  const RankLayout& plan = served.plan;
  const bool whole_experts = plan.tp == 1 && plan.ep == plan.dp;
  return divide_served_experts(
      served.modules,
      {.tp = plan.tp,
       .dp = plan.dp,
       .ep = plan.ep,
       .dispatch = whole_experts && served.asked.deployment.all2all == All2All::kDeepEp});
}

/// The bytes of the weights of modules, as a step of them holds them.
double step_weights_bytes(const ServedModel& served, const Graph& modules, bool has_output_layer) {
  return static_cast<double>(weights_bytes(fuse(modules, {.groups = {{1, 1, 1}},
                                                          .scheme_of = served.precision.scheme_of,
                                                          .has_output_layer = has_output_layer})));
}

StepFusions fusions_of(const ServedModel& served) {
  const SoftwareTraits& traits = traits_of(served.conditions().software);
  const std::vector<std::string> families = split(traits.families_with_fused_norms, ' ');
  const bool fuses_norms =
      traits.families_with_fused_norms.empty() ||
      std::find(families.begin(), families.end(), served.model.family) != families.end();
  return {.norms_quantize = traits.fuses_quantization_with_norm && fuses_norms,
          .gates_quantize = traits.fuses_quantization_with_gate,
          .attention_quantizes = traits.fuses_quantization_with_attention,
          .to_fp4 = traits.fuses_fp4_quantization,
          .compiles_gates = traits.compiles_gates};
}

int64_t sequences_of(const std::vector<StepGroup>& groups) {
  int64_t sequences = 0;
  for (const StepGroup& group : groups) sequences = checked_add(sequences, group.sequences);
  return sequences;
}

StepRequest step_request(const ServedModel& served, std::vector<StepGroup> groups) {
  return {.groups = std::move(groups),
          .kv_dtype = served.kv_dtype,
          .scheme_of = served.precision.scheme_of,
          .skew_percent = served.skew_percent,
          .fusions = fusions_of(served)};
}

}  // namespace

std::vector<ServedStage> divide_stages(const ServedModel& served) {
  const Graph modules = with_own_experts(served);
  const bool states_sum = served.precision.as_stored && served.model.checkpoint.weights_bytes &&
                          served.plan.ranks() > 1;
  std::vector<ServedStage> stages;
  for (size_t s = 0; s < served.plan.parts.size(); ++s) {
    const LayerRange& layers = served.plan.parts[s];
    const std::vector<int64_t> runs = segment_runs(served.modules, layers);
    const StageLinks links = served.plan.links_after(static_cast<int64_t>(s));
    const auto alike = std::find_if(stages.begin(), stages.end(), [&](const ServedStage& stage) {
      return stage.runs == runs && stage.links == links &&
             stage.layers.has_start == layers.has_start && stage.layers.has_end == layers.has_end;
    });
    if (alike != stages.end()) {
      alike->count += 1;
      continue;
    }
    ServedStage stage{.layers = layers,
                      .links = links,
                      .share = shard(part_of(modules, layers), served.plan.tp),
                      .runs = runs};
    if (states_sum)
      stage.stored_share = step_weights_bytes(served, stage.share, layers.has_end) /
                           step_weights_bytes(served, served.modules, true);
    stages.push_back(std::move(stage));
  }
  return stages;
}

ServedStage stage_of_layers(const ServedModel& served, const LayerRange& layers) {
  return {.layers = layers,
          .share = shard(part_of(with_own_experts(served), layers), served.plan.tp)};
}

Graph step_graph(const ServedModel& served, std::vector<StepGroup> groups, size_t stage,
                 std::optional<int64_t> adapters) {
  const int64_t used = adapters ? *adapters : most_adapters(served.asked, sequences_of(groups));
  return step_graph(served, served.stages[stage], std::move(groups), used);
}

Graph step_graph(const ServedModel& served, const ServedStage& layers,
                 std::vector<StepGroup> groups, int64_t adapters) {
  StepRequest request = step_request(served, std::move(groups));
  if (adapters > 0) request.adapters = step_adapters(served.asked, adapters);
  request.has_output_layer = layers.layers.has_end;
  Graph graph = fuse(layers.share, request);
  if (served.precision.as_stored)
    store_as_in_checkpoint(graph, served.model.checkpoint, layers.stored_share);
  return graph;
}

Graph whole_step_graph(const ServedModel& served, std::vector<StepGroup> groups) {
  Graph graph = fuse(served.modules, step_request(served, std::move(groups)));
  if (served.precision.as_stored)
    store_as_in_checkpoint(graph, served.model.checkpoint, std::nullopt);
  return graph;
}

}  // namespace tilecast
