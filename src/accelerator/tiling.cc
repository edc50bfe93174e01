#include "accelerator/tiling.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <tuple>

#include "accelerator/instruction_cost.h"
#include "accelerator/traffic.h"
#include "tilecast/error.h"

namespace tilecast::accelerator {
namespace {

/// One level of loops over parts of a block.
struct Level {
  size_t dim;
  int64_t part;  ///< of the dimension, in one iteration
};

/// Builds the nest of one layer. Parts that are equal are built once: nodes are shared.
class Tiler {
 public:
  Tiler(const Machine& machine, const Dataflow& flow, const Layer& layer, const Mapping& mapping)
      : machine_(machine),
        flow_(flow),
        layer_(layer),
        mapping_(mapping),
        counts_(tile_counts(layer, mapping)),
        compute_(*flow.compute[static_cast<size_t>(layer.kind)]) {
    for (const char name : mapping.order) {
      const size_t dim = kDimNames.find(name);
      if (counts_[dim] > 1) order_.push_back(dim);
    }
    for (size_t i = 0; i < kOperandCount; ++i)
      tiles_[i] = builder_.ring(static_cast<uint16_t>(flow.buffers[i].copies));
    stationary_ = builder_.ring(2);  // the next block is loaded while one is in use
    barrier_ = builder_.slot();
    const size_t units = machine.operations[static_cast<size_t>(compute_.operation)].units.size();
    for (size_t i = 0; compute_.chained && i < units; ++i) chain_.push_back(builder_.slot());
    for (const Operand operand : kOperands) misses_[static_cast<size_t>(operand)] = misses(operand);
  }

  LoopNest build() {
    const Around start{.level = 0,
                       .changed = {true, layer_.uses(Operand::kWeight, Dim::kR), true},
                       .first = true,
                       .last = true,
                       .tile = mapping_.tile};
    return builder_.finish(around(start));
  }

 private:
  /// Where the loops around tiles stand.
  struct Around {
    size_t level;
    std::array<bool, kOperandCount> changed;  ///< since the tile before
    bool first, last;                         ///< of the iterations that add to an output
    Sizes tile;
    auto operator<=>(const Around&) const = default;
  };

  double misses(Operand operand) const {
    const std::optional<DataflowInstruction>& step =
        operand == Operand::kOutput ? flow_.store : flow_.loads[static_cast<size_t>(operand)];
    if (!step) return 1;
    const Operation& operation = machine_.operations[static_cast<size_t>(step->operation)];
    const Unit& unit = machine_.units[static_cast<size_t>(operation.units.front())];
    for (const std::vector<int>* list : {&unit.reads, &unit.writes})
      for (const int memory : *list)
        if (const Memory& found = machine_.memories[static_cast<size_t>(memory)];
            found.type == "cache")
          return miss_ratio(layer_, mapping_, flow_, operand, part_bytes(operand, *step), found);
    return 1;
  }

  /// Bytes of a row of the operand that one instruction of the step moves.
  double part_bytes(Operand operand, const DataflowInstruction& step) const {
    const auto run = static_cast<size_t>(contiguous(operand, layer_));
    const int64_t whole = mapping_.tile[run];
    const int64_t part = step.block[run] == 0 ? whole : std::min(whole, step.block[run]);
    return static_cast<double>(part) * element_bytes(flow_, operand);
  }

  // Loops around tiles.

  NodeId around(const Around& at) {
    if (const auto it = built_.find(at); it != built_.end()) return it->second;
    const NodeId node = at.level == order_.size() ? tile(at) : loop_around(at);
    built_.emplace(at, node);
    return node;
  }
  /// Whether a later iteration of the loop brings another tile of the operand.
  bool changes(size_t level, Operand operand) const {
    for (size_t i = level; i < order_.size(); ++i)
      if (layer_.uses(operand, static_cast<Dim>(order_[i]))) return true;
    return false;
  }
  NodeId loop_around(const Around& at) {
    const size_t dim = order_[at.level];
    const bool reduces = layer_.reduces(static_cast<Dim>(dim));
    const int64_t count = counts_[dim];
    Around first = at, middle = at;
    ++first.level;
    ++middle.level;
    for (const Operand operand : kOperands)
      middle.changed[static_cast<size_t>(operand)] = changes(at.level, operand);
    if (reduces) {
      first.last = false;
      middle.first = middle.last = false;
    }
    Around last = middle;
    last.last = at.last;
    const int64_t rest = layer_.sizes[dim] - (count - 1) * mapping_.tile[dim];
    last.tile[dim] = rest;
    return builder_.sequence(
        {around(first), builder_.loop(count - 2, around(middle)), around(last)});
  }

