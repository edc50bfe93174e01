#include "accelerator/mapper.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "accelerator/tiling.h"
#include "accelerator/traffic.h"
#include "tilecast/error.h"

namespace tilecast::accelerator {
namespace {

/// Orders around tiles: sums stay on the chip, with inputs or with weights loaded once.
constexpr std::array<const char*, 4> kOrders = {"nkpqcrs", "npqkcrs", "kncrspq", "npkqcrs"};

struct Candidate {
  Mapping mapping;
  double bound = 0;
};

class Search {
 public:
  Search(const Design& accelerator, const Layer& layer)
      : accelerator_(accelerator), flow_(accelerator.flow), layer_(layer) {}

  /// Candidates that fit, by their bound.
  std::vector<Candidate> run() {
    Sizes tile = layer_.sizes;
    tile[0] = 1;
    choose(tile, {Dim::kK, Dim::kC, Dim::kP, Dim::kQ}, 0);
    std::stable_sort(found_.begin(), found_.end(),
                     [](const Candidate& a, const Candidate& b) { return a.bound < b.bound; });
    return std::move(found_);
  }

 private:
  /// Sizes of a tile along one dimension: the whole, then halves, as multiples of the block that an
  /// instruction computes.
  std::vector<int64_t> sizes_along(Dim dim) const {
    const auto i = static_cast<size_t>(dim);
    const int64_t all = layer_.sizes[i];
    const Step& step = *flow_.compute[static_cast<size_t>(layer_.kind)];
    const int64_t block = std::clamp<int64_t>(step.block[i], 1, all);
    std::vector<int64_t> sizes = {all};
    for (int64_t parts = 2; parts < 2 * all; parts *= 2) {
      const int64_t part = (all + parts - 1) / parts;
      const int64_t size = std::min(all, (part + block - 1) / block * block);
      if (size < sizes.back()) sizes.push_back(size);
      if (size <= block) break;
    }
    return sizes;
  }
  bool fits(const Sizes& tile) const {
    for (size_t memory = 0; memory < accelerator_.machine.memories.size(); ++memory) {
      double needed = 0, share = 1;
      for (const Operand operand : kOperands) {
        const Buffer& buffer = flow_.buffers[static_cast<size_t>(operand)];
        if (buffer.memory != static_cast<int>(memory)) continue;
        needed += buffer_bytes(layer_, tile, flow_, operand);
        share = std::min(share, buffer.share);
      }
      if (needed > accelerator_.machine.memories[memory].bytes * share) return false;
    }
    return true;
  }
  void choose(Sizes tile, const std::vector<Dim>& dims, size_t at) {
    if (at < dims.size()) {
      for (const int64_t size : sizes_along(dims[at])) {
        tile[static_cast<size_t>(dims[at])] = size;
        choose(tile, dims, at + 1);
      }
      return;
    }
    if (!fits(tile)) return;
    for (const char* order : kOrders) {
      Mapping mapping{.tile = tile};
      const Sizes counts = tile_counts(layer_, {.order = "", .tile = tile});
      for (const char* dim = order; *dim != 0; ++dim)
        if (counts[kDimNames.find(*dim)] > 1) mapping.order += *dim;
      if (!found_.empty() && found_.back().mapping == mapping) continue;
      // Without loads of partial sums, they must stay on the chip until they are complete.
      if (spilled_bytes(layer_, mapping, flow_) > 0) continue;
      found_.push_back({mapping, bound(mapping, counts)});
    }
  }
  double bound(const Mapping& mapping, const Sizes& counts) const {
    double bytes = 0;
    for (const Operand operand : kOperands) {
      if (operand == Operand::kWeight && !layer_.uses(operand, Dim::kR)) continue;
      size_t last = mapping.order.size();
      while (last > 0 &&
             !layer_.uses(operand, static_cast<Dim>(kDimNames.find(mapping.order[last - 1]))))
        --last;
      double tiles = 1;
      for (size_t i = 0; i < last; ++i)
        tiles *= static_cast<double>(counts[kDimNames.find(mapping.order[i])]);
      bytes += tiles * static_cast<double>(layer_.elements(operand, mapping.tile)) *
               (operand == Operand::kOutput ? flow_.stored_bytes : 1);
    }
    double tiles = 1, blocks = 1;
    const Step& step = *flow_.compute[static_cast<size_t>(layer_.kind)];
    for (size_t i = 0; i < kDimCount; ++i) {
      const int64_t part = step.block[i] == 0 ? mapping.tile[i] : step.block[i];
      tiles *= static_cast<double>(counts[i]);
      blocks *= static_cast<double>((mapping.tile[i] + part - 1) / part);
    }
    // Equal bounds: the fewer tiles, the less is waited for at their ends.
    return std::max(bytes / off_chip_width(), tiles * blocks) + tiles;
  }
  double off_chip_width() const {
    double width = 1e15;
    for (const Memory& memory : accelerator_.machine.memories)
      if (memory.type != "sram") width = std::min(width, memory.width_bytes * memory.ports);
    return width;
  }

  const Design& accelerator_;
  const Dataflow& flow_;
  const Layer& layer_;
  std::vector<Candidate> found_;
};

NestTime evaluate(const Design& accelerator, const Layer& layer, const Mapping& mapping,
                  const EvaluationLimits& limits) {
  const LoopNest nest = tile_layer(accelerator.machine, accelerator.flow, layer, mapping);
  return evaluate_nest(accelerator.machine, nest, limits);
}

void check_runs(const Design& accelerator, const Layer& layer) {
  if (accelerator.flow.runs(layer.kind)) return;
  throw Error(ErrorKind::kUnsupported,
              fmt::format("{}: the dataflow '{}' does not run {} layers", accelerator.id,
                          accelerator.flow.name, layer_kind_name(layer.kind)));
}

}  // namespace

MappedLayer map_layer(const Design& accelerator, const Layer& given, const MapperOptions& options) {
  check_runs(accelerator, given);
  MappedLayer best{.layer = as_run(given, accelerator.flow)};
  const std::vector<Candidate> candidates = Search(accelerator, best.layer).run();
  if (candidates.empty())
    throw Error(ErrorKind::kUnsupported,
                fmt::format("{}: not even the smallest tile of the layer fits into its memories",
                            accelerator.id));
  const size_t count = std::min(candidates.size(), std::max<size_t>(1, options.evaluated));
  for (size_t i = 0; i < count; ++i) {
    NestTime time = evaluate(accelerator, best.layer, candidates[i].mapping, options.limits);
    if (i > 0 && time.cycles >= best.time.cycles) continue;
    best.mapping = candidates[i].mapping;
    best.time = std::move(time);
  }
  return best;
}

MappedLayer run_mapping(const Design& accelerator, const Layer& given, const Mapping& mapping,
                        const EvaluationLimits& limits, const std::string& where) {
  check_runs(accelerator, given);
  MappedLayer result{.layer = as_run(given, accelerator.flow), .mapping = mapping};
  check_covers(mapping, result.layer, where);
  check_fits(result.layer, mapping, accelerator.machine, accelerator.flow, where);
  check_sums_stay(result.layer, mapping, accelerator.machine, accelerator.flow, where);
  result.time = evaluate(accelerator, result.layer, mapping, limits);
  return result;
}

}  // namespace tilecast::accelerator
