// How a dataflow sees a layer before it is tiled, and whether its tiles fit into the memories.

#include <fmt/format.h>

#include <algorithm>

#include "accelerator/tiling.h"
#include "base/fail.h"
#include "tilecast/error.h"

namespace tilecast::accelerator {
namespace {

constexpr std::array<const char*, kOperandCount> kOperandNames = {"input", "weight", "output"};
}  // namespace

Layer as_run(const Layer& layer, const Dataflow& flow) {
  if (!flow.flattens || layer.kind != LayerKind::kProduct) return layer;
  const auto& [n, k, c, p, q, r, s] = layer.sizes;
  return {.kind = layer.kind, .sizes = {1, k, c * r * s, n * p * q, 1, 1, 1}};
}

double buffer_bytes(const Layer& layer, const Sizes& tile, const Dataflow& flow, Operand operand) {
  if (operand == Operand::kWeight && !layer.uses(operand, Dim::kR)) return 0;
  const Buffer& buffer = flow.buffers[static_cast<size_t>(operand)];
  return static_cast<double>(layer.elements(operand, tile)) * buffer.element_bytes *
         static_cast<double>(buffer.copies);
}

std::string misfit(const Layer& layer, const Sizes& tile, const Machine& machine,
                   const Dataflow& flow) {
  for (size_t memory = 0; memory < machine.memories.size(); ++memory) {
    double needed = 0;
    std::string tiles;
    double share = 0;
    for (const Operand operand : kOperands) {
      const Buffer& buffer = flow.buffers[static_cast<size_t>(operand)];
      if (buffer.memory != static_cast<int>(memory)) continue;
      const double bytes = buffer_bytes(layer, tile, flow, operand);
      needed += bytes;
      share = std::max(share, buffer.share);
      tiles += fmt::format("{}{} {:.0f} bytes", tiles.empty() ? "" : ", ",
                           kOperandNames[static_cast<size_t>(operand)], bytes);
    }
    const double there = machine.memories[memory].bytes * share;
    if (needed > there)
      return fmt::format(
          "the tiles do not fit into '{}': {}; {:.0f} bytes in all, {:.0f} more than its {:.0f}",
          machine.memories[memory].name, tiles, needed, needed - there, there);
  }
  return "";
}

void check_fits(const Layer& layer, const Mapping& mapping, const Machine& machine,
                const Dataflow& flow, const std::string& where) {
  if (const std::string why = misfit(layer, mapping.tile, machine, flow); !why.empty())
    fail_input(where, why + "; make the tile smaller");
}

double spilled_bytes(const Layer& layer, const Mapping& mapping, const Dataflow& flow) {
  const auto out = static_cast<size_t>(Operand::kOutput);
  if (flow.loads[out]) return 0;
  bool inside_reduction = false, spills = false;
  Sizes kept = mapping.tile;
  for (const char name : mapping.order) {
    const size_t i = kDimNames.find(name);
    if (layer.reduces(static_cast<Dim>(i))) {
      inside_reduction = true;
    } else if (inside_reduction) {
      spills = true;
      kept[i] = layer.sizes[i];
    }
  }
  return spills ? buffer_bytes(layer, kept, flow, Operand::kOutput) : 0;
}

void check_sums_stay(const Layer& layer, const Mapping& mapping, const Machine& machine,
                     const Dataflow& flow, const std::string& where) {
  const Buffer& buffer = flow.buffers[static_cast<size_t>(Operand::kOutput)];
  const Memory& memory = machine.memories[static_cast<size_t>(buffer.memory)];
  const double needed = spilled_bytes(layer, mapping, flow), there = memory.bytes * buffer.share;
  if (needed <= there) return;
  throw Error(ErrorKind::kInput,
              fmt::format("{}: a loop over outputs runs inside a loop over sums (order '{}'), so "
                          "that {:.0f} bytes of incomplete sums wait in '{}', {:.0f} more than its "
                          "{:.0f}; put c, r and s last in the order",
                          where, mapping.order, needed, memory.name, needed - there, there));
}

}  // namespace tilecast::accelerator