  // Inside a tile.

  NodeId tile(const Around& at) {
    std::vector<NodeId> parts;
    if (flow_.fences) parts.push_back(builder_.fence());
    for (const Operand operand : {Operand::kInput, Operand::kWeight}) {
      const auto i = static_cast<size_t>(operand);
      if (!at.changed[i]) continue;
      parts.push_back(builder_.advance(tiles_[i]));
      if (flow_.loads[i] && flow_.loads[i]->point == IssuePoint::kTile)
        parts.push_back(moves(operand, *flow_.loads[i], at.tile, false));
    }
    const auto out = static_cast<size_t>(Operand::kOutput);
    if (at.changed[out]) {
      parts.push_back(builder_.advance(tiles_[out]));
      if (!at.first && flow_.loads[out])
        parts.push_back(moves(Operand::kOutput, *flow_.loads[out], at.tile, false));
    }
    parts.push_back(inside({.depth = 0, .block = at.tile, .fresh = true, .done = true}));
    if ((at.last || flow_.loads[out]) && flow_.store && stores(at))
      parts.push_back(moves(Operand::kOutput, *flow_.store, at.tile, true));
    return builder_.sequence(parts);
  }
  /// Whether the output tile leaves after this one.
  bool stores(const Around& at) const { return at.last || changes(0, Operand::kOutput); }

  /// The instructions that move a tile, or a block of it.
  NodeId moves(Operand operand, const DataflowInstruction& step, const Sizes& tile, bool store) {
    const auto run = static_cast<size_t>(contiguous(operand, layer_));
    Sizes extent = kOnes;
    for (size_t i = 0; i < kDimCount; ++i)
      if (layer_.uses(operand, static_cast<Dim>(i))) extent[i] = tile[i];
    if (operand == Operand::kInput) {
      extent[3] = layer_.input_extent(tile[3], tile[5]);
      extent[4] = layer_.input_extent(tile[4], tile[6]);
      extent[5] = extent[6] = 1;
      extent[0] *= layer_.inputs;
    }
    if (store) {
      for (const size_t i : {3, 4})
        extent[i] = (extent[i] + layer_.pool_stride - 1) / layer_.pool_stride;
    }
    std::vector<Level> levels;
    for (size_t i = 0; i < kDimCount; ++i)
      levels.push_back({i, step.block[i] == 0 ? extent[i] : step.block[i]});
    return parts_of(levels, 0, extent,
                    [&](const Sizes& block) { return move(operand, step, block, run, store); });
  }
  NodeId move(Operand operand, const DataflowInstruction& step, const Sizes& sizes, size_t run,
              bool store) {
    const auto i = static_cast<size_t>(operand);
    Block block{.sizes = sizes};
    for (size_t dim = 0; dim < kDimCount; ++dim)
      if (dim != run) block.rows *= sizes[dim];
    const auto width = static_cast<double>(sizes[run]);
    block.row_bytes = width * (store ? flow_.stored_bytes : flow_.buffers[i].element_bytes);
    if (store) block.pool = layer_.pool_elements;
    block.moves.push_back({.memory = flow_.buffers[i].memory,
                           .write = !store,
                           .rows = static_cast<double>(block.rows * block.pool),
                           .row_bytes = width * flow_.buffers[i].element_bytes,
                           .bytes = std::llround(static_cast<double>(block.rows * block.pool) *
                                                 width * flow_.buffers[i].element_bytes)});
    block.row_stride = row_stride(layer_, flow_, operand);
    block.miss_ratio = misses_[i];
    return emit(step, block, [&](Instruction& instruction) {
      (store ? instruction.reads : instruction.merges).push_back(tiles_[i]);
    });
  }

