// Which object holds which instruction when: of the longest layer's first instructions.

#include <fmt/format.h>

#include <algorithm>
#include <functional>

#include "accelerator/simulator.h"
#include "accelerator/tiling.h"
#include "api/accelerator_pass.h"
#include "base/json.h"
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

struct Shown {
  int unit;
  std::string operation;
  double start, end;  ///< cycles
};

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

std::vector<Shown> first_instructions(const accelerator::Machine& machine, const LoopNest& nest) {
  std::vector<Shown> shown;
  accelerator::Simulator simulator(machine, nest);
  const auto cycles = [](Ticks ticks) {
    return static_cast<double>(ticks) / static_cast<double>(accelerator::kTicksPerCycle);
  };
  run_first(nest, nest.root, simulator, [&](int32_t index, const Passage& passage) {
    const accelerator::Instruction& instruction = nest.instructions[static_cast<size_t>(index)];
    shown.push_back({instruction.unit, machine.operations[instruction.operation].name,
                     cycles(passage.entered), cycles(passage.completed)});
    return shown.size() < kMostShown;
  });
  return shown;
}

double end_of(const std::vector<Shown>& shown) {
  double end = 1;
  for (const Shown& one : shown) end = std::max(end, one.end);
  return end;
}

std::string as_text(const accelerator::Machine& machine, const std::vector<Shown>& shown) {
  constexpr size_t kColumns = 60;
  const double end = end_of(shown);
  std::string text = fmt::format("{} instructions in {:.0f} cycles; a column is {:.1f} cycles\n",
                                 shown.size(), end, end / kColumns);
  for (size_t unit = 0; unit < machine.units.size(); ++unit) {
    std::string line(kColumns, '.');
    for (const Shown& one : shown) {
      if (one.unit != static_cast<int>(unit)) continue;
      const auto first = static_cast<size_t>(one.start / end * kColumns);
      const auto last = static_cast<size_t>(one.end / end * kColumns);
      for (size_t i = first; i <= std::min(last, kColumns - 1); ++i) line[i] = one.operation[0];
    }
    text += fmt::format("{:<16} {}\n", machine.units[unit].name.substr(0, 16), line);
  }
  return text;
}

std::string as_svg(const accelerator::Machine& machine, const std::vector<Shown>& shown) {
  constexpr double kWidth = 1000, kRow = 24, kLeft = 140;
  const double scale = kWidth / end_of(shown);
  std::string svg = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{}\" height=\"{}\" font-size=\"12\" "
      "font-family=\"sans-serif\">\n",
      kLeft + kWidth + 10, kRow * static_cast<double>(machine.units.size() + 1));
  for (size_t unit = 0; unit < machine.units.size(); ++unit)
    svg += fmt::format("<text x=\"4\" y=\"{}\">{}</text>\n",
                       kRow * (static_cast<double>(unit) + 0.7), machine.units[unit].name);
  for (const Shown& one : shown)
    svg += fmt::format(
        "<rect x=\"{:.2f}\" y=\"{}\" width=\"{:.2f}\" height=\"{}\" fill=\"#4a78b5\" "
        "stroke=\"white\" stroke-width=\"0.3\"><title>{} {:.1f} to {:.1f}</title></rect>\n",
        kLeft + one.start * scale, kRow * one.unit + 3,
        std::max(0.3, (one.end - one.start) * scale), kRow - 6, one.operation, one.start, one.end);
  return svg + fmt::format("<text x=\"{}\" y=\"{}\">{:.0f} cycles</text>\n</svg>\n", kLeft,
                           kRow * (static_cast<double>(machine.units.size()) + 0.7), end_of(shown));
}

/// Chrome's trace format, which Perfetto reads; a cycle is shown as a microsecond.
std::string as_trace(const accelerator::Machine& machine, const std::vector<Shown>& shown) {
  Json events = Json::array();
  for (size_t unit = 0; unit < machine.units.size(); ++unit)
    events.push_back({{"ph", "M"},
                      {"name", "thread_name"},
                      {"pid", 0},
                      {"tid", unit},
                      {"args", {{"name", machine.units[unit].name}}}});
  for (const Shown& one : shown)
    events.push_back({{"ph", "X"},
                      {"name", one.operation},
                      {"pid", 0},
                      {"tid", one.unit},
                      {"ts", one.start},
                      {"dur", one.end - one.start}});
  return Json{{"traceEvents", events}}.dump() + "\n";
}

}  // namespace

std::string accelerator_occupancy(const ModelRef& model, const std::string& spec,
                                  const Request& request, const AcceleratorOptions& options,
                                  const std::string& format) {
  const accelerator::ParameterValues values(options.parameters.begin(), options.parameters.end());
  const accelerator::Design design = accelerator::open_accelerator(spec, values);
  std::optional<accelerator::MappedLayer> longest;
  for (const PassLayer& layer : pass_layers(model, request)) {
    if (!layer.layer || !design.flow.runs(layer.layer->layer.kind)) continue;
    accelerator::MappedLayer mapped = map_pass_layer(layer, design, options);
    if (!longest || mapped.time.cycles > longest->time.cycles) longest = std::move(mapped);
  }
  if (!longest)
    throw Error(ErrorKind::kUnsupported, "no layer of the model runs on the accelerator");
  const LoopNest nest = tile_layer(design.machine, design.flow, longest->layer, longest->mapping);
  const std::vector<Shown> shown = first_instructions(design.machine, nest);
  if (format == "svg") return as_svg(design.machine, shown);
  return format == "perfetto" ? as_trace(design.machine, shown) : as_text(design.machine, shown);
}

}  // namespace tilecast
