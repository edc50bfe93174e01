// Which object holds which instruction when: of the longest layer's first instructions.

#include <fmt/format.h>

#include <algorithm>
#include <functional>

#include "accelerator/simulator.h"
#include "accelerator/tiling.h"
#include "base/text.h"
#include "scenario/accelerator/mappings.h"
#include "scenario/accelerator/pass.h"
#include "tilecast/error.h"

namespace tilecast {
namespace {

using accelerator::LoopNest;
using accelerator::NodeId;
using accelerator::Passage;
using accelerator::ProgramNode;
using accelerator::Ticks;

/// Enough to show a tile's loads, computations and stores.
constexpr size_t kMostShown = 400;

/// Runs the first instructions of a nest; `add` returns false to stop.
bool run_first(const LoopNest& nest, NodeId id, accelerator::Simulator& simulator,
               const std::function<bool(int32_t, const Passage&)>& add) {
  const ProgramNode& node = nest.nodes[static_cast<size_t>(id)];
  if (node.kind == ProgramNode::Kind::kInstruction)
    return add(node.index, simulator.issue(node.index));
  if (node.kind == ProgramNode::Kind::kAdvance) {
    simulator.advance(node.index);
  } else if (node.kind == ProgramNode::Kind::kFence) {
    simulator.fence();
  } else {
    for (int64_t i = 0; i < node.count; ++i)
      for (const NodeId child : nest.children_of(node))
        if (!run_first(nest, child, simulator, add)) return false;
  }
  return true;
}

void add_instructions(AcceleratorOccupancy& occupancy, const accelerator::Machine& machine,
                      const LoopNest& nest) {
  accelerator::Simulator simulator(machine, nest);
  const auto cycles = [](Ticks ticks) {
    return static_cast<double>(ticks) / static_cast<double>(accelerator::kTicksPerCycle);
  };
  run_first(nest, nest.root, simulator, [&](int32_t index, const Passage& passage) {
    const accelerator::Instruction& instruction = nest.instructions[static_cast<size_t>(index)];
    occupancy.shown.push_back({instruction.unit,
                               printable(machine.operations[instruction.operation].name),
                               cycles(passage.entered), cycles(passage.completed)});
    occupancy.cycles = std::max(occupancy.cycles, occupancy.shown.back().end_cycles);
    return occupancy.shown.size() < kMostShown;
  });
}

}  // namespace

AcceleratorOccupancy accelerator_occupancy(const ModelRef& model, const std::string& spec,
                                           const Request& request,
                                           const AcceleratorOptions& options) {
  const accelerator::Design design = open_design(spec, options);
  std::vector<PassLayer> launches = pass_launches(model, request);
  if (!options.mapping_file.empty()) assign_mappings(launches, design, options);
  std::optional<accelerator::MappedLayer> longest;
  std::string name;
  for (const PassLayer& layer : merge_equal(std::move(launches))) {
    const Placed placed = place(layer, design.flow);
    if (placed.where != Placed::Where::kAccelerator) continue;
    accelerator::MappedLayer mapped = map_pass_layer(layer, placed, design, options);
    if (longest && mapped.time.cycles <= longest->time.cycles) continue;
    longest = std::move(mapped);
    name = layer.name;
  }
  if (!longest)
    throw Error(ErrorKind::kUnsupported, "no layer of the model runs on the accelerator");
  const LoopNest nest = tile_layer(design.machine, design.flow, longest->layer, longest->mapping);
  AcceleratorOccupancy occupancy{
      .title = fmt::format("{} of {} on {}: {}; {}", name, model.name(), design.name,
                           layer_sizes_text(longest->layer),
                           mapping_text(longest->mapping, longest->layer)),
      .objects = {},
      .shown = {},
      .instructions = static_cast<double>(nest.instruction_count()),
      .clock_hz = design.machine.clock_hz};
  for (const accelerator::Unit& unit : design.machine.units)
    occupancy.objects.push_back(printable(unit.name));
  add_instructions(occupancy, design.machine, nest);
  return occupancy;
}

}  // namespace tilecast