  /// Where the loops inside a tile stand.
  struct Inside {
    size_t depth;
    Sizes block;
    bool fresh, done;  ///< first, last with its block of the stationary operand
    auto operator<=>(const Inside&) const = default;
  };
  NodeId inside(const Inside& at) {
    if (at.depth == flow_.order.size()) return compute(at);
    if (const auto it = blocks_.find(at); it != blocks_.end()) return it->second;
    const NodeId node = loop_inside(at);
    blocks_.emplace(at, node);
    return node;
  }
  NodeId loop_inside(const Inside& at) {
    const size_t dim = kDimNames.find(flow_.order[at.depth]);
    const int64_t part = compute_.block[dim] == 0 ? at.block[dim] : compute_.block[dim];
    const int64_t count = (at.block[dim] + part - 1) / part;
    Inside next = at;
    ++next.depth;
    if (count == 1) return inside(next);
    const bool changes = layer_.uses(flow_.stationary, static_cast<Dim>(dim));
    next.block[dim] = part;
    Inside first = next, middle = next, last = next;
    last.block[dim] = at.block[dim] - (count - 1) * part;
    if (changes) {
      first.fresh = middle.fresh = last.fresh = true;
      first.done = middle.done = last.done = true;
    } else {
      first.done = middle.done = false;
      middle.fresh = last.fresh = false;
    }
    return builder_.sequence(
        {inside(first), builder_.loop(count - 2, inside(middle)), inside(last)});
  }
  NodeId compute(const Inside& at) {
    std::vector<NodeId> parts;
    Block block{
        .sizes = at.block, .rows = at.block[0] * at.block[3] * at.block[4], .fresh = at.fresh};
    block.macs = 1;
    for (const int64_t size : at.block) block.macs *= size;
    const auto weight = static_cast<size_t>(Operand::kWeight);
    const auto input = static_cast<size_t>(Operand::kInput);
    for (const Operand operand : {Operand::kInput, Operand::kWeight}) {
      const std::optional<DataflowInstruction>& load = flow_.loads[static_cast<size_t>(operand)];
      if (at.fresh && load && load->point == IssuePoint::kBlock && layer_.uses(operand, Dim::kR)) {
        parts.push_back(builder_.advance(tiles_[static_cast<size_t>(operand)]));
        parts.push_back(moves(operand, *load, at.block, false));
      }
    }
    const bool preloads = flow_.preload && (flow_.stationary != Operand::kWeight ||
                                            layer_.uses(Operand::kWeight, Dim::kR));
    if (preloads && (at.fresh || flow_.preload->point == IssuePoint::kCompute)) {
      if (at.fresh) parts.push_back(builder_.advance(stationary_));
      Block rows = block;
      rows.rows = at.fresh ? at.block[2] : 0;
      rows.macs = 0;
      // Without a new block it moves nothing, but takes its turn at the memory as one that does.
      rows.moves = {on_chip(flow_.stationary, at.block)};
      if (!at.fresh) rows.moves.front().rows = 0;
      if (!at.fresh) rows.moves.front().bytes = 0;
      parts.push_back(emit(*flow_.preload, rows, [&](Instruction& instruction) {
        if (flow_.finish) instruction.reads.push_back(barrier_);
        if (!at.fresh) return;
        instruction.reads.push_back(tiles_[static_cast<size_t>(flow_.stationary)]);
        instruction.merges.push_back(stationary_);
      }));
    }
    block.moves = computed_moves(at);
    parts.push_back(emit(compute_, block, [&](Instruction& instruction) {
      instruction.reads.push_back(tiles_[input]);
      if (preloads) instruction.reads.push_back(stationary_);
      if (layer_.uses(Operand::kWeight, Dim::kR) &&
          !(preloads && flow_.stationary == Operand::kWeight))
        instruction.reads.push_back(tiles_[weight]);
      instruction.merges.push_back(tiles_[static_cast<size_t>(Operand::kOutput)]);
      if (flow_.finish) instruction.reads.push_back(barrier_);
    }));
    if (flow_.finish && at.done) parts.push_back(finish(block));
    return builder_.sequence(parts);
  }
  /// A block of an operand between its memory on the chip and the units.
  OnChipMove on_chip(Operand operand, const Sizes& sizes) const {
    const Buffer& buffer = flow_.buffers[static_cast<size_t>(operand)];
    int64_t longest = size_of(sizes, contiguous(operand, layer_));
    // Weights lie as the units read them: rows of output or of input channels.
    if (operand == Operand::kWeight) longest = std::max(longest, size_of(sizes, Dim::kC));
    const auto run = static_cast<double>(longest);
    const auto elements = static_cast<double>(layer_.elements(operand, sizes));
    return {.memory = buffer.memory,
            .write = operand == Operand::kOutput,
            .rows = elements / run,
            .row_bytes = run * buffer.element_bytes,
            .bytes = std::llround(elements * buffer.element_bytes)};
  }
  /// Operands that a computation moves: its block's. The stationary one stays in the units: it
  /// moves with the preload or the first computation, as an output with `finish` or the last one.
  std::vector<OnChipMove> computed_moves(const Inside& at) const {
    std::vector<OnChipMove> moves;
    for (const Operand operand : kOperands) {
      if (operand == Operand::kWeight && !layer_.uses(operand, Dim::kR)) continue;
      if (operand == flow_.stationary) {
        const bool leaves = operand == Operand::kOutput;
        if (leaves ? flow_.finish || !at.done : flow_.preload || !at.fresh) continue;
      }
      moves.push_back(on_chip(operand, at.block));
    }
    return moves;
  }
  /// Waits for the outputs of all units.
  NodeId finish(Block block) {
    block.macs = 0;
    block.moves.clear();
    if (flow_.stationary == Operand::kOutput)
      block.moves = {on_chip(Operand::kOutput, block.sizes)};
    return emit(*flow_.finish, block, [&](Instruction& instruction) {
      for (const Slot slot : chain_) instruction.reads.push_back(slot);
      instruction.merges.push_back(tiles_[static_cast<size_t>(Operand::kOutput)]);
      instruction.forwards.push_back(barrier_);
    });
  }

  // Instructions.

  NodeId parts_of(const std::vector<Level>& levels, size_t level, const Sizes& sizes,
                  const std::function<NodeId(const Sizes&)>& leaf) {
    if (level == levels.size()) return leaf(sizes);
    const auto [dim, part] = levels[level];
    const int64_t whole = sizes[dim] / part, rest = sizes[dim] % part;
    std::vector<NodeId> parts;
    Sizes inner = sizes;
    inner[dim] = part;
    if (whole > 0) parts.push_back(builder_.loop(whole, parts_of(levels, level + 1, inner, leaf)));
    inner[dim] = rest;
    if (rest > 0) parts.push_back(parts_of(levels, level + 1, inner, leaf));
    return builder_.sequence(parts);
  }
  NodeId emit(const DataflowInstruction& step, const Block& block,
              const std::function<void(Instruction&)>& depend) {
    const std::vector<int>& units = machine_.operations[static_cast<size_t>(step.operation)].units;
    if (!step.each_unit) {
      Instruction one = instruction_on(machine_, units.front(), step.operation, block);
      depend(one);
      return builder_.instruction(std::move(one));
    }
    std::vector<NodeId> parts;
    const auto n = static_cast<int64_t>(units.size());
    const auto share = [&](int64_t all, int64_t i) { return all / n + (i < all % n ? 1 : 0); };
    Block part = block;
    for (int64_t i = 0; i < n; ++i) {
      part.macs = share(block.macs, i);
      for (size_t move = 0; move < block.moves.size(); ++move) {
        part.moves[move].rows = block.moves[move].rows / static_cast<double>(n);
        part.moves[move].bytes = share(block.moves[move].bytes, i);
      }
      Instruction one =
          instruction_on(machine_, units[static_cast<size_t>(i)], step.operation, part);
      depend(one);
      if (step.chained) {
        if (i > 0) one.reads.push_back(chain_[static_cast<size_t>(i - 1)]);
        one.forwards.push_back(chain_[static_cast<size_t>(i)]);
      }
      parts.push_back(builder_.instruction(std::move(one)));
    }
    return builder_.sequence(parts);
  }

  const Machine& machine_;
  const Dataflow& flow_;
  const Layer& layer_;
  const Mapping& mapping_;
  const Sizes counts_;
  const DataflowInstruction& compute_;
  std::vector<size_t> order_;  ///< of the loops around tiles
  LoopNestBuilder builder_;
  std::array<Slot, kOperandCount> tiles_;
  Slot stationary_, barrier_;
  std::vector<Slot> chain_;
  std::array<double, kOperandCount> misses_{};
  std::map<Around, NodeId> built_;
  std::map<Inside, NodeId> blocks_;
};

}  // namespace

LoopNest tile_layer(const Machine& machine, const Dataflow& flow, const Layer& layer,
                    const Mapping& mapping) {
  if (!flow.runs(layer.kind))
    throw Error(ErrorKind::kUnsupported,
                fmt::format("{}: the dataflow '{}' does not run {} layers", machine.where,
                            flow.name, layer_kind_name(layer.kind)));
  return Tiler(machine, flow, layer, mapping).build();
}

}  // namespace tilecast::accelerator
